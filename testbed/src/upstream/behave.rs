//! How a complete request is answered, by the behavior at that moment.

use std::sync::Arc;
use std::time::Duration;

use hyper::Response;
use hyper::http::request::Parts;
use rand::Rng;

use super::answer;
use super::connections::ConnectionSeat;
use super::counts::AnswerOutcome;
use super::handler::{ResetConnection, Service, lock};
use super::station::LineFull;
use super::work::{BodyFlow, EndpointJob};
use crate::pace::{self, AnyBody};
use tidegate_sim::profile::{Behaviour, Lie, UpstreamMode};

/// gRPC status RESOURCE_EXHAUSTED.
const GRPC_RESOURCE_EXHAUSTED: u32 = 8;

/// Size of each header when an answer has huge headers.
const HEADER_BYTES: u32 = 8 << 10;

/// An answer that needs no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// A failure with this status.
    Failure(u16),
    /// Too many requests of this client, or of all.
    TooMany {
        status: u16,
        retry_after: Option<u32>,
        outcome: AnswerOutcome,
    },
    /// Headers with this number of bytes.
    HugeHeaders(u32),
    /// Headers, and then nothing.
    Silence,
}

impl Service {
    /// Answers a request, or resets its connection.
    pub(super) async fn behave(
        &self,
        head: &Parts,
        seat: Option<&ConnectionSeat>,
        is_grpc: bool,
    ) -> Result<(Response<AnyBody>, AnswerOutcome), ResetConnection> {
        let behaviour = Arc::clone(&lock(&self.behaviour));
        match behaviour.mode {
            UpstreamMode::Serve | UpstreamMode::Fail => {}
            UpstreamMode::Hang => std::future::pending().await,
            UpstreamMode::Refuse | UpstreamMode::Reset => {
                self.counters.end(AnswerOutcome::Failed);
                return Err(ResetConnection);
            }
        }
        let job = self.refusal(&behaviour, head).map_or_else(
            || self.job(&behaviour, head, seat, is_grpc),
            Err::<EndpointJob, Refusal>,
        );
        match job {
            Ok(job) => {
                let response = job.respond().await.ok_or(ResetConnection)?;
                let outcome = if response.status().is_server_error() {
                    AnswerOutcome::Failed
                } else {
                    AnswerOutcome::Served
                };
                Ok((response, outcome))
            }
            Err(refusal) => {
                self.clock.pace().awake().await;
                Ok((refusal.response(is_grpc), refusal.outcome()))
            }
        }
    }

    /// Why a request gets neither a slot nor a place in the line, whatever the load.
    fn refusal(&self, behaviour: &Behaviour, head: &Parts) -> Option<Refusal> {
        if behaviour.mode == UpstreamMode::Fail {
            return Some(Refusal::Failure(500));
        }
        let quotas = self.quotas.as_ref();
        if let Some(quota) = quotas.and_then(|quotas| quotas.exceeded(&head.headers)) {
            return Some(Refusal::TooMany {
                status: quota.status,
                retry_after: quota.retry_after,
                outcome: AnswerOutcome::Failed,
            });
        }
        if let Some(status) = behaviour.failing.get(head.uri.path()) {
            return Some(Refusal::Failure(*status));
        }
        if let Some(lie) = behaviour.lies.get(head.uri.path()) {
            return Some(Refusal::lie(*lie));
        }
        let errors = behaviour.errors.filter(|errors| self.happens(errors.share));
        errors.map(|errors| Refusal::Failure(errors.status))
    }

    /// Queues a request, and draws what it needs.
    fn job(
        &self,
        behaviour: &Behaviour,
        head: &Parts,
        seat: Option<&ConnectionSeat>,
        is_grpc: bool,
    ) -> Result<EndpointJob, Refusal> {
        let path = head.uri.path();
        let max_waiting = behaviour.queue.map(|queue| queue.max);
        let turn = self.station.line_up(max_waiting).map_err(|LineFull| {
            let queue = behaviour.queue;
            Refusal::TooMany {
                status: queue.map_or(503, |queue| queue.status),
                retry_after: queue.and_then(|queue| queue.retry_after),
                outcome: AnswerOutcome::LineFull,
            }
        })?;
        let late = behaviour.delay.filter(|delay| self.happens(delay.share));
        let mut rng = lock(&self.rng);
        let outbound = self.outbound.as_ref();
        Ok(EndpointJob {
            turn,
            entry: self.work.entry(&head.headers),
            calls: outbound.and_then(|outbound| outbound.plan(&head.headers, &mut rng)),
            service: behaviour.service_for(path).sample(&mut *rng),
            delay: late.map_or(Duration::ZERO, |delay| delay.by),
            flow: behaviour.body_for(path).map(|body| BodyFlow {
                duration: body.duration.sample(&mut *rng),
                holds_slot: body.holds_slot,
                bytes: body.bytes,
            }),
            headers: behaviour.headers,
            abandoned: behaviour.abandoned,
            clock: Arc::clone(&self.clock),
            seat: seat.cloned(),
            is_grpc,
        })
    }

    fn happens(&self, share: f64) -> bool {
        lock(&self.rng).random::<f64>() < share
    }
}

impl Refusal {
    const fn lie(lie: Lie) -> Self {
        match lie {
            Lie::RetryAfter { seconds } => Self::TooMany {
                status: Lie::STATUS,
                retry_after: Some(seconds),
                outcome: AnswerOutcome::Failed,
            },
            Lie::Silence => Self::Silence,
            Lie::HugeHeaders { bytes } => Self::HugeHeaders(bytes),
        }
    }

    fn response(self, is_grpc: bool) -> Response<AnyBody> {
        match self {
            Self::Failure(status) => answer::failure(status, is_grpc),
            Self::Silence => {
                let (writer, body) = pace::body();
                tokio::spawn(async move { writer.gone().await });
                answer::with_body(body, is_grpc)
            }
            Self::HugeHeaders(bytes) => {
                let mut response = answer::ok(is_grpc);
                let value = "x".repeat(usize::try_from(HEADER_BYTES).unwrap_or_default());
                for number in 0..bytes.div_ceil(HEADER_BYTES) {
                    answer::set(response.headers_mut(), &format!("x-lie-{number}"), &value);
                }
                response
            }
            Self::TooMany { .. } if is_grpc => answer::grpc_trailers_only(GRPC_RESOURCE_EXHAUSTED),
            Self::TooMany {
                status,
                retry_after,
                ..
            } => {
                let mut response = answer::failure(status, false);
                if let Some(seconds) = retry_after {
                    answer::set(response.headers_mut(), "retry-after", &seconds.to_string());
                }
                response
            }
        }
    }

    const fn outcome(self) -> AnswerOutcome {
        match self {
            Self::Failure(_) | Self::HugeHeaders(_) => AnswerOutcome::Failed,
            Self::Silence => AnswerOutcome::Served,
            Self::TooMany { outcome, .. } => outcome,
        }
    }
}
