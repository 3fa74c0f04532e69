//! How long requests may wait: the `w` of `limit = C (T + w)`.
//!
//! A burst that drains in time costs nothing, so while no queue stands the wait is what the objective leaves after serving.
//! While a queue stands, the wait is just long enough to keep the upstream busy between arrivals, or a small part of what the objective
//! leaves, if that is longer. Answers that exceed the
//! objective without any queue are late however much is shed. They are left out, or a slow class would take the wait from
//! all other requests.

use super::Limiter;
use super::feedback::SloFeedback;
use super::headroom::headroom;
use crate::ablation::{Mechanism, is_off};
use crate::config::Slo;

/// Share of the objective's latency that may be used; the rest is for what the proxy does not see: the way to the caller.
const OBJECTIVE_USED: f64 = 0.95;
/// A latency below this share of the objective's leaves so much room that a queue in it does no harm.
const HARMLESS: f64 = 0.7;
/// The least wait, as a share of the objective's latency, where serving leaves nothing.
const MIN_WAIT: f64 = 0.1;
/// The wait, in mean latencies, where no answer can be in time. There, shedding only keeps queues from growing without end,
/// so a service may become this many times slower before that counts as a queue.
pub(super) const UNREACHABLE_WAIT: f64 = 3.0;
/// While a queue stands, the wait is at most this share of the affordable wait, ...
pub(super) const HELD_SHARE: f64 = 0.35;
/// ... and at least this share: a service that has become slower needs more in flight than the floor tells.
const LEAST_HELD_SHARE: f64 = 0.1;

/// The longest latency that leaves so much room that a queue in it does no harm, seconds.
pub(super) fn harmless(slo: &Slo) -> f64 {
    slo.latency_target().as_secs_f64() * HARMLESS
}

impl Limiter {
    /// How long a request may wait within the objective, seconds: what is left after serving.
    pub(super) fn affordable(&self, slo: &Slo) -> f64 {
        self.wait_at(slo, 1.0, self.tail(slo))
    }

    /// The same while a queue stands: a floor in doubt counts only as far as it does no harm.
    pub(super) fn affordable_held(&self, slo: &Slo) -> f64 {
        let tail = if self.is_in_doubt(slo) {
            Some(self.floor.tail.min(harmless(slo)))
        } else {
            self.tail(slo)
        };
        self.wait_at(slo, 1.0, tail)
    }

    /// How long bursts may wait, adjusted by feedback, seconds.
    pub(super) fn burst_wait(&self, slo: &Slo) -> f64 {
        if is_off(Mechanism::BurstWait) {
            return 0.0;
        }
        self.wait_at(slo, self.burst_feedback.gain(), self.tail(slo))
            * self.wait_in_use.share_of_bursts()
    }

    /// The wait that keeps the upstream busy, also if it is somewhat slower than believed, seconds.
    pub(super) fn held_wait(&self, capacity: f64, slo: &Slo) -> f64 {
        let carried = capacity * self.believed_floor(slo);
        let busy = headroom(carried, self.endpoints) / capacity.max(f64::MIN_POSITIVE);
        let affordable = self.affordable_held(slo);
        let (least, most) = (affordable * LEAST_HELD_SHARE, affordable * HELD_SHARE);
        let wait = if busy > most && !is_off(Mechanism::HeldShare) {
            most
        } else if busy < least && !is_off(Mechanism::LeastHeldShare) {
            least
        } else {
            busy
        };
        let feedback = self.hold_feedback.as_deref();
        wait * feedback.unwrap_or(&SloFeedback::OF_HOLD).gain() * self.wait_in_use.share()
    }

    /// What the objective leaves after serving, seconds. Serving the last request in a queue takes about the mean, and nearly
    /// never more than the tail. A `gain` of 0.5 reserves the tail, 1.5 the mean, and 1 the middle between them. A gain below
    /// 0.5 leaves less than the tail does.
    fn wait_at(&self, slo: &Slo, gain: f64, tail: Option<f64>) -> f64 {
        let target = slo.latency_target().as_secs_f64();
        let Some(tail) = tail else {
            return self.floor.mean * UNREACHABLE_WAIT;
        };
        let left = (target * OBJECTIVE_USED - tail).max(target * MIN_WAIT);
        if gain < 0.5 {
            return left * gain * 2.0;
        }
        let spread = (tail - self.floor.mean).max(0.0);
        left + spread * (gain - 0.5)
    }

    /// The tail of the answers that can be in time, seconds; `None` if most cannot.
    fn tail(&self, slo: &Slo) -> Option<f64> {
        let used = slo.latency_target().as_secs_f64() * OBJECTIVE_USED;
        let quantile = slo.latency_quantile().as_f64();
        let tail = self.floor.tail_within(used, quantile);
        let is_late = self.floor.tail > used;
        let mechanism = match tail {
            None => Mechanism::Unreachable,
            Some(_) => Mechanism::TailWithin,
        };
        if is_late && is_off(mechanism) {
            return Some(self.floor.tail);
        }
        tail
    }

    /// Whether most answers are late without a queue, as far as known.
    pub(super) fn is_late(&self, slo: &Slo) -> bool {
        self.floor.is_known() && self.tail(slo).is_none()
    }

    /// Whether shedding cannot make most answers meet the objective.
    pub(super) fn is_unreachable(&self, slo: &Slo) -> bool {
        self.is_late(slo) && !self.is_in_doubt(slo)
    }

    /// Whether the floor is unknown, or may include a queue that does harm.
    pub(super) fn is_in_doubt(&self, slo: &Slo) -> bool {
        !self.floor.is_known() || self.floor.is_in_doubt(harmless(slo))
    }

    /// The latency without a queue, seconds. While the floor is in doubt, at most the harmless latency.
    pub(super) fn believed_floor(&self, slo: &Slo) -> f64 {
        let harmless = harmless(slo);
        let is_too_much = self.floor.mean > harmless && self.is_in_doubt(slo);
        if is_too_much && !is_off(Mechanism::DoubtHarmless) {
            harmless / self.floor.mean * self.floor.occupancy()
        } else {
            self.floor.occupancy()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::limit::LimitCheckpoint;
    use crate::limit::testing::{Rig, assert_close, floor};
    use crate::units::{Gain, PerSecond};

    /// 100 answers a second, with this mean and tail in milliseconds; bursts use the part `gain` of the wait.
    fn known(mean: f64, tail: f64, gain: f64) -> Rig {
        Rig::resume(&LimitCheckpoint {
            floor: floor(mean / 1e3, tail / 1e3),
            capacity: PerSecond::new(100.0),
            burst_gain: Gain::new(gain),
            ..LimitCheckpoint::default()
        })
    }

    /// Mean and tail of an upstream against 300 ms, the gain, and how long bursts may wait; milliseconds.
    #[test]
    fn bursts_wait_for_what_the_objective_leaves_after_serving() {
        for (name, mean, tail, gain, expected) in [
            ("all alike", 100.0, 100.0, 1.0, 185.0),
            ("halfway from tail to mean", 100.0, 200.0, 1.0, 135.0),
            ("as the mean", 100.0, 200.0, 1.5, 185.0),
            ("as the tail", 100.0, 200.0, 0.5, 85.0),
            ("less than the tail leaves", 100.0, 200.0, 0.25, 42.5),
            ("serving leaves nothing", 280.0, 280.0, 1.0, 30.0),
            ("unreachable", 100.0, 400.0, 1.0, 300.0),
            ("unreachable by far", 500.0, 600.0, 1.0, 1_500.0),
        ] {
            let rig = known(mean, tail, gain);
            let wait = rig.limiter.burst_wait(rig.policy.slo());
            assert_close(wait, expected / 1e3, name);
        }
    }

    #[test]
    fn the_affordable_wait_does_not_depend_on_feedback() {
        for gain in [0.1, 1.0, 1.5] {
            let rig = known(100.0, 200.0, gain);
            let wait = rig.limiter.affordable(rig.policy.slo());
            assert_close(wait, 0.135, "affordable");
        }
    }

    #[test]
    fn a_queue_is_held_at_the_headroom_within_shares_of_the_affordable_wait() {
        for (name, tail, capacity, expected) in [
            // 1.5 deviations of the 10 that are carried.
            ("busy", 100.0, 100.0, 1.5 * 10_f64.sqrt() / 100.0),
            ("few would wait for long", 100.0, 1.0, 0.185 * 0.35),
            ("many need a short wait", 100.0, 10_000.0, 0.185 * 0.1),
            ("serving leaves little", 280.0, 25.0, 0.12 * 0.35),
        ] {
            let rig = known(100.0, tail, 1.0);
            let wait = rig.limiter.held_wait(capacity, rig.policy.slo());
            assert_close(wait, expected, name);
        }
    }

    #[test]
    fn where_fewer_requests_achieve_more_the_wait_is_shorter_in_both_states() {
        let mut rig = known(100.0, 100.0, 1.0);
        let waits = |rig: &Rig| {
            let slo = rig.policy.slo();
            [
                rig.limiter.burst_wait(slo),
                rig.limiter.held_wait(100.0, slo),
            ]
        };
        let before = waits(&rig);
        rig.limiter.wait_in_use.shorten();
        for (after, before) in waits(&rig).into_iter().zip(before) {
            assert_close(after, before / 2.0, "half");
        }
    }

    #[test]
    fn an_objective_is_unreachable_when_most_answers_exceed_it_without_a_queue() {
        for (mean, tail, late, unreachable) in [
            (100.0, 280.0, false, false),
            (100.0, 290.0, true, true),
            (100.0, 900.0, true, true),
            // No test has shown that the floor has no queue in it.
            (250.0, 900.0, true, false),
        ] {
            let rig = known(mean, tail, 1.0);
            let slo = rig.policy.slo();
            assert_eq!(rig.limiter.is_late(slo), late, "{mean} {tail}");
            assert_eq!(
                rig.limiter.is_unreachable(slo),
                unreachable,
                "{mean} {tail}"
            );
        }
        let rig = Rig::new();
        let slo = rig.policy.slo();
        assert!(!rig.limiter.is_late(slo), "nothing is known");
        assert!(!rig.limiter.is_unreachable(slo), "nothing is known");
    }

    #[test]
    fn a_floor_in_doubt_is_believed_only_where_it_does_no_harm() {
        // The mean, the floor that is believed, and how long a request may wait.
        for (mean, expected, wait) in [(100.0, 0.1, 0.185), (280.0, 0.21, 0.075)] {
            let mut rig = known(mean, mean, 1.0);
            let slo = rig.policy.slo();
            assert_close(rig.limiter.believed_floor(slo), expected, "in doubt");
            assert_close(rig.limiter.affordable_held(slo), wait, "in doubt");
            rig.limiter.floor = rig.limiter.floor.clone().tested();
            let tested = rig.limiter.believed_floor(slo);
            assert_close(tested, mean / 1e3, "tested");
            let affordable = rig.limiter.affordable(slo);
            assert_close(rig.limiter.affordable_held(slo), affordable, "tested");
        }
    }
}
