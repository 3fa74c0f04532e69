//! What the engine may ask of a request.
//!
//! Every answer costs the filter a host call of some 11,000 instructions, so nothing is read up front: the
//! engine asks only when the answer can change the decision, which is under pressure.

use core::time::Duration;

use crate::criticality::Criticality;

/// A request that waits for a decision. The answers must not change while it does.
pub trait Request {
    /// How much the request matters.
    fn criticality(&mut self) -> Criticality;

    /// Whether some proxy on the way already tried it (`x-envoy-attempt-count` above 1).
    fn is_retry(&mut self) -> bool;

    /// Whether it says that a health checker sent it. A few of these at a time are never shed: shedding them could take a
    /// healthy endpoint out of rotation.
    fn is_health_check(&mut self) -> bool;

    /// How long its caller still waits, as the caller says; `None` if it says nothing, or is not asked.
    fn time_left(&mut self) -> Option<Duration> {
        None
    }

    /// Whether a body follows the headers: until it is complete, time is the caller's.
    fn has_body(&self) -> bool {
        false
    }

    /// Whether it asks to upgrade its connection, for example to a WebSocket. Its headers are then all of it that the upstream
    /// needs for an answer, and its body has no end. Asked only if it has a body, and the upstream has upgraded connections.
    fn is_upgrade(&mut self) -> bool {
        false
    }

    /// A stable hash of the caller, so that the same callers are served while others are shed; `None` when
    /// callers are not told apart.
    fn cohort(&mut self) -> Option<u32>;
}

/// A request of given properties, for tests, simulators and callers that know everything beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenRequest {
    /// See [`Request::criticality`].
    pub criticality: Criticality,
    /// See [`Request::is_retry`].
    pub retry: bool,
    /// See [`Request::time_left`].
    pub time_left: Option<Duration>,
}

impl Default for GivenRequest {
    fn default() -> Self {
        Self {
            criticality: Criticality::Critical,
            retry: false,
            time_left: None,
        }
    }
}

impl Request for GivenRequest {
    fn criticality(&mut self) -> Criticality {
        self.criticality
    }

    fn is_retry(&mut self) -> bool {
        self.retry
    }

    fn time_left(&mut self) -> Option<Duration> {
        self.time_left
    }

    fn is_health_check(&mut self) -> bool {
        false
    }

    fn cohort(&mut self) -> Option<u32> {
        None
    }
}
