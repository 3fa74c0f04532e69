//! Why a limit is what it is, for the reader of a run.
//!
//! The world asks the contender of the first proxy whenever it takes a sample, and keeps what differs from before. It does not
//! feed the digest: a decision that changes anything shows in what happens to requests.

use tidegate_core::LimitReason;

/// A limit, the law that sets it, and the figures that it was computed from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitDecision {
    /// Most requests in flight, of the proxy.
    pub limit: u32,
    /// The law that sets it; none while no worker leads.
    pub reason: Option<LimitReason>,
    /// Answers a second that the upstream has shown it can give; 0 while unknown.
    pub capacity: f64,
    /// Mean latency without a queue, in seconds; 0 while unknown.
    pub floor_s: f64,
    /// The bound from failures that load causes; none: no such failures.
    pub ceiling: Option<f64>,
}

impl LimitDecision {
    /// Whether a reader sees a difference: another limit, or another law.
    #[must_use]
    pub fn differs(&self, other: &Self) -> bool {
        self.limit != other.limit || self.reason != other.reason
    }
}

/// A decision and when it was seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitMove {
    /// When, in seconds from the start.
    pub at_s: f64,
    /// The upstream, by its index in the scenario.
    pub upstream: usize,
    /// What the first proxy decided.
    pub decision: LimitDecision,
}
