//! The limit follows the measured queue delay.

use super::{
    APP_LIMITED, DEEP_DOWN, Hold, HoldTarget, LEAST_LIMIT, LEAST_STEP, Phase, STEP_DOWN, Step,
};
use crate::ablation::{Mechanism, is_off};
use crate::limit::queue_test::Measurement;
use crate::sample::Sample;

/// The largest step up, as a factor of the limit, and the smallest.
const STEP_UP: f64 = 1.5;
const CREEP_UP: f64 = 1.1;
/// A queue delay of at least this share of the wanted wait changes nothing.
pub(super) const TOO_LITTLE: f64 = 0.5;
/// A step down is tried when this many times the formula's value is in flight.
const STRETCHED: f64 = 1.5;

impl Hold {
    /// Halves the limit, down to one request in flight. No answer has a latency, so none that the objective measures can be lost, and there
    /// is nothing that a test could compare.
    pub(in crate::limit) fn halve(&mut self) {
        if !self.is_below_one() {
            self.halved_from.get_or_insert(self.limit);
            self.phase = Phase::Settled { is_blocked: false };
            self.change((self.limit * DEEP_DOWN).max(LEAST_STEP));
        }
    }

    /// Doubles a halved limit with each window of answers, up to what it was; while they show a queue, up to the formula's value. A
    /// service that became slower looks like a queue, and needs at least as much. Returns whether the limit changed.
    pub(super) fn double_again(
        &mut self,
        window: &Sample,
        target: impl Fn(&Sample) -> HoldTarget,
    ) -> bool {
        // Answers to requests from before the step show the queue that was.
        let Some(from) = self.halved_from.filter(|_| !self.has_earlier()) else {
            return false;
        };
        let target = target(window);
        let most = if target.is_long() {
            target.model().min(from)
        } else {
            from
        };
        if self.limit >= most {
            self.halved_from = None;
            return false;
        }
        self.change((self.limit / DEEP_DOWN).min(most));
        true
    }

    /// Moves the limit towards the wanted wait while no test is under way.
    pub(super) fn follow(
        &mut self,
        measured: &Sample,
        point: Measurement,
        target: &HoldTarget,
        is_blocked: bool,
    ) {
        let refused = measured.tally.refused_for_load() > 0;
        // Below one request in flight there are no places that packs could leave empty: each grant is claimed.
        let is_below_one = self.is_below_one();
        if point.in_flight < self.limit * APP_LIMITED
            && !is_below_one
            && !is_off(Mechanism::AppLimited)
        {
            self.settled = None;
            if refused {
                let more = (self.limit * STEP_UP).min(target.most).max(self.limit);
                self.change(more);
            }
            return;
        }
        // Below one each grant is claimed while requests are refused, so the throughput is this proxy's share of the capacity. The
        // capacity that windows teach falls too slowly: a window has one answer, or none.
        let capacity = if is_below_one && refused && !is_off(Mechanism::OwnShare) {
            target.capacity.min(point.throughput)
        } else {
            target.capacity
        };
        let model = HoldTarget {
            capacity,
            ..*target
        }
        .model();
        let deepest = if point.latency > target.objective {
            DEEP_DOWN
        } else {
            STEP_DOWN
        };
        let lower = self.lower((self.limit * deepest).max(model));
        // With one endpoint, requests share the queue. If the fast answers show none, and latencies vary too much to judge a
        // step, a step would only cost throughput.
        let is_vain = !target.hides_queues
            && point.latency <= target.harmless
            && !point.can_judge(lower / self.limit);
        // More in flight than the formula's value: latency is longer than believed, though the fast answers do not show it. Below one, a
        // few requests whose callers leave are most of what is in flight, and have no latency. So only the others count.
        let in_flight = if is_below_one {
            point.in_flight.min(point.throughput * point.latency)
        } else {
            point.in_flight
        };
        let is_stretched =
            in_flight > model * STRETCHED && !is_vain && !is_off(Mechanism::Stretched);
        let is_long = target.is_long() || is_stretched;
        let can_fall = self.limit > model && self.limit > LEAST_LIMIT && !is_blocked;
        if is_long && can_fall && !is_off(Mechanism::StepDown) {
            // One proxy of many moves the common queue too little for a test.
            if !is_below_one || is_off(Mechanism::UntestedSteps) {
                self.phase = Phase::Cut(Step {
                    from: self.limit,
                    before: point,
                });
            }
            self.change(lower);
        } else if target.delay < target.wait * TOO_LITTLE
            && refused
            && !is_stretched
            && !is_off(Mechanism::StepUp)
        {
            let creep = (self.limit * CREEP_UP).max(self.limit + LEAST_STEP.min(self.limit / 2.0));
            let more = model.min(self.limit * STEP_UP);
            let is_slow = more < creep && !is_off(Mechanism::CreepUp);
            self.change(if is_slow { creep } else { more.max(self.limit) });
        }
    }
}
