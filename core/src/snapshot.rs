//! Values at one instant, for metrics, tests and diagnosis.

use core::time::Duration;

use crate::breaker::BreakerPhase;
use crate::learned::Learned;
use crate::limit::LimitReason;
use crate::tally::Counted;
use crate::upstream::{UpstreamId, UpstreamKey};

/// An engine at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Every upstream that has been used, in the order of its id; the first is the one that all beyond the cap share.
    pub upstreams: Vec<UpstreamSnapshot>,
    /// Requests whose upstream had to share the state of all beyond the cap.
    pub overflowed: u64,
}

/// One upstream at one instant, as this worker sees it, without a copy of anything large.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamView<'a> {
    /// Its handle.
    pub id: UpstreamId,
    /// Its name.
    pub key: &'a UpstreamKey,
    /// [`UpstreamKey::hash`] of the name.
    pub hash: u64,
    /// The concurrency limit of the proxy.
    pub limit: u32,
    /// The breaker.
    pub breaker: BreakerPhase,
    /// Learned state.
    pub learned: &'a Learned,
    /// What this worker counted.
    pub tally: &'a Counted,
}

/// One upstream at one instant, as this worker sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSnapshot {
    /// Its handle.
    pub id: UpstreamId,
    /// Its name.
    pub key: UpstreamKey,
    /// The worker's own requests in flight.
    pub in_flight: u32,
    /// The worker's own requests that have not ended and do not count as load: open responses, and those that were taken out.
    pub open: u32,
    /// The worker's own uploads that may soon be in flight.
    pub uploading: u32,
    /// The concurrency limit of the proxy.
    pub limit: u32,
    /// Why it is that; only the leader knows.
    pub limit_reason: Option<LimitReason>,
    /// The breaker.
    pub breaker: BreakerPhase,
    /// The open interval in force; zero when closed.
    pub open_interval: Duration,
    /// Learned state.
    pub learned: Learned,
    /// What this worker counted.
    pub tally: Counted,
}
