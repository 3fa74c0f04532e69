//! The interface of an algorithm that protects upstreams. A run has one instance for each proxy.
//!
//! The world asks for admission, reports how each admitted request ended, and ticks. It passes in the time and, when an
//! instance is made, a seed, so that a run depends on nothing else. An instance represents a whole proxy with all of its
//! workers and upstreams. An algorithm that its workers share keeps one state; otherwise it keeps one state for each
//! worker.
//!
//! Edges: [`Done::latency`] is the time to the last byte of the response. Algorithms that measure to another moment use
//! [`Contender::headers`] and [`Contender::first_byte`]. Each admitted request is completed exactly once, even when its
//! caller goes away.

use std::time::Duration;

use tidegate_core::{BreakerPhase, Criticality, Instant, Outcome};

use crate::decision::LimitDecision;
use crate::fault::ProxyFault;

/// The number of a request, unique in the run.
pub type RequestId = u64;

/// A request that needs a decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask<'a> {
    /// Its number; a retry has a number of its own.
    pub request: RequestId,
    /// The worker that asks, below [`crate::scenario::Scenario::workers`].
    pub worker: usize,
    /// The upstream, by its index in the scenario.
    pub upstream: usize,
    /// The service that makes the request, by its index; none where a caller of the scenario does.
    pub service: Option<usize>,
    /// The requested path.
    pub path: &'a str,
    /// How much it matters; critical where the scenario says nothing.
    pub criticality: Criticality,
    /// A stable hash of the caller: the same for all requests of one caller, those of services on its behalf included.
    pub cohort: u64,
    /// The cohort that the caller claims; none where the scenario gives none, and `cohort` alone identifies it.
    pub caller: Option<&'a str>,
    /// The caller's `user-agent`.
    pub agent: Option<&'a str>,
    /// How long the caller still waits, if it says so.
    pub time_left: Option<Duration>,
    /// Number of the attempt as the caller tells it, from 1.
    pub attempt: u32,
    /// Endpoints behind the upstream, as the proxy knows them, at least 1.
    pub endpoints: u32,
    /// Requests that this proxy has in flight to the upstream, without this one.
    pub in_flight: u32,
    /// Whether a body follows; [`Contender::uploaded`] reports its end.
    pub has_body: bool,
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It goes to the upstream.
    Admit,
    /// It is refused at once.
    Shed {
        /// The reason, for charts and counts, such as `limit`.
        reason: &'static str,
        /// Whether the reply tells callers not to retry (`x-envoy-ratelimited`). A plain 503 does not.
        is_final: bool,
    },
}

impl Admission {
    /// A plain refusal. Callers with retries retry it.
    #[must_use]
    pub const fn shed(reason: &'static str) -> Self {
        Self::Shed {
            reason,
            is_final: false,
        }
    }
}

/// An admitted request that has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Done {
    /// The number it was admitted under.
    pub request: RequestId,
    /// The worker that admitted it.
    pub worker: usize,
    /// The upstream, by its index in the scenario.
    pub upstream: usize,
    /// The endpoint that it was sent to, below [`Ask::endpoints`].
    pub endpoint: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether the upstream's response headers had come.
    pub is_answered: bool,
    /// From admission to the end.
    pub latency: Duration,
    /// Time in the upstream's queue, so far if it is still there; none if it neither waited nor got a slot. Only code
    /// inside a real server could know this, so only contenders that model such a server may use it.
    pub waited: Option<Duration>,
    /// Requests in flight of this proxy to the upstream when it was admitted, itself included.
    pub in_flight_before: u32,
    /// The same now, itself included.
    pub in_flight: u32,
    /// How much it mattered.
    pub criticality: Criticality,
    /// Number of the attempt as the caller told it, from 1.
    pub attempt: u32,
}

/// An upstream that has begun to work for a request. Only code inside a real server, or what monitors it, could know this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkBegun {
    /// The upstream, by its index in the scenario.
    pub upstream: usize,
    /// How long the request has waited for a slot.
    pub waited: Duration,
    /// How long the work takes, without the calls that the request makes of other services.
    pub work: Duration,
    /// Slots of the upstream's endpoints in rotation together.
    pub slots: u32,
}

/// What charts show of a contender.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ContenderView {
    /// Most requests in flight, of this proxy; none where there is no such limit.
    pub limit: Option<f64>,
    /// The breaker; none where there is none.
    pub breaker: Option<BreakerPhase>,
}

/// A change of a breaker's state, for the reader of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// When.
    pub at: Instant,
    /// The upstream, by its index in the scenario.
    pub upstream: usize,
    /// Where the breaker is now.
    pub breaker: BreakerPhase,
    /// Why, such as `consecutive_failures`.
    pub reason: &'static str,
}

/// An algorithm that protects upstreams, for one proxy with all of its workers.
pub trait Contender {
    /// Decides about a request. Each admitted request is completed later.
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission;

    /// Whether the request that was just admitted may go to this endpoint. The balancer offers the endpoints in its own
    /// order until this returns true, and uses its first choice if no endpoint is accepted.
    fn claim(&mut self, upstream: usize, endpoint: u32, now: Instant) -> bool {
        let _ = (upstream, endpoint, now);
        true
    }

    /// Reports that the body of an admitted request is complete; not called for requests without a body.
    fn uploaded(&mut self, request: RequestId, now: Instant) {
        let _ = (request, now);
    }

    /// Reports the response headers of an admitted request, and the outcome that they show.
    fn headers(&mut self, request: RequestId, outcome: Outcome, now: Instant) {
        let _ = (request, outcome, now);
    }

    /// Reports the first byte of the response's body; not called for responses without a body.
    fn first_byte(&mut self, request: RequestId, now: Instant) {
        let _ = (request, now);
    }

    /// Whether [`Contender::begun`] is to be called.
    fn watches_work(&self) -> bool {
        false
    }

    /// Reports that an upstream has begun to work for a request, whichever proxy admitted it.
    fn begun(&mut self, begun: &WorkBegun, now: Instant) {
        let _ = (begun, now);
    }

    /// Reports how an admitted request ended: with the last byte, or because one side went away.
    fn complete(&mut self, done: &Done, now: Instant);

    /// The interval between calls of [`Contender::tick`]; none: it is never called.
    fn tick_every(&self) -> Option<Duration> {
        None
    }

    /// Does periodic work, every [`Contender::tick_every`].
    fn tick(&mut self, now: Instant) {
        let _ = now;
    }

    /// Injects a fault. Algorithms built into the proxy do not have these faults, and ignore them.
    fn inject(&mut self, fault: ProxyFault, now: Instant) {
        let _ = (fault, now);
    }

    /// What charts show for an upstream.
    fn view(&self, upstream: usize, now: Instant) -> ContenderView;

    /// Why the limit for an upstream is what it is; none if it cannot say.
    fn decision(&self, upstream: usize, now: Instant) -> Option<LimitDecision> {
        let _ = (upstream, now);
        None
    }

    /// Its own count of requests in flight to an upstream; none if it keeps none. Runs are checked for leaks with it.
    fn in_flight(&self, upstream: usize) -> Option<u64> {
        let _ = upstream;
        None
    }

    /// Takes the notes since the last call, in order of time.
    fn take_notes(&mut self) -> Vec<Note> {
        Vec::new()
    }
}

/// A contender cannot be made for a scenario.
#[derive(Debug, thiserror::Error)]
#[error("contender {contender}: {cause}")]
pub struct ContenderError {
    /// Its name.
    pub contender: &'static str,
    /// What is wrong.
    pub cause: String,
}

/// A contender that was made, or why not.
pub type Made = Result<Box<dyn Contender>, ContenderError>;
