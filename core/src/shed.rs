//! A refusal and its reason.

use core::fmt;
use core::time::Duration;

/// Why a request was shed. A closed set: the names are response code details and metric labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShedReason {
    /// The concurrency limit is reached.
    Limit,
    /// More important requests need what the upstream can carry.
    Criticality,
    /// A retry, and first attempts of its class need what the upstream can carry.
    Retry,
    /// The upstream is near its limit, and the caller waits for less time than nearly all answers take.
    Deadline,
    /// As many requests have not ended as the policy allows.
    MaxOpen,
    /// The breaker is open.
    BreakerOpen,
    /// The breaker is half-open, and all probes it grants are under way.
    BreakerHalfOpen,
}

impl ShedReason {
    /// Every reason, in the order of its index.
    pub const ALL: [Self; 7] = [
        Self::Limit,
        Self::Criticality,
        Self::Retry,
        Self::Deadline,
        Self::MaxOpen,
        Self::BreakerOpen,
        Self::BreakerHalfOpen,
    ];

    /// The reason's name in metrics and response code details.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Criticality => "criticality",
            Self::Retry => "retry",
            Self::Deadline => "deadline",
            Self::MaxOpen => "max_open",
            Self::BreakerOpen => "breaker_open",
            Self::BreakerHalfOpen => "breaker_half_open",
        }
    }
}

impl fmt::Display for ShedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request refused on purpose, to protect the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shed {
    /// Why.
    pub reason: ShedReason,
    /// When the caller may try again, jitter included, so that callers do not come back all at once.
    pub retry_after: Duration,
}
