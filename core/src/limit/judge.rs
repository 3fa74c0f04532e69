//! What one complete window says: of the latency without load, of capacity, of a queue, and of the knee.

use super::baseline::LOW;
use super::burst::{Known, Queue};
use super::figures::{BUSY_DELAY, Figures};
use super::knee::{Belief, HOLLOW, Knee, Point, Verdict};
use super::standing::{Change, Usual};
use super::{Limiter, MIN_WINDOW_SAMPLES, ROOM, Terms};
use crate::ablation::{Mechanism, is_off};
use crate::config::Slo;
use crate::histogram::Histogram;
use crate::sample::Sample;
use crate::time::Instant;

/// A low quantile below this share of the target leaves the objective room, whatever it comes from.
const PLAUSIBLE_LOW: f64 = 0.3;
/// Latencies below this share of the target leave the objective so much room that a queue in them does no harm.
const HARMLESS: f64 = 0.5;

impl Limiter {
    /// Everything that a complete window teaches, in the order in which one needs the other.
    pub(super) fn judge(&mut self, window: &Sample, terms: Terms<'_>, now: Instant) {
        let quantile = terms.slo.latency_quantile().as_f64();
        let latency = &window.tally.latency;
        let is_forming = self.forming.is_some();
        self.forming.take_if(|forming| forming.see(window));
        let Some(low) = latency.quantile(LOW) else {
            // No answer, nothing to learn: a hang is the breaker's business, an idle upstream nobody's.
            if window.in_flight == 0 {
                self.standing.run_empty();
            }
            return;
        };
        self.sample_low = low;
        self.sample_tail = latency.quantile(quantile).unwrap_or(low);
        let faster = low < self.baseline.low * (1.0 - BUSY_DELAY)
            && latency.len() >= MIN_WINDOW_SAMPLES
            && !is_off(Mechanism::BaselineFaster);
        // Where requests are refused a queue may be growing.
        let is_forming = is_forming && window.tally.refused_for_load() == 0;
        let is_news = is_forming || !self.baseline.is_known() || faster;
        if is_news {
            self.baseline.learn(latency, quantile);
        }
        let figures = Figures::of(
            window,
            low,
            &self.baseline,
            terms.slo.latency_target().as_secs_f64(),
        );
        self.capacity.learn(&figures, self.baseline.mean);
        let carried = Knee::model(self.capacity.value(), self.baseline.mean, self.endpoints);
        let is_clean = !figures.busy && !self.standing.has_remnant(&figures, carried, now);
        if is_clean && !is_news && !self.standing.stands() && !is_off(Mechanism::BaselineDrift) {
            self.baseline.learn(latency, quantile);
        }
        self.find_standing_queue(window, &figures, terms.slo, now);
        self.prove_baseline(&figures, terms.slo, now);
        let queue = if self.standing.stands() {
            Queue::Standing
        } else {
            Queue::Passing
        };
        self.burst.watch(&figures, terms.slo, queue);
        let known = Known {
            baseline: &self.baseline,
            capacity: &self.capacity,
            slo: terms.slo,
        };
        // Who is refused at the knee is too much, and no burst, unless the knee is met for moments only.
        let is_full = self.standing.stands()
            && (figures.in_flight >= self.in_force.limit * HOLLOW
                || is_off(Mechanism::HollowBurst));
        let is_burst = !self.in_force.is_held() && !is_full;
        let in_force = is_burst.then_some(self.in_force.limit);
        self.burst.update(&figures, &known, in_force);
        if self.standing.stands() {
            self.move_knee(window, terms, now);
        }
    }

    fn find_standing_queue(&mut self, window: &Sample, figures: &Figures, slo: &Slo, now: Instant) {
        let mean = self.baseline.mean;
        let usual = Usual {
            limit: self.in_force.limit,
            mean,
            // What the upstream itself refuses has cost enough.
            affordable: if self.ceiling.is_in_force() && !is_off(Mechanism::CeilingCostly) {
                0.0
            } else {
                self.burst.affordable(&self.baseline, slo)
            },
            is_one_of_many: self.is_one_of_many(),
        };
        match self.standing.judge(figures, usual, now) {
            Change::Same => {}
            Change::Drained => self.burst.embolden(),
            Change::Stands => {
                self.burst.caution();
                let model = Knee::model(self.capacity.before_the_queue(), mean, self.endpoints);
                // One short window shows more than is true as often as less.
                let throughput = figures.throughput.min(self.capacity.value());
                let point = Point {
                    in_flight: figures.in_flight,
                    throughput,
                };
                self.knee.enter(model, point, self.sample_low);
                self.vain.found(window, now);
            }
        }
    }

    /// A baseline learned while requests had to be refused may have a queue in it.
    fn prove_baseline(&mut self, figures: &Figures, slo: &Slo, now: Instant) {
        // There is room in between: what was refused came in a pack.
        let has_room = figures.in_flight < self.in_force.limit * ROOM;
        // And what is in it is far within the objective.
        let is_harmless = self.sample_tail < slo.latency_target().as_secs_f64() * HARMLESS;
        let is_free = (has_room || is_harmless) && !is_off(Mechanism::ProofExcuses);
        let doubtful = self.proof.weigh(figures, is_free);
        if doubtful && !self.standing.stands() && self.proof.doubt(now) && !is_off(Mechanism::Seek)
        {
            self.standing.assume();
            self.vain.forget();
            self.knee
                .seek(figures.in_flight_at_end.max(figures.in_flight));
        }
    }

    fn move_knee(&mut self, window: &Sample, terms: Terms<'_>, now: Instant) {
        let Terms { slo, ahead, .. } = terms;
        let quantile = slo.latency_quantile().as_f64();
        if let Some(measured) = self.vain.held(window, slo.latency_target(), now) {
            // There never was a queue: the upstream is slower.
            self.capacity.doubt();
            self.restart(&measured, quantile);
            self.proof.complete();
            self.standing.end();
            return;
        }
        let target = slo.latency_target().as_secs_f64();
        let belief = Belief {
            low: self.baseline.low,
            plausible_low: target * PLAUSIBLE_LOW,
            harmless: target * HARMLESS,
            target,
            model: Knee::model(self.capacity.value(), self.baseline.mean, self.endpoints),
            endpoints: self.endpoints,
            is_one_of_many: self.is_one_of_many(),
            most: self.burst.value(),
        };
        match self.knee.update(window, &belief, now + ahead) {
            Verdict::Nothing => {}
            Verdict::Queue => self.capacity.show(),
            Verdict::BaselineLower(measured) => self.baseline.restart(&measured, quantile),
            Verdict::BaselineMoved(measured) => {
                self.capacity.doubt();
                self.restart(&measured, quantile);
                self.proof.complete();
            }
        }
    }

    /// An experiment has shown what latency is without a queue.
    fn restart(&mut self, measured: &Histogram, quantile: f64) {
        self.baseline.restart(measured, quantile);
        self.forming = None;
    }
}
