//! How much may queue for a moment.
//!
//! A burst that drains in time costs nobody anything, so while no queue stands the limit is what the SLO's latency
//! affords: the time that is left after serving, at the rate the upstream serves. How long serving takes is a
//! matter of courage: the last in the queue is served within the mean as often as not, within the tail nearly
//! always. Bursts that drained, although some were refused, make bolder; queues that stood make careful. And when the
//! SLO is missed all the same, a guard takes back part of the allowance.

use super::baseline::Baseline;
use super::capacity::Capacity;
use super::figures::Figures;
use super::headroom::headroom;
use super::learned::Learned;
use crate::ablation::{Mechanism, is_off};
use crate::config::Slo;
use crate::exchange::plausible::{PLACES, SHARE};

/// Share of the SLO's latency that bursts may use; the rest is for what we do not see, the way to the caller.
const SLO_USED: f64 = 0.95;
/// Bursts may queue for this fraction of the target however long the tail without a queue is: a tail that
/// shedding cannot shorten is no reason to shed.
const MIN_BURST_OF_TARGET: f64 = 0.5;
/// Growth in one window in which the limit was used up without a queue.
const GROWTH: f64 = 1.25;
/// And the most that it grows to, in times of the limit that was used up.
const GROWN: f64 = 4.0;
/// What is left of such growth after a second in which it was not needed.
const REMEMBERED: f64 = 0.9;
/// Where courage starts, and what one queue teaches about the next.
const FIRST_NERVE: f64 = 0.5;
const NERVE_STEP: f64 = 0.25;
/// The guard judges a queue that stands by this many answers, bursts that pass by more: one of them alone may have been
/// larger than most.
const GUARD_SAMPLES: f64 = 50.0;
const GUARD_SAMPLES_OF_BURSTS: f64 = 500.0;
/// It calls it a miss when this many times the SLO's share is slow.
const MISSED: f64 = 2.0;
/// And this many more: a few may be slow by chance.
const BY_CHANCE: f64 = 2.0;
/// It cuts the allowance to this, down to [`MIN_GUARD`], and returns it in steps of [`GUARD_STEP`] for so many answers.
const GUARD_CUT: f64 = 0.8;
const MIN_GUARD: f64 = 0.2;
const GUARD_STEP: f64 = 0.05;

/// The burst limit; 0 while unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    value: f64,
    /// How much of the tail a burst may risk, 0..=1.
    nerve: f64,
    guard: Guard,
}

/// What the limit is worked out from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    pub(super) baseline: &'a Baseline,
    pub(super) capacity: &'a Capacity,
    pub(super) slo: &'a Slo,
}

/// Whether the queue, where there is one, has drained within the time that a burst may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Passing,
    Standing,
}

/// The part of the allowance that is left, and the answers since it last changed.
#[derive(Clone, Copy, Debug)]
struct Guard {
    factor: f64,
    answers: f64,
    /// Late answers, less what bursts were refused.
    slow: f64,
}

impl Burst {
    /// Goes on from what was learned.
    pub(super) fn resume(learned: &Learned) -> Self {
        // No guard ever takes all: this one has not judged anything.
        let (nerve, factor) = if learned.guard > 0.0 {
            (f64::from(learned.nerve), f64::from(learned.guard))
        } else {
            (FIRST_NERVE, 1.0)
        };
        Self {
            value: f64::from(learned.burst),
            nerve,
            guard: Guard {
                factor: factor.max(MIN_GUARD),
                answers: 0.0,
                slow: 0.0,
            },
        }
    }

    /// Writes down what a successor needs.
    pub(super) fn teach(&self, learned: &mut Learned) {
        learned.burst = PLACES.hold(self.value);
        learned.nerve = SHARE.hold(self.nerve);
        learned.guard = SHARE.hold(self.guard.factor);
    }

    pub(super) const fn value(&self) -> f64 {
        self.value
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.value *= factor;
    }

    /// A queue drained in time, although not all had been let in.
    pub(super) fn embolden(&mut self) {
        self.dare(NERVE_STEP);
    }

    /// A queue did not drain.
    pub(super) fn caution(&mut self) {
        self.dare(-NERVE_STEP);
    }

    fn dare(&mut self, more: f64) {
        if !is_off(Mechanism::Nerve) {
            self.nerve = (self.nerve + more).clamp(0.0, 1.0);
        }
    }

    /// Holds the answers of one window against the SLO.
    pub(super) fn watch(&mut self, figures: &Figures, slo: &Slo, queue: Queue) {
        let allowed = slo.latency_quantile().complement().as_f64();
        self.guard.update(figures, allowed, queue);
    }

    /// How long a request may wait within the objective, in seconds: what is left after serving.
    pub(super) fn affordable(&self, baseline: &Baseline, slo: &Slo) -> f64 {
        let target = slo.latency_target().as_secs_f64();
        let service = baseline.tail + (baseline.mean - baseline.tail) * self.nerve;
        let (left, least) = (target * SLO_USED - service, target * MIN_BURST_OF_TARGET);
        if left < least && !is_off(Mechanism::BurstFloor) {
            least
        } else {
            left.max(0.0)
        }
    }

    /// The limit after one more window, in which `in_force` held; none where that was no law's for bursts.
    pub(super) fn update(&mut self, figures: &Figures, known: &Known<'_>, in_force: Option<f64>) {
        let Known {
            baseline,
            capacity,
            slo,
        } = *known;
        let affordable = if is_off(Mechanism::BurstAllowance) {
            0.0
        } else {
            self.affordable(baseline, slo) * self.guard.factor
        };
        let carried = capacity.value() * baseline.mean;
        // What keeps the upstream busy between arrivals waits as well.
        let (afforded, room) = (capacity.value() * affordable, headroom(carried, 1));
        let queue = if afforded < room && !is_off(Mechanism::BurstHeadroom) {
            room
        } else {
            afforded
        };
        let modelled = carried + queue;
        // Who stands in no queue may be many: what was let in without one stays allowed for a while.
        let kept = if self.value > modelled && is_off(Mechanism::GrowthKept) {
            modelled
        } else {
            self.value * libm::pow(REMEMBERED, figures.span)
        };
        let is_late = figures.late > figures.refusals && !is_off(Mechanism::GrowthLate);
        self.value = if figures.holds_up() || is_late {
            modelled
        } else if let Some(in_force) = in_force
            && figures.refused
            && !is_off(Mechanism::Growth)
        {
            let grown = self.value.max(in_force) * GROWTH;
            modelled.max(kept).max(grown.min(in_force * GROWN))
        } else {
            modelled.max(kept)
        };
    }
}

impl Guard {
    /// One window, in which a share of `allowed` may be slow.
    fn update(&mut self, figures: &Figures, allowed: f64, queue: Queue) {
        self.answers += figures.successes;
        self.slow += figures.slow;
        let enough = match queue {
            Queue::Passing if figures.refused && is_off(Mechanism::GuardRefusals) => {
                GUARD_SAMPLES_OF_BURSTS
            }
            Queue::Passing => {
                // A burst costs late answers or refusals: cutting gains only while more are late than refused.
                self.slow -= figures.refusals;
                GUARD_SAMPLES_OF_BURSTS
            }
            Queue::Standing => GUARD_SAMPLES,
        };
        if self.answers < enough {
            return;
        }
        let missed = self.slow > MISSED * allowed * self.answers + BY_CHANCE;
        let factor = if missed && figures.busy && !is_off(Mechanism::Guard) {
            self.factor * GUARD_CUT
        } else {
            self.factor + GUARD_STEP * self.answers / GUARD_SAMPLES
        };
        *self = Self {
            factor: factor.clamp(MIN_GUARD, 1.0),
            answers: 0.0,
            slow: 0.0,
        };
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::config::{Config, RuleIndex};
    use crate::sample::Sample;
    use crate::shed::ShedReason;

    /// The limit after so many windows that refused requests while `in_force` held, with answers of so many milliseconds.
    fn after(windows: u32, in_force: Option<f64>, ms: u64) -> f64 {
        let text = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#;
        let config = Config::from_json(text.as_bytes()).unwrap();
        let slo = config.policy(RuleIndex::TopLevel).slo();
        let baseline = Baseline::believed(0.02, 0.04, 0.1);
        let mut window = Sample::empty(Duration::from_millis(100));
        (0..36).for_each(|_| window.tally.latency.record(Duration::from_millis(20)));
        (0..4).for_each(|_| window.tally.latency.record(Duration::from_millis(ms)));
        window.tally.add_shed(ShedReason::Limit, true);
        window.peak = 60;
        let figures = Figures::of(&window, 0.02, &baseline, 0.3);
        let known = Known {
            baseline: &baseline,
            capacity: &Capacity::of(400.0),
            slo,
        };
        let mut burst = Burst::resume(&Learned::default());
        for _ in 0..windows {
            burst.update(&figures, &known, in_force);
        }
        burst.value()
    }

    #[test]
    fn what_is_used_up_without_a_queue_grows_and_not_without_end() {
        let modelled = after(1, None, 20);
        assert!(after(3, Some(100.0), 20) > modelled * 1.2);
        assert!((after(200, Some(100.0), 20) - 400.0).abs() < 1e-9);
        assert!(
            (after(200, None, 20) - modelled).abs() < 1e-9,
            "others refused them"
        );
    }

    #[test]
    fn it_does_not_grow_while_it_makes_more_late_than_are_refused() {
        assert!((after(10, Some(100.0), 330) - after(1, None, 330)).abs() < 1e-9);
        assert!(
            after(10, Some(100.0), 900) > 200.0,
            "no queue of sixty makes them so late"
        );
    }
}
