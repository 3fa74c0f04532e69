//! What just changed. Core returns events; skins log and count them.

use crate::breaker::TripReason;
use crate::limit::LimitReason;
use crate::upstream::UpstreamId;

/// Something that a log or a metric should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The breaker opened.
    Tripped {
        /// Whose.
        upstream: UpstreamId,
        /// Why.
        reason: TripReason,
    },
    /// A probe succeeded: traffic is admitted step by step.
    Ramping {
        /// Whose.
        upstream: UpstreamId,
    },
    /// The reason for the concurrency limit changed.
    LimitReason {
        /// Whose.
        upstream: UpstreamId,
        /// Which.
        reason: LimitReason,
    },
    /// The breaker closed.
    Reset {
        /// Whose.
        upstream: UpstreamId,
    },
}

/// Events in the order they happened. Empty on nearly every call, and then nothing is allocated.
pub type Events = Vec<Event>;
