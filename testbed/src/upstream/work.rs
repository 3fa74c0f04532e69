//! The work of one request, and the response that follows it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::header::HeaderMap;
use tokio::time::{Instant, sleep};

use super::answer;
use super::connections::ConnectionSeat;
use super::outbound::{DependencyFailed, PlannedCalls};
use super::pauses::EndpointClock;
use super::station::{HeldSlot, Turn};
use super::work_log::LogEntry;
use crate::pace::{self, AnyBody, Writer};
use tidegate_sim::profile::{Abandoned, HeaderTiming};

/// The work of a request that has a slot or a place in the line.
#[derive(Debug)]
pub(super) struct EndpointJob {
    pub(super) turn: Turn,
    pub(super) service: Duration,
    /// Where the work is logged, if its origin is known.
    pub(super) entry: Option<LogEntry>,
    /// The calls to other services that follow its own work.
    pub(super) calls: Option<PlannedCalls>,
    /// How long the response is delayed after the work.
    pub(super) delay: Duration,
    pub(super) flow: Option<BodyFlow>,
    pub(super) headers: HeaderTiming,
    pub(super) abandoned: Abandoned,
    pub(super) clock: Arc<EndpointClock>,
    /// The connection, if there is a limit.
    pub(super) seat: Option<ConnectionSeat>,
    pub(super) is_grpc: bool,
}

/// The body of one response.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyFlow {
    pub(super) duration: Duration,
    pub(super) holds_slot: bool,
    /// Size in bytes; 0: the minimum.
    pub(super) bytes: u32,
}

/// The answer to a request whose call has failed, and the header that marks overload as the cause; as in the simulator.
const DEPENDENCY_FAILED: u16 = 503;
const RETRY_AFTER: &str = "1";

/// The most that is written at once, so that a slow reader holds the writer up.
const MOST_AT_ONCE: u32 = 64 << 10;
/// What is written. The content does not matter.
static BYTES: [u8; MOST_AT_ONCE as usize] = [b'x'; MOST_AT_ONCE as usize];

impl EndpointJob {
    /// Works and responds; `None` when the upstream is gone.
    pub(super) async fn respond(self) -> Option<Response<AnyBody>> {
        match self.headers {
            HeaderTiming::AfterWork => self.respond_after_work().await,
            HeaderTiming::AtOnce => Some(self.respond_at_once().await),
        }
    }

    async fn respond_after_work(self) -> Option<Response<AnyBody>> {
        let (delay, flow, is_grpc) = (self.delay, self.flow, self.is_grpc);
        let (abandoned, clock) = (self.abandoned, Arc::clone(&self.clock));
        let work = self.work();
        let (slot, called) = match abandoned {
            Abandoned::Skip => work.await?,
            // A separate task continues after the caller's connection, and this future, are gone.
            Abandoned::Finish => tokio::spawn(work).await.ok()??,
        };
        if let Err(failed) = called {
            return Some(failed.response(is_grpc));
        }
        let slot = Self::hold(slot, flow);
        if !delay.is_zero() {
            sleep(delay).await;
        }
        clock.pace().awake().await;
        let Some(flow) = flow else {
            return Some(answer::ok(is_grpc));
        };
        let (writer, body) = pace::body();
        tokio::spawn(async move {
            flow.write(&writer, &clock, is_grpc).await;
            drop(slot);
        });
        Some(answer::with_body(body, is_grpc))
    }

    async fn respond_at_once(self) -> Response<AnyBody> {
        let (delay, flow, is_grpc) = (self.delay, self.flow, self.is_grpc);
        let (abandoned, clock) = (self.abandoned, Arc::clone(&self.clock));
        clock.pace().awake().await;
        let (writer, body) = pace::body();
        tokio::spawn(async move {
            let work = self.work();
            let slot = match abandoned {
                Abandoned::Finish => work.await,
                Abandoned::Skip => tokio::select! {
                    slot = work => slot,
                    () = writer.gone() => None,
                },
            };
            // The headers are sent, so a call that has failed breaks the response off.
            let Some((slot, Ok(()))) = slot else {
                return;
            };
            let slot = Self::hold(slot, flow);
            if writer.wait_until(Instant::now() + delay).await {
                let flow = flow.unwrap_or(BodyFlow::NONE);
                flow.write(&writer, &clock, is_grpc).await;
            }
            drop(slot);
        });
        answer::with_body(body, is_grpc)
    }

    /// Waits for the slot, works, and makes the calls; `None` when the upstream is gone.
    async fn work(self) -> Option<(HeldSlot, Result<(), DependencyFailed>)> {
        // Keep the seat until the work is over, even if the caller has gone away.
        let _seat = self.seat;
        let mut slot = self.turn.slot().await?;
        if let Some(entry) = self.entry {
            entry.note(slot.length(self.service));
        }
        slot.serve(self.service, self.clock.pace()).await;
        let called = match self.calls {
            Some(calls) => calls.make().await,
            None => Ok(()),
        };
        Some((slot, called))
    }

    /// The slot, if the body keeps it; otherwise it is passed on.
    fn hold(slot: HeldSlot, flow: Option<BodyFlow>) -> Option<HeldSlot> {
        flow.is_some_and(|flow| flow.holds_slot).then_some(slot)
    }
}

impl DependencyFailed {
    /// The answer to a request that needed the failed call.
    fn response(self, is_grpc: bool) -> Response<AnyBody> {
        let mut response = answer::failure(DEPENDENCY_FAILED, is_grpc);
        if self.is_overload {
            answer::set(response.headers_mut(), "retry-after", RETRY_AFTER);
        }
        response
    }
}

impl BodyFlow {
    /// Follows headers that were sent at once when the response has no body.
    const NONE: Self = Self {
        duration: Duration::ZERO,
        holds_slot: false,
        bytes: 0,
    };

    /// Writes the body until its end, or until the caller is gone.
    async fn write(self, writer: &Writer, clock: &EndpointClock, is_grpc: bool) {
        let (begun, pace) = (Instant::now(), clock.pace());
        // gRPC: an empty message.
        let piece: &'static [u8] = match MOST_AT_ONCE.min(self.bytes) {
            _ if is_grpc => &[0; 5],
            0 => b"data\n",
            some => BYTES
                .get(..usize::try_from(some).unwrap_or(0))
                .unwrap_or(&BYTES),
        };
        let least = self.bytes.div_ceil(MOST_AT_ONCE);
        for due in pace::at_least(least, self.duration) {
            let moment = pace.finish(begun, due);
            if !writer.wait_until(moment).await || !writer.send(Bytes::from_static(piece)).await {
                return;
            }
        }
        if is_grpc {
            let mut trailers = HeaderMap::new();
            answer::set(&mut trailers, "grpc-status", "0");
            // The caller may be gone, which is no failure.
            writer.trailers(trailers).await;
        }
    }
}
