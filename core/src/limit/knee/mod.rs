//! The knee: the fewest requests in flight that carry the greatest throughput.
//!
//! Little's law gives it from capacity and no-load latency, if both are right. Whether they are shows when the
//! limit is cut ([`cut`]): when throughput goes with it there was no queue, the upstream's own latency has
//! changed, and the baseline must follow ([`conclude`]). The step down to the model is such an experiment, and while the limit holds
//! one is made on every beat of a clock that all proxies share; above the knee it sheds nothing that a queue would not
//! have delayed into uselessness. Between experiments the limit follows the queue ([`follow`]).

mod claims;
mod conclude;
mod cut;
mod experiment;
mod follow;
mod room;

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::histogram::Histogram;
use crate::limit::baseline::LOW;
use crate::limit::headroom::headroom;
use crate::sample::Sample;
use crate::time::Instant;
use claims::Claims;
use cut::{BEAT, beat};
use experiment::{Aim, Experiment};
use room::Room;

pub(super) use cut::Point;

/// One step down.
const STEP_DOWN: f64 = 0.75;
/// With less than this share of the limit in flight on average, it is met for moments only.
pub(in crate::limit) const HOLLOW: f64 = 0.6;
/// Answers that make one measurement; after [`PATIENCE`] fewer must do.
const MEASURED: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(2);
/// One step down while the baseline is in doubt: larger, as every step is one more measurement.
const SEEK_DOWN: f64 = 0.6;
/// Others cut when their window is complete: what a proxy among many measures after a cut is of so long at the least.
const OTHERS_FOLLOW: Duration = Duration::from_secs(1);

/// What a measurement says about the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing new.
    Nothing,
    /// There is one: what comes out is all that the upstream can do.
    Queue,
    /// There is no queue, the latency without load is what was measured now.
    BaselineMoved(Box<Histogram>),
    /// There still was a queue in what was taken for the baseline: lower.
    BaselineLower(Box<Histogram>),
}

/// What is believed of the upstream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Belief {
    /// The low latency quantile without load, and the highest that a few requests can prove instead; seconds.
    pub(super) low: f64,
    pub(super) plausible_low: f64,
    /// The highest mean latency that leaves the objective much room, seconds.
    pub(super) harmless: f64,
    /// The objective's latency, seconds.
    pub(super) target: f64,
    /// [`Knee::model`] of capacity and mean latency.
    pub(super) model: f64,
    /// 0 when unknown.
    pub(super) endpoints: u32,
    /// Whether most of a queue is of other proxies.
    pub(super) is_one_of_many: bool,
    /// The burst limit: more could not be served within the objective.
    pub(super) most: f64,
}

/// What the cuts are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The baseline is trusted: hold, and try it from time to time.
    Hold,
    /// It is not: go down until throughput is lost.
    Seek,
}

/// The knee, as far as known, and the experiment under way.
#[derive(Clone, Debug)]
pub(crate) struct Knee {
    value: f64,
    mode: Mode,
    /// The greatest throughput while seeking.
    peak: f64,
    experiment: Option<Experiment>,
    measured: Option<Sample>,
    settling: bool,
    claims: Claims,
    room: Room,
    /// A step down has lost throughput: none is made before the beat tells why.
    is_low: bool,
    /// What was measured last, since the value has changed.
    last: Option<Point>,
    /// The beat of the last experiment.
    beat: u64,
}

impl Knee {
    pub(crate) const fn at(value: f64) -> Self {
        Self {
            value,
            mode: Mode::Hold,
            peak: 0.0,
            experiment: None,
            measured: None,
            settling: false,
            claims: Claims::NONE,
            room: Room::WHOLE,
            is_low: false,
            last: None,
            beat: 0,
        }
    }

    /// By Little's law: `capacity` a second, `latency` seconds without load, behind so many `endpoints` (0: unknown).
    pub(crate) fn model(capacity: f64, latency: f64, endpoints: u32) -> f64 {
        let carried = capacity * latency;
        carried + headroom(carried, endpoints)
    }

    pub(crate) const fn value(&self) -> f64 {
        self.value
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.experiment = None;
        self.last = None;
        self.measured = None;
    }

    /// A queue stands: from what was in flight down to the model. `low` is the low latency quantile, seconds.
    pub(super) fn enter(&mut self, model: f64, point: Point, low: f64) {
        self.value = model;
        self.mode = Mode::Hold;
        if is_off(Mechanism::EntryCut) {
            self.experiment = None;
            self.measured = None;
            self.change(model);
            return;
        }
        self.test(point, Aim::Entry { low });
    }

    /// Holds at a value that has yet to be tried.
    pub(crate) fn hold(&mut self, value: f64) {
        *self = Self {
            beat: self.beat,
            ..Self::at(value)
        };
    }

    /// More is refused than let in before anything is known of the latency without load: find it from above.
    pub(crate) fn seek(&mut self, in_flight: f64) {
        self.value = in_flight;
        self.mode = Mode::Seek;
        self.peak = 0.0;
        self.experiment = None;
        self.measured = None;
        self.settling = true;
        self.last = None;
    }

    /// One window while a queue stands. `clock` is the same for all proxies that share the upstream.
    pub(crate) fn update(&mut self, window: &Sample, belief: &Belief, clock: Instant) -> Verdict {
        let beat = beat(clock);
        let on_beat = core::mem::replace(&mut self.beat, beat) != beat;
        if on_beat {
            self.is_low = false;
        }
        if on_beat
            && self.mode == Mode::Hold
            && self.experiment.is_none()
            && window.tally.refused_for_load() > 0
            && let Some(point) = self.last.or_else(|| self.so_far(window, belief))
            && !is_off(Mechanism::Trial)
        {
            let limit = self.value;
            self.value *= STEP_DOWN;
            self.test(point, Aim::Trial { limit });
            return Verdict::Nothing;
        }
        if self.settling {
            // What completes right after a step was admitted before it, and a queue takes its time to drain.
            self.settling = f64::from(window.in_flight) > self.value + 1.0;
            return Verdict::Nothing;
        }
        let measured = match self.measured.take() {
            Some(mut measured) => {
                measured.extend(window);
                measured
            }
            None => window.clone(),
        };
        let patience = if self.experiment.is_some() {
            BEAT
        } else {
            PATIENCE
        };
        let others_follow =
            self.experiment.is_some() && belief.is_one_of_many && measured.span < OTHERS_FOLLOW;
        let is_short = measured.tally.latency.len() < MEASURED || others_follow;
        if is_short && measured.span < patience {
            self.measured = Some(measured);
            return Verdict::Nothing;
        }
        self.step(&measured, belief)
    }

    /// What was measured since the value has changed, though it is not enough: a proxy among many that let a beat pass would
    /// be foreign to those who cut.
    fn so_far(&self, window: &Sample, belief: &Belief) -> Option<Point> {
        belief.is_one_of_many.then(|| {
            let mut sample = self.measured.clone();
            if let Some(sample) = &mut sample {
                sample.extend(window);
            }
            Point::of(sample.as_ref().unwrap_or(window))
        })
    }

    fn step(&mut self, measured: &Sample, belief: &Belief) -> Verdict {
        let now_at = Point::of(measured);
        if let Some(experiment) = self.experiment.take() {
            match self.conclude(&experiment, now_at, measured, belief) {
                Some(Verdict::Queue) => {
                    self.follow_queue(now_at, measured, belief);
                    return Verdict::Queue;
                }
                Some(verdict) => return verdict,
                None => {}
            }
        } else if self.mode == Mode::Seek {
            self.value *= SEEK_DOWN;
            self.test(now_at, Aim::Search);
            return Verdict::Nothing;
        }
        self.follow_queue(now_at, measured, belief);
        Verdict::Nothing
    }

    /// The value has been cut, and what comes of it will tell.
    fn test(&mut self, before: Point, aim: Aim) {
        self.experiment = Some(Experiment { before, aim });
        self.measured = None;
        self.settling = true;
        self.last = None;
    }

    /// Another value, which is no experiment.
    const fn change(&mut self, value: f64) {
        self.value = value;
        self.settling = true;
        self.last = None;
    }
}

fn low(latency: &Histogram) -> Option<f64> {
    latency.quantile(LOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Count;

    /// A second with `answers` that took `ms` each, so many of them in flight as Little's law says.
    fn second(answers: u32, ms: u64) -> Sample {
        let mut sample = Sample::empty(Duration::from_secs(1));
        let latency = Duration::from_millis(ms);
        (0..answers).for_each(|_| sample.tally.latency.record(latency));
        let in_flight_ms = u64::from(answers) * ms;
        sample
            .tally
            .add(Count::InFlightMicros, in_flight_ms * 1_000);
        sample.in_flight = u32::try_from(in_flight_ms / 1_000).unwrap();
        sample.tally.add_shed(crate::shed::ShedReason::Limit, true);
        sample
    }

    fn belief(is_one_of_many: bool) -> Belief {
        Belief {
            low: 0.02,
            plausible_low: 0.09,
            harmless: 0.3,
            target: 0.6,
            model: 27.0,
            endpoints: 100,
            is_one_of_many,
            most: 100.0,
        }
    }

    /// What a cut from a hundred in flight says, on no beat, when answers take so many milliseconds after it.
    fn after_a_cut(is_one_of_many: bool, ms: u64) -> Verdict {
        let mut knee = Knee::at(0.0);
        let before = Point {
            in_flight: 100.0,
            throughput: 400.0,
        };
        knee.enter(27.0, before, 0.23);
        let answers = u32::try_from(27_000 / ms).unwrap();
        let belief = belief(is_one_of_many);
        assert!(knee.settling, "what was let in before the cut comes first");
        knee.update(&second(answers, ms), &belief, Instant::ZERO);
        knee.update(&second(answers, ms), &belief, Instant::ZERO)
    }

    #[test]
    fn a_queue_that_others_cut_as_well_is_no_slower_service() {
        // Their cuts made it shorter, and what this proxy gave up is theirs now.
        assert_eq!(after_a_cut(true, 150), Verdict::Queue);
        let alone = after_a_cut(false, 150);
        assert!(matches!(alone, Verdict::BaselineMoved(_)), "{alone:?}");
        let slower = after_a_cut(true, 230);
        assert!(
            matches!(slower, Verdict::BaselineMoved(_)),
            "latency has not fallen: {slower:?}"
        );
    }

    #[test]
    fn a_claim_that_may_do_harm_is_pending_and_the_limit_stays_meanwhile() {
        let mut knee = Knee::at(0.0);
        let before = Point {
            in_flight: 100.0,
            throughput: 400.0,
        };
        knee.enter(27.0, before, 0.23);
        let harmed = Belief {
            harmless: 0.15,
            ..belief(false)
        };
        let mut windows = (0..4).map(|_| {
            let verdict = knee.update(&second(117, 230), &harmed, Instant::ZERO);
            (verdict, knee.value())
        });
        let (claimed, limit) = windows.nth(1).unwrap();
        assert_eq!(claimed, Verdict::Nothing, "it is said for the first time");
        assert!(limit > 27.0, "what was lost comes back");
        for (verdict, later) in windows {
            assert_eq!(verdict, Verdict::Nothing);
            assert!(later >= limit, "not down to a model that is in doubt");
        }
    }

    fn whole(number: f64) -> u32 {
        (0..10_000).rfind(|n| f64::from(*n) <= number).unwrap()
    }

    /// The least limit in four seconds without a beat, and the limit at their end, of a service that answers as many as
    /// `answers` says with so many in flight, while the queue looks longer than the headroom.
    fn held_at(is_one_of_many: bool, answers: impl Fn(f64) -> u32) -> (f64, f64) {
        let mut knee = Knee::at(80.0);
        let belief = Belief {
            harmless: 0.01,
            ..belief(is_one_of_many)
        };
        let limits = (0..40).map(|_| {
            let answers = answers(knee.value()).max(10);
            let ms = u64::from(whole(knee.value() / f64::from(answers) * 1e3));
            knee.update(&second(answers, ms), &belief, Instant::ZERO);
            knee.value()
        });
        limits.fold((80.0, 80.0), |(least, _), limit| (limit.min(least), limit))
    }

    #[test]
    fn a_service_that_has_become_slower_is_not_asked_for_less_and_less() {
        // Each request takes 200 ms by itself now: fewer in flight are fewer answers.
        let (least, last) = held_at(false, |in_flight| whole(in_flight * 5.0));
        assert!(
            least >= 80.0 * STEP_DOWN - 1e-9,
            "one step down is tried: {least}"
        );
        assert!((last - 80.0).abs() < 1e-9, "and taken back: {last}");
        let (_, queued) = held_at(false, |_| 400);
        assert!(queued < 40.0, "a queue is cut: {queued}");
        let (_, shared) = held_at(true, |in_flight| whole(in_flight * 5.0));
        assert!(shared < 40.0, "what others do cannot be told: {shared}");
    }

    /// The limit on a beat that comes before anything was measured.
    fn on_an_early_beat(is_one_of_many: bool) -> f64 {
        let mut knee = Knee::at(8.0);
        let belief = belief(is_one_of_many);
        knee.update(&second(20, 100), &belief, Instant::ZERO + BEAT);
        knee.value()
    }

    #[test]
    fn one_of_many_cuts_on_every_beat() {
        assert!((on_an_early_beat(true) - 8.0 * STEP_DOWN).abs() < 1e-9);
        assert!((on_an_early_beat(false) - 8.0).abs() < 1e-9);
    }
}
