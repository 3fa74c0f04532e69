//! The test whether fewer requests in flight achieve more: a dip of the limit.
//!
//! Behind a contended lock, requests in flight slow each other down. The delay looks like a queue of the wanted length, so no other
//! test asks. A dip shortens the wait by up to half for one measurement. Behind a queue that costs next to nothing, because the
//! upstream stays busy. Why, and what follows, is in docs/laws/limit.md.

use super::follow::TOO_LITTLE;
use super::steps::{Step, needs_time};
use super::{BEAT, DEEP_DOWN, Hold, HoldFinding, HoldTarget, Phase, STEP_DOWN, raise};
use crate::ablation::{Mechanism, is_off};
use crate::limit::queue_test::Measurement;
use crate::sample::Sample;

/// Steps down, the deepest first. A dip is the first of them that leaves half of the wait, so that the upstream stays busy. Proxies
/// that share an upstream mostly choose the same step. So the throughput of one of them rises only if that of all does: with steps
/// of any size, it would also rise where others step down deeper.
const STEPS: [f64; 3] = [DEEP_DOWN, STEP_DOWN, 0.85];
/// A dip that shows no contention multiplies the period by this.
const RARER: u32 = 4;
/// The longest period, beats.
const MOST_BEATS: u32 = 16;
/// Dips with a long period come half of the time between two raises after one of these, seconds.
const AFTER_RAISE: u64 = raise::PERIOD.as_secs() / 2;

/// When dips are due: on beats of the common clock, so that all proxies of an upstream dip together. A dip that shows no contention makes the period
/// longer. Longer periods are multiples of shorter ones, so a rare dip of one proxy meets the frequent dips of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct DipSchedule {
    /// Beats between two dips: a power of two.
    period: u32,
}

impl DipSchedule {
    pub(super) const START: Self = Self { period: 1 };

    /// Whether a dip became due after the second `last` of the common clock, and not later than in `second`.
    pub(super) const fn is_due(self, last: u64, second: u64) -> bool {
        let period = BEAT.as_secs() * self.period as u64;
        (last + AFTER_RAISE) / period != (second + AFTER_RAISE) / period
    }

    /// The last dip has shown nothing.
    fn delay(&mut self) {
        self.period = (self.period * RARER).min(MOST_BEATS);
    }
}

impl Hold {
    /// Begins a dip, if it can show something. `target` belongs to the measurement at this limit. Returns whether it did.
    pub(super) fn begin_dip(&mut self, before: Measurement, target: &HoldTarget) -> bool {
        let is_queued = target.delay > target.wait * TOO_LITTLE;
        if self.is_below_one() || target.in_doubt || !is_queued || is_off(Mechanism::Dip) {
            return false;
        }
        let least = target.shortened().model();
        let mut steps = STEPS.into_iter().map(|step| self.lower(self.limit * step));
        let Some(to) = steps.find(|to| *to >= least) else {
            return false;
        };
        let from = self.limit;
        // With few answers a dip takes longer, and costs a proxy with few requests throughput that others get.
        if !before.can_judge(to / from) {
            return false;
        }
        self.phase = Phase::Dip(Step { from, before });
        self.change(to);
        true
    }

    /// Ends a dip: with more throughput than before the wait stays shorter, otherwise the limit goes back.
    pub(super) fn end_dip(
        &mut self,
        measured: Sample,
        step: Step,
        after: Measurement,
        target: &HoldTarget,
    ) -> HoldFinding {
        let before = step.before;
        let is_contended = after.carries_more_than(&before);
        let is_open = !is_contended && !before.carries_more_than(&after) && !after.tells(&before);
        if is_open && needs_time(&measured) {
            self.measured = Some(measured);
            return HoldFinding::Nothing;
        }
        self.phase = Phase::Settled { is_blocked: false };
        if is_contended {
            self.dips = DipSchedule::START;
            self.settle(&measured);
            self.follow(&measured, after, &target.shortened(), false);
            HoldFinding::Contended
        } else {
            self.dips.delay();
            self.change(step.from);
            HoldFinding::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds at which a dip is due, after 0, 1, 2 and 3 dips without contention.
    #[test]
    fn dips_without_contention_become_rare_and_stay_on_the_common_clock() {
        let mut dips = DipSchedule::START;
        for expected in [
            &[4, 8, 12, 16, 20, 24, 28, 32][..],
            &[8, 24, 40, 56],
            &[56, 120, 184],
            &[56, 120, 184],
        ] {
            let due: Vec<u64> = (1..=184)
                .filter(|second| dips.is_due(second - 1, *second))
                .collect();
            assert_eq!(due[..expected.len()], *expected);
            dips.delay();
        }
    }
}
