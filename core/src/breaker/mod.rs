//! The circuit breaker: stops calling an upstream that fails, and finds out when it is back.
//!
//! ```text
//!             trip                      until passes
//!   Closed ----------> Open ------------------------------> half-open (Open, its time over)
//!     ^                 ^ ^                                      |             |
//!     |                 | |            probe failed              |             |
//!     |                 | +--------------------------------------+             | probe succeeded
//!     |                 |       failures during the ramp                       v
//!     |                 +---------------------------------------------------- Ramp
//!     |                              ramp done                                 |
//!     +------------------------------------------------------------------------+
//! ```
//!
//! Half-open begins when the open interval has passed, in every worker at the same instant and without a message. It
//! grants a ceiling on the number of probes ever sent, so the whole proxy sends exactly that many. A successful probe
//! starts the ramp. The ramp begins with as many requests as the upstream carried without a queue, or with a few if that
//! is unknown, and doubles at every step, so that waiting traffic does not overload a cold upstream again.
//!
//! [`evidence`] and [`successes`] decide when to trip, [`interval`] for how long; [`judge`] runs the machine for the whole
//! proxy, [`gate`] is each worker's side of it.

mod evidence;
mod failure_peak;
mod gate;
mod interval;
mod judge;
mod silence;
mod successes;
mod thresholds;
mod window;

pub(crate) use gate::{Gate, Passage};
pub use judge::{BreakerCheckpoint, Outage, RatesCheckpoint};
pub(crate) use judge::{BreakerTransition, Findings, Judge, ramp_start};
pub(crate) use thresholds::{FIRST_FAILURE_RATE, Thresholds};

use serde::{Deserialize, Serialize};

use crate::time::Instant;

/// The breaker's state, with what it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum BreakerState {
    /// Requests flow.
    #[default]
    Closed,
    /// Nothing flows until `until`, then probes do: half-open.
    Open {
        /// When half-open begins.
        until: Instant,
        /// In half-open, a probe may go while the count of probes ever sent is below this.
        probes: u64,
    },
    /// Half-open after a successful probe: a few requests at a time, more at every step.
    Ramp {
        /// Most requests in flight.
        limit: u32,
    },
}

/// The breaker's state as users name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerPhase {
    /// Requests flow.
    Closed,
    /// Probes or the ramp.
    HalfOpen,
    /// Nothing flows.
    Open,
}

impl BreakerState {
    /// The state's name at `now`.
    #[must_use]
    pub fn phase(&self, now: Instant) -> BreakerPhase {
        match self {
            Self::Closed => BreakerPhase::Closed,
            Self::Open { until, .. } if now < *until => BreakerPhase::Open,
            Self::Open { .. } | Self::Ramp { .. } => BreakerPhase::HalfOpen,
        }
    }
}

/// Why the breaker opened. A closed set: the names are metric labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TripReason {
    /// Many failures with so few successes between them that only a dead upstream explains it.
    ConsecutiveFailures,
    /// The success rate of the window is below what the policy tolerates.
    LowSuccessRate,
    /// Requests wait for too long and no answer comes.
    Hang,
    /// A probe, or the traffic after it, failed.
    ProbeFailed,
}

impl TripReason {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::ConsecutiveFailures,
        Self::LowSuccessRate,
        Self::Hang,
        Self::ProbeFailed,
    ];

    /// The reason's name in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConsecutiveFailures => "consecutive_failures",
            Self::LowSuccessRate => "low_success_rate",
            Self::Hang => "hang",
            Self::ProbeFailed => "probe_failed",
        }
    }
}

/// A worker's trip on its own evidence, before the leader decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalTrip {
    /// Counts the worker's trips of this upstream, so that each is counted once.
    pub sequence: u32,
    /// The epoch of the evidence.
    pub epoch: u32,
    /// Why.
    pub reason: TripReason,
}
