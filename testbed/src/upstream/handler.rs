//! From a request to its answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::watch;
use tokio::time::sleep;

use super::answer::{self, Body, Script, ScriptFor};
use super::counts::{Counters, Counts, Outcome};
use super::station::Station;
use tidegate_sim::profile::{Abandoned, Behaviour, Change, Mode};

/// gRPC status UNAVAILABLE.
const GRPC_UNAVAILABLE: u32 = 14;
/// gRPC status RESOURCE_EXHAUSTED.
const GRPC_RESOURCE_EXHAUSTED: u32 = 8;

/// What a script sees of a request.
#[derive(Debug, Clone)]
pub struct RequestHead {
    /// Path without query.
    pub path: String,
    /// Headers.
    pub headers: HeaderMap,
    /// Number of the request at this upstream, from 1.
    pub number: u64,
}

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("reset on purpose")]
pub(super) struct ResetConnection;

/// Everything the connections of one upstream share.
#[derive(Debug)]
pub(super) struct Service {
    name: String,
    behaviour: Mutex<Arc<Behaviour>>,
    station: Arc<Station>,
    script: Option<ScriptFor>,
    rng: Mutex<StdRng>,
    counters: Counters,
    door: watch::Sender<Door>,
}

/// Whether connections are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    Refusing,
    Gone,
}

impl Service {
    pub(super) fn new(
        name: String,
        behaviour: Behaviour,
        script: Option<ScriptFor>,
        seed: u64,
    ) -> Self {
        let station = Station::new(behaviour.slots);
        let door = watch::Sender::new(door_for(behaviour.mode));
        Self {
            name,
            behaviour: Mutex::new(Arc::new(behaviour)),
            station,
            script,
            rng: Mutex::new(StdRng::seed_from_u64(seed)),
            counters: Counters::default(),
            door,
        }
    }

    pub(super) fn door(&self) -> watch::Receiver<Door> {
        self.door.subscribe()
    }

    pub(super) fn close(&self) {
        self.door.send_replace(Door::Gone);
    }

    pub(super) fn change(&self, change: &Change) {
        let (slots, door) = {
            let mut behaviour = lock(&self.behaviour);
            let mut new = Behaviour::clone(&behaviour);
            new.apply(change);
            *behaviour = Arc::new(new);
            (behaviour.slots, door_for(behaviour.mode))
        };
        self.station.resize(slots);
        self.door.send_replace(door);
    }

    pub(super) fn counts(&self) -> Counts {
        let (in_service, waiting) = self.station.occupancy();
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
    ) -> Result<Response<Body>, ResetConnection> {
        let behaviour = Arc::clone(&lock(&self.behaviour));
        let path = request.uri().path().to_owned();
        let _under_way = self.counters.receive(&path, behaviour.mode.is_up());
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
        let upgrade = request.headers().contains_key("upgrade");
        let answer = match script {
            Some(script) => self.act(script, request, is_grpc).await?,
            None if upgrade && behaviour.mode.is_up() => (echo(request), Outcome::Served),
            None => {
                // The body is read, so that the connection can carry the next request.
                let _ = request.into_body().collect().await;
                self.behave(&behaviour, &path, is_grpc).await?
            }
        };
        let (mut response, outcome) = answer;
        self.counters.end(outcome);
        answer::set(response.headers_mut(), "x-upstream", &self.name);
        Ok(response)
    }

    async fn act(
        &self,
        script: Script,
        request: Request<Incoming>,
        is_grpc: bool,
    ) -> Result<(Response<Body>, Outcome), ResetConnection> {
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
                    Outcome::Served
                } else {
                    Outcome::Failed
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
                self.counters.end(Outcome::Failed);
                return Err(ResetConnection);
            }
        };
        Ok((response, Outcome::Served))
    }

    async fn behave(
        &self,
        behaviour: &Arc<Behaviour>,
        path: &str,
        is_grpc: bool,
    ) -> Result<(Response<Body>, Outcome), ResetConnection> {
        let failure = |status: u16| (failure(status, is_grpc), Outcome::Failed);
        match behaviour.mode {
            Mode::Serve => {}
            Mode::Fail => return Ok(failure(500)),
            Mode::Hang => std::future::pending().await,
            Mode::Refuse | Mode::Reset => {
                self.counters.end(Outcome::Failed);
                return Err(ResetConnection);
            }
        }
        let fails = behaviour.errors.filter(|errors| self.happens(errors.share));
        if let Some(errors) = fails {
            return Ok(failure(errors.status));
        }
        if !self.work(behaviour, path).await {
            return Ok((self.line_full(behaviour, is_grpc), Outcome::LineFull));
        }
        if let Some(delay) = behaviour.delay.filter(|delay| self.happens(delay.share)) {
            sleep(delay.by).await;
        }
        let response = if is_grpc {
            answer::grpc(0)
        } else {
            answer::plain(200, &[], "ok\n")
        };
        Ok((response, Outcome::Served))
    }

    /// Waits for a slot and holds it for the service time; false when the line was full.
    async fn work(&self, behaviour: &Behaviour, path: &str) -> bool {
        let service: Duration = behaviour.service_for(path).sample(&mut *lock(&self.rng));
        let max_waiting = behaviour.queue.map(|queue| queue.max);
        let station = Arc::clone(&self.station);
        let work = async move {
            match station.enter(max_waiting).await {
                Ok(slot) => {
                    slot.serve(service).await;
                    true
                }
                Err(_full) => false,
            }
        };
        match behaviour.abandoned {
            Abandoned::Skip => work.await,
            // A task of its own goes on when the caller's connection, and this future, are gone.
            Abandoned::Finish => tokio::spawn(work).await.unwrap_or(false),
        }
    }

    fn line_full(&self, behaviour: &Behaviour, is_grpc: bool) -> Response<Body> {
        if is_grpc {
            return answer::grpc_trailers_only(GRPC_RESOURCE_EXHAUSTED);
        }
        let status = behaviour.queue.map_or(503, |queue| queue.status);
        let mut response = failure(status, false);
        if let Some(seconds) = behaviour.queue.and_then(|queue| queue.retry_after) {
            answer::set(response.headers_mut(), "retry-after", &seconds.to_string());
        }
        response
    }

    fn happens(&self, share: f64) -> bool {
        lock(&self.rng).random::<f64>() < share
    }
}

const fn door_for(mode: Mode) -> Door {
    if matches!(mode, Mode::Refuse) {
        Door::Refusing
    } else {
        Door::Open
    }
}

fn failure(status: u16, is_grpc: bool) -> Response<Body> {
    if is_grpc {
        answer::grpc_trailers_only(GRPC_UNAVAILABLE)
    } else {
        answer::plain(status, &[], "failed\n")
    }
}

/// Accepts an upgrade and sends every byte of the tunnel back as it is: a proxy does not look into it.
fn echo(mut request: Request<Incoming>) -> Response<Body> {
    let mut response = answer::plain(StatusCode::SWITCHING_PROTOCOLS.as_u16(), &[], "");
    answer::set(response.headers_mut(), "connection", "Upgrade");
    answer::set(response.headers_mut(), "upgrade", "websocket");
    tokio::spawn(async move {
        if let Ok(upgraded) = hyper::upgrade::on(&mut request).await {
            let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgraded));
            // How the tunnel ends is the caller's affair.
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        }
    });
    response
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
