//! The state of the limit that a successor starts from, put together from that of each law.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::capacity::Capacity;
use super::ceiling::Ceiling;
use super::contention::WaitInUse;
use super::cruise::Cruise;
use super::feedback::SloFeedback;
use super::floor::Floor;
use super::hold::Hold;
use super::in_force::InForce;
use super::late::LateRequests;
use super::unmeasured::Unmeasured;
use super::{CeilingCheckpoint, FloorCheckpoint, Limiter, LimiterState};
use crate::units::{Gain, PerSecond, Requests, Seconds};

/// What is known of an upstream's limit. By default nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitCheckpoint {
    /// The latency without a queue.
    pub floor: FloorCheckpoint,
    /// The latency now.
    pub latest: Quantiles,
    /// Answers a second that the upstream has shown it can give; 0 while unknown.
    pub capacity: PerSecond,
    /// The limit while a queue stands; `None`: no queue stands.
    pub hold: Option<Requests>,
    /// The bound on the limit from failures that load causes; `None`: no such failures.
    pub ceiling: Option<CeilingCheckpoint>,
    /// The part of the affordable wait that bursts may use; 0 while unknown.
    pub burst_gain: Gain,
    /// The number of endpoints that this was learned with; 0 while unknown.
    pub endpoints: u32,
}

/// Latencies of the last window, with the time in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The low quantile that shows a queue.
    pub low: Seconds,
    /// The objective's quantile.
    pub tail: Seconds,
}

impl LimitCheckpoint {
    /// Whether a queue stands.
    #[must_use]
    pub const fn is_congested(&self) -> bool {
        self.hold.is_some()
    }
}

impl Limiter {
    /// Continues from the state of an earlier leader.
    pub(crate) fn resume(known: &LimitCheckpoint) -> Self {
        let floor = Floor::resume(known.floor);
        Self {
            floor,
            capacity: Capacity::resume(known.capacity),
            state: match known.hold {
                Some(limit) => LimiterState::Hold(Box::new(Hold::resume(limit))),
                None => LimiterState::Cruise(Cruise::default()),
            },
            ceiling: Ceiling::resume(known.ceiling),
            burst_feedback: SloFeedback::resume(known.burst_gain),
            hold_feedback: None,
            has_held: known.hold.is_some_and(|limit| limit.get() > 0.0),
            doubtful_since: None,
            unrefused_for: Duration::ZERO,
            window: None,
            late: LateRequests::default(),
            load_trend: None,
            latest: known.latest,
            endpoints: known.endpoints,
            unmeasured: Unmeasured::default(),
            uploading: 0.0,
            in_force: InForce::NONE,
            wait_in_use: WaitInUse::default(),
        }
    }

    /// What a successor needs.
    pub(crate) fn checkpoint(&self) -> LimitCheckpoint {
        LimitCheckpoint {
            floor: self.floor.checkpoint(),
            latest: self.latest,
            capacity: self.capacity.checkpoint(),
            hold: match &self.state {
                LimiterState::Hold(hold) => Some(hold.checkpoint()),
                LimiterState::Cruise(_) => None,
            },
            ceiling: self.ceiling.checkpoint(),
            burst_gain: self.burst_feedback.checkpoint(),
            endpoints: self.endpoints,
        }
    }
}
