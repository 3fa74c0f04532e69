//! From a request to its answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::answer::{self, RequestHead, Script, ScriptFor};
use super::builder::UpstreamBuilder;
use super::connections::{ConnectionLimit, ConnectionSeat};
use super::counts::{AnswerOutcome, AtomicCounts, Counts};
use super::outbound::Outbound;
use super::pauses::EndpointClock;
use super::quota::Quotas;
use super::station::Station;
use super::witness::Witness;
use super::work_log::WorkLog;
use crate::pace::AnyBody;
use tidegate_sim::profile::{Behaviour, Change, UpstreamMode};

/// The connection must be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("reset on purpose")]
pub(super) struct ResetConnection;

/// Everything the connections of one upstream share.
#[derive(Debug)]
pub(super) struct Service {
    name: String,
    pub(super) behaviour: Mutex<Arc<Behaviour>>,
    pub(super) station: Arc<Station>,
    pub(super) clock: Arc<EndpointClock>,
    pub(super) quotas: Option<Arc<Quotas>>,
    pub(super) outbound: Option<Arc<Outbound>>,
    pub(super) work: Arc<WorkLog>,
    pub(super) rng: Mutex<StdRng>,
    pub(super) counters: AtomicCounts,
    gate: Option<ConnectionLimit>,
    script: Option<ScriptFor>,
    witness: Option<Witness>,
    door: watch::Sender<Door>,
}

/// Whether connections are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    Refusing,
    Gone,
}

impl Service {
    pub(super) fn new(builder: UpstreamBuilder) -> Self {
        let behaviour = builder.behaviour;
        Self {
            name: builder.name,
            station: Station::new(behaviour.slots, behaviour.contention),
            clock: Arc::new(EndpointClock::new(builder.place, behaviour.pauses)),
            quotas: builder.quotas,
            outbound: builder.outbound,
            work: Arc::default(),
            rng: Mutex::new(StdRng::seed_from_u64(builder.seed)),
            counters: AtomicCounts::default(),
            gate: behaviour.connections.map(ConnectionLimit::new),
            script: builder.script,
            witness: builder.witness,
            door: watch::Sender::new(door_for(behaviour.mode)),
            behaviour: Mutex::new(Arc::new(behaviour)),
        }
    }

    pub(super) const fn gate(&self) -> Option<&ConnectionLimit> {
        self.gate.as_ref()
    }

    pub(super) fn door(&self) -> watch::Receiver<Door> {
        self.door.subscribe()
    }

    pub(super) fn close(&self) {
        self.door.send_replace(Door::Gone);
    }

    pub(super) fn change(&self, change: &Change) {
        let now = {
            let mut behaviour = lock(&self.behaviour);
            let mut new = Behaviour::clone(&behaviour);
            new.apply(change);
            *behaviour = Arc::new(new);
            Arc::clone(&behaviour)
        };
        self.station.contend(now.contention);
        self.station.resize(now.slots);
        self.clock.change(now.pauses);
        self.door.send_replace(door_for(now.mode));
    }

    /// Begins the run at `start`, from which pauses are counted.
    pub(super) fn begin(&self, start: Instant) {
        self.clock.begin(start);
    }

    pub(super) fn counts(&self) -> Counts {
        let (in_service, in_line) = self.station.occupancy();
        let waiting = in_line + self.gate.as_ref().map_or(0, ConnectionLimit::waiting);
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        Counts {
            in_service: u64::from(in_service),
            waiting,
            ..self.counters.read()
        }
    }

    pub(super) fn received_for(&self, path: &str) -> u64 {
        self.counters.received_for(path)
    }

    /// Answers one request, or resets its connection.
    pub(super) async fn handle(
        &self,
        request: Request<Incoming>,
        seat: Option<&ConnectionSeat>,
    ) -> Result<Response<AnyBody>, ResetConnection> {
        let is_up = lock(&self.behaviour).mode.is_up();
        let path = request.uri().path().to_owned();
        let _under_way = self.counters.receive(&path, is_up);
        let is_grpc = request
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
        let script = self.script.as_ref().and_then(|script| {
            let number = self.counters.read().received;
            script.answer(&RequestHead {
                path: path.clone(),
                headers: request.headers().clone(),
                number,
            })
        });
        let headers = self.witness.as_ref().map(|_| request.headers().clone());
        let upgrade = request.headers().contains_key("upgrade");
        let answer = match script {
            Some(script) => self.act(script, request, is_grpc).await?,
            None if upgrade && is_up => (echo(request), AnswerOutcome::Served),
            None => {
                let (head, body) = request.into_parts();
                // Work begins when the request is complete; a request that breaks off earlier is not answered.
                body.collect().await.map_err(|_| ResetConnection)?;
                self.behave(&head, seat, is_grpc).await?
            }
        };
        let (mut response, outcome) = answer;
        self.counters.end(outcome);
        if let (AnswerOutcome::Served, Some(witness), Some(headers)) =
            (outcome, &self.witness, &headers)
        {
            witness.tell(headers);
        }
        answer::set(response.headers_mut(), "x-upstream", &self.name);
        Ok(response)
    }

    async fn act(
        &self,
        script: Script,
        request: Request<Incoming>,
        is_grpc: bool,
    ) -> Result<(Response<AnyBody>, AnswerOutcome), ResetConnection> {
        if !matches!(script, Script::Hang | Script::Reset) {
            let _ = request.into_body().collect().await;
        }
        let response = match script {
            Script::Status {
                status,
                headers,
                after,
            } => {
                sleep(after).await;
                let outcome = if status < 500 {
                    AnswerOutcome::Served
                } else {
                    AnswerOutcome::Failed
                };
                return Ok((answer::plain(status, &headers, "scripted\n"), outcome));
            }
            Script::Grpc { status, after } => {
                sleep(after).await;
                answer::grpc(status)
            }
            Script::GrpcTrailersOnly { status, after } => {
                sleep(after).await;
                answer::grpc_trailers_only(status)
            }
            Script::Stream { chunks, every } => answer::stream(chunks, every, is_grpc),
            Script::Hang => std::future::pending().await,
            Script::Reset => {
                self.counters.end(AnswerOutcome::Failed);
                return Err(ResetConnection);
            }
        };
        Ok((response, AnswerOutcome::Served))
    }
}

const fn door_for(mode: UpstreamMode) -> Door {
    if matches!(mode, UpstreamMode::Refuse) {
        Door::Refusing
    } else {
        Door::Open
    }
}

/// Accepts an upgrade and echoes every byte of the tunnel; a proxy does not look into it.
fn echo(mut request: Request<Incoming>) -> Response<AnyBody> {
    let mut response = answer::plain(StatusCode::SWITCHING_PROTOCOLS.as_u16(), &[], "");
    answer::set(response.headers_mut(), "connection", "Upgrade");
    answer::set(response.headers_mut(), "upgrade", "websocket");
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(&mut request).await {
            let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgraded));
            // The caller decides how the tunnel ends.
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        }
    });
    response
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
