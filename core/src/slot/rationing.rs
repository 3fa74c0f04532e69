//! What a worker keeps of an upstream from the first request on that finds it near its limit, or that is refused.
//!
//! Most upstreams are never near their limits, and have no room for it.

use core::time::Duration;

use super::Slot;
use super::shed_budget::ShedBudget;
use crate::deadline::{Deadlines, Prospect, least_latency};
use crate::heavy::HeavyCohorts;
use crate::time::Instant;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Rationing {
    heavy: HeavyCohorts,
    deadlines: Deadlines,
    shed_budget: ShedBudget,
}

impl Slot {
    /// Whether deadlines matter. `is_pressed`: this request finds the upstream near its limit.
    #[inline]
    pub(crate) fn heeds_deadlines(&mut self, is_pressed: bool, now: Instant) -> bool {
        if is_pressed {
            return self.rationing().deadlines.are_heeded(true, now);
        }
        let rationing = self.rationing.as_mut();
        rationing.is_some_and(|it| it.deadlines.are_heeded(false, now))
    }

    /// Judges a request whose caller waits for `left`, and which would make `load` in flight.
    pub(crate) fn judge_deadline(&mut self, left: Duration, load: u32) -> Prospect {
        let least = least_latency(&self.learned.limit, load);
        self.rationing().deadlines.judge(left, least)
    }

    /// Learns whether a request that was explored was answered in time.
    pub(super) fn learn_deadline(&mut self, in_time: bool) {
        self.rationing().deadlines.learn(in_time);
    }

    /// The cohorts that came often.
    pub(crate) fn heavy(&mut self) -> &mut HeavyCohorts {
        &mut self.rationing().heavy
    }

    /// Takes one request from the budget of `shed.maxShare`; `share` is in 0..=1. Returns whether it may be shed.
    pub(crate) fn take_from_budget(&mut self, share: f64, arrivals: u64) -> bool {
        match ShedBudget::without_budget(share) {
            Some(may_shed) => may_shed,
            None => self.rationing().shed_budget.take(share, arrivals),
        }
    }

    fn rationing(&mut self) -> &mut Rationing {
        self.rationing.get_or_insert_with(first)
    }
}

#[cold]
fn first() -> Box<Rationing> {
    Box::default()
}
