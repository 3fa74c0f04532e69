//! What one worker tells of one upstream.

use serde::{Deserialize, Serialize};

use super::counts;
use crate::breaker::TripReason;
use crate::tally::{Counted, Tally};
use crate::time::Instant;

/// What one worker saw of one upstream. On the wire it is the same as in memory: its counts stay packed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report<'a> {
    /// Which upstream: [`crate::UpstreamKey::hash`].
    #[serde(with = "postcard::fixint::le")]
    pub upstream: u64,
    /// When it began to count: with its VM, or later when the upstream came (back) into its registry.
    pub began: Instant,
    /// Requests it has in flight now.
    pub in_flight: u32,
    /// Uploads of its own that may soon be in flight.
    pub uploading: u32,
    /// Requests of its own that have not ended and are no load: open responses, and those that were taken out.
    pub open: u32,
    /// Of those in flight, how many wait for response headers far beyond the latency target.
    pub overdue: u32,
    /// The most requests in flight, in the whole proxy, that an arrival met since the last report but one.
    pub peak: u32,
    /// The fewest requests of others in flight that an arrival met since the last report but one: those in the whole
    /// proxy, less this worker's own. Below zero when the proxy's count is too low; `None` when nobody came.
    pub others: Option<i32>,
    /// When response headers last came.
    pub last_response: Instant,
    /// Endpoints behind the upstream; 0 when unknown.
    pub endpoints: u32,
    /// The longest Retry-After since the last report but one, milliseconds.
    pub retry_after_ms: u32,
    /// The worker's last trip on its own evidence.
    pub trip: Option<LocalTrip>,
    /// All it counted since it began.
    pub(crate) counts: &'a [u8],
}

/// A worker tripped before the leader could tell it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalTrip {
    /// Counts the worker's trips of this upstream, so that each is heard once.
    pub sequence: u32,
    /// The epoch whose evidence it judged.
    pub epoch: u32,
    /// Why.
    pub reason: TripReason,
}

/// An upstream by its name: what a leader must be told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Introduction<'a> {
    /// The cluster's name.
    pub cluster: &'a str,
    /// The route's, where it has one.
    pub route: Option<&'a str>,
    /// Whether the worker's breaker has ever tripped on its own evidence.
    pub tripped: bool,
}

impl<'a> Report<'a> {
    /// The same report of these counts, packed into `bytes`.
    pub(crate) fn with_counts(self, counted: &Counted, bytes: &'a mut Vec<u8>) -> Self {
        bytes.clear();
        counts::write(counted, bytes);
        Self {
            counts: bytes,
            ..self
        }
    }

    /// Adds what was counted since an earlier report, which had these counts.
    pub(crate) fn add_news(&self, sum: &mut Tally, before: &[u8]) {
        counts::add_difference(sum, before, self.counts);
    }
}
