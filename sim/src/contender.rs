//! Who competes: what any algorithm that protects an upstream has to answer, one instance for each proxy.
//!
//! The world asks for admission, tells how each admitted request ended, and ticks. It hands in the time and, at
//! the making, a seed, so that a run depends on nothing else. An instance stands for a whole proxy, all of its
//! workers and upstreams: an algorithm that is shared by the workers keeps one state, one that is not keeps a
//! state for each.
//!
//! Edges: [`Done::latency`] is time to the end, the last byte of the response. Those that measure to another moment
//! hear of it by [`Contender::headers`] and [`Contender::first_byte`]. A request that was admitted is completed exactly
//! once, also when its caller went away.

use std::time::Duration;

use tidegate_core::{Criticality, Instant, Outcome, Phase};

use crate::fault::Fault;

/// The number of a request that was admitted or asks to be; no other request of the run has it.
pub type RequestId = u64;

/// A request that asks for admission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask<'a> {
    /// Its number; a retry is a request of its own.
    pub request: RequestId,
    /// The worker that asks, below [`crate::scenario::Scenario::workers`].
    pub worker: usize,
    /// The upstream, by its index in the scenario.
    pub upstream: usize,
    /// The path that is asked for.
    pub path: &'a str,
    /// How much it matters; critical where the scenario says nothing.
    pub criticality: Criticality,
    /// A stable hash of the caller: the same for all requests of one caller.
    pub cohort: u64,
    /// What the caller says it is, where the scenario says so; others are known by `cohort` alone.
    pub caller: Option<&'a str>,
    /// The caller's `user-agent`.
    pub agent: Option<&'a str>,
    /// Number of the attempt as the caller tells it, from 1.
    pub attempt: u32,
    /// Endpoints behind the upstream, as the proxy knows them, at least 1.
    pub endpoints: u32,
    /// Requests that this proxy has in flight to the upstream, this one not among them.
    pub in_flight: u32,
    /// Whether a body follows, the end of which [`Contender::uploaded`] tells.
    pub has_body: bool,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It goes to the upstream.
    Admit,
    /// It is refused at once.
    Shed {
        /// Why: a name for charts and counts, such as `limit`.
        reason: &'static str,
        /// Whether the reply tells callers that a retry is of no use (`x-envoy-ratelimited`). A plain 503 does not.
        is_final: bool,
    },
}

impl Admission {
    /// A plain refusal, which callers that retry do retry.
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
    /// How long it stood in the upstream's line, so far where it still does; none when it neither waited nor got a
    /// slot. Only what sits inside a real server could know, and only a contender that models such a one may look.
    pub waited: Option<Duration>,
    /// Requests in flight of this proxy to the upstream when it was admitted, itself included.
    pub in_flight_before: u32,
    /// The same now, itself still included.
    pub in_flight: u32,
    /// How much it mattered.
    pub criticality: Criticality,
    /// Number of the attempt as the caller told it, from 1.
    pub attempt: u32,
}

/// What charts show of a contender.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct View {
    /// Most requests in flight, of this proxy; none where there is no such limit.
    pub limit: Option<f64>,
    /// The breaker; none where there is none.
    pub breaker: Option<Phase>,
}

/// Something that a reader of a run wants to know: a breaker moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// When.
    pub at: Instant,
    /// The upstream, by its index in the scenario.
    pub upstream: usize,
    /// Where the breaker is now.
    pub breaker: Phase,
    /// Why, such as `consecutive_failures`.
    pub reason: &'static str,
}

/// An algorithm that protects upstreams, for one proxy with all of its workers.
pub trait Contender {
    /// Decides about a request. Whatever is admitted is completed later.
    fn admit(&mut self, ask: &Ask<'_>, now: Instant) -> Admission;

    /// Whether the request that was just admitted may go to this endpoint; whoever says yes has it. The balancer
    /// offers the endpoints in its own order until one is taken, and takes its first choice when none is.
    fn claim(&mut self, upstream: usize, endpoint: u32, now: Instant) -> bool {
        let _ = (upstream, endpoint, now);
        true
    }

    /// Hears that the body of an admitted request is complete; only of those that have one.
    fn uploaded(&mut self, request: RequestId, now: Instant) {
        let _ = (request, now);
    }

    /// Hears that the upstream's response headers for an admitted request are here, and what they say by themselves.
    fn headers(&mut self, request: RequestId, outcome: Outcome, now: Instant) {
        let _ = (request, outcome, now);
    }

    /// Hears that the first byte of its response's body is here; not where there is no body.
    fn first_byte(&mut self, request: RequestId, now: Instant) {
        let _ = (request, now);
    }

    /// Hears how an admitted request ended: with the last byte, or because one side went away.
    fn complete(&mut self, done: &Done, now: Instant);

    /// How often [`Contender::tick`] wants to be called; none: never.
    fn tick_every(&self) -> Option<Duration> {
        None
    }

    /// Upkeep.
    fn tick(&mut self, now: Instant) {
        let _ = now;
    }

    /// Injects a fault. What runs in one piece inside the proxy has none of these, and ignores them.
    fn inject(&mut self, fault: Fault, now: Instant) {
        let _ = (fault, now);
    }

    /// What charts show for an upstream.
    fn view(&self, upstream: usize, now: Instant) -> View;

    /// What it believes to have in flight to an upstream; none when it does not count. Runs are checked by this.
    fn in_flight(&self, upstream: usize) -> Option<u64> {
        let _ = upstream;
        None
    }

    /// Takes what was noted since the last call, in order of time.
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
