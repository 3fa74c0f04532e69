//! The knee: the fewest requests in flight that carry the greatest throughput.
//!
//! Little's law gives it from capacity and no-load latency, if both are right. Whether they are shows when the
//! limit is cut ([`super::cut`]): when throughput goes with it there was no queue, the upstream's own latency has
//! changed, and the baseline must follow. The step down to the model is such an experiment, and while the limit holds
//! one is made on every beat of a clock that all proxies share; above the knee it sheds nothing that a queue would not
//! have delayed into uselessness.

use core::time::Duration;

use crate::histogram::Histogram;
use crate::limit::baseline::LOW;
use crate::limit::cut::{BEAT, Loss, NO_QUEUE, NO_QUEUE_SEEKING, Point, beat, loss};
use crate::limit::headroom::{MIN_HEADROOM, headroom};
use crate::sample::Sample;
use crate::time::Instant;

/// A queue beyond this many times the headroom is cut, below the other share it may grow.
const TOO_MUCH: f64 = 1.5;
const TOO_LITTLE: f64 = 0.5;
/// One step down, one step up.
const STEP_DOWN: f64 = 0.75;
const STEP_UP: f64 = 1.1;
/// One step up towards what Little's law promises, or what packs of requests need.
const LEAP_UP: f64 = 1.5;
/// With less than this share of the limit in flight on average, it is met for moments only.
const HOLLOW: f64 = 0.6;
/// Answers that make one measurement; after [`PATIENCE`] fewer must do.
const MEASURED: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(2);
/// A limit of so few cannot be cut by a quarter. What it seems to prove is believed where it leaves the objective room.
const FEW: f64 = 6.0;
/// A cut that brings latency below this share of the baseline shows that the baseline had a queue in it.
const STILL_QUEUED: f64 = 0.75;
/// One step down while the baseline is in doubt: larger, as every step is one more measurement.
const SEEK_DOWN: f64 = 0.6;

/// What a measurement says about the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing new.
    Nothing,
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
    /// [`Knee::model`] of capacity and mean latency.
    pub(super) model: f64,
    /// 0 when unknown.
    pub(super) endpoints: u32,
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

/// What was before a cut.
#[derive(Clone, Copy, Debug)]
struct Before {
    point: Point,
    /// The limit to go back to when the cut says nothing; 0 when there is no going back.
    limit: f64,
}

impl From<Point> for Before {
    fn from(point: Point) -> Self {
        Self { point, limit: 0.0 }
    }
}

/// The knee, as far as known, and the experiment under way.
#[derive(Clone, Debug)]
pub(crate) struct Knee {
    value: f64,
    mode: Mode,
    /// The greatest throughput while seeking.
    peak: f64,
    before: Option<Before>,
    measured: Option<Sample>,
    settling: bool,
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
            before: None,
            measured: None,
            settling: false,
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
        self.before = None;
        self.last = None;
        self.measured = None;
    }

    /// A queue stands: from what was in flight down to the model.
    pub(crate) fn enter(&mut self, model: f64, in_flight: f64, throughput: f64) {
        self.value = model;
        self.mode = Mode::Hold;
        self.test(Point {
            in_flight,
            throughput,
        });
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
        self.before = None;
        self.measured = None;
        self.settling = true;
        self.last = None;
    }

    /// One window while a queue stands. `clock` is the same for all proxies that share the upstream.
    pub(crate) fn update(&mut self, window: &Sample, belief: &Belief, clock: Instant) -> Verdict {
        let beat = beat(clock);
        let on_beat = core::mem::replace(&mut self.beat, beat) != beat;
        if on_beat
            && self.mode == Mode::Hold
            && self.before.is_none()
            && window.tally.refused_for_load() > 0
            && let Some(last) = self.last
        {
            let limit = self.value;
            self.value *= STEP_DOWN;
            self.test(Before { point: last, limit });
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
        let patience = if self.before.is_some() {
            BEAT
        } else {
            PATIENCE
        };
        if measured.tally.latency.len() < MEASURED && measured.span < patience {
            self.measured = Some(measured);
            return Verdict::Nothing;
        }
        self.step(&measured, belief)
    }

    fn step(&mut self, measured: &Sample, belief: &Belief) -> Verdict {
        let now_at = Point {
            in_flight: measured.mean_in_flight(),
            throughput: measured.throughput(),
        };
        if let Some(before) = self.before.take() {
            if let Some(verdict) = self.conclude(before, now_at, measured, belief) {
                return verdict;
            }
        } else if self.mode == Mode::Seek {
            self.value *= SEEK_DOWN;
            self.test(now_at);
            return Verdict::Nothing;
        }
        self.follow_queue(now_at, measured, belief);
        Verdict::Nothing
    }

    /// What the cut from `before` to `now_at` says. Nothing, when the limit stays where it is.
    fn conclude(
        &mut self,
        before: Before,
        now_at: Point,
        measured: &Sample,
        belief: &Belief,
    ) -> Option<Verdict> {
        let latency = &measured.tally.latency;
        let measured_low = low(latency).unwrap_or_default();
        let loss = self.loss(before.point, now_at, measured, belief);
        self.peak = self
            .peak
            .max(now_at.throughput)
            .max(before.point.throughput);
        let lower = low(latency).is_some_and(|low| low < belief.low * STILL_QUEUED);
        match (self.mode, loss) {
            (_, Loss::Lost | Loss::Partly) => {
                // Below the knee: go back. If latency is up all the same, it is not for a queue.
                let was_seeking = core::mem::replace(&mut self.mode, Mode::Hold) == Mode::Seek;
                let mean = latency.mean().unwrap_or_default();
                let value = if was_seeking {
                    Self::model(self.peak, mean, belief.endpoints)
                } else if loss == Loss::Partly {
                    Self::model(before.point.throughput, mean, belief.endpoints).max(self.value)
                } else {
                    // Where requests come in packs fewer are in flight on average than the limit lets in.
                    let most = before.point.in_flight.max(before.limit);
                    most.max(self.value) + 1.0
                };
                self.change(value);
                let delay = (measured_low - belief.low).max(0.0);
                let claimed = now_at.throughput * delay > MIN_HEADROOM;
                Some(if was_seeking || claimed {
                    Verdict::BaselineMoved(Box::new(latency.clone()))
                } else {
                    Verdict::Nothing
                })
            }
            (Mode::Seek, Loss::Kept | Loss::Unclear) => Some(self.seek_on(now_at, latency)),
            (Mode::Hold, Loss::Kept) if lower => {
                self.mode = Mode::Seek;
                self.peak = now_at.throughput.max(before.point.throughput);
                Some(self.seek_on(now_at, latency))
            }
            (Mode::Hold, Loss::Unclear) => {
                self.value = self.value.max(before.limit);
                None
            }
            (Mode::Hold, Loss::Kept) => None,
        }
    }

    fn loss(&self, before: Point, now_at: Point, measured: &Sample, belief: &Belief) -> Loss {
        let no_queue = match self.mode {
            Mode::Seek => NO_QUEUE_SEEKING,
            Mode::Hold => NO_QUEUE,
        };
        let is_late = low(&measured.tally.latency).unwrap_or_default() > belief.plausible_low;
        match loss(before, now_at, measured.span, no_queue) {
            Loss::Lost if before.in_flight < FEW && is_late => Loss::Unclear,
            // A few in flight, late as before: others may have taken their place.
            Loss::Partly if now_at.in_flight < FEW && is_late => Loss::Kept,
            loss => loss,
        }
    }

    /// Further down: what was measured is a lower baseline.
    fn seek_on(&mut self, now_at: Point, latency: &Histogram) -> Verdict {
        self.value *= SEEK_DOWN;
        self.test(now_at);
        Verdict::BaselineLower(Box::new(latency.clone()))
    }

    /// Between experiments: the queue is held at what keeps the upstream busy.
    fn follow_queue(&mut self, now_at: Point, measured: &Sample, belief: &Belief) {
        let refused = measured.tally.refused_for_load() > 0;
        if now_at.in_flight < self.value * HOLLOW {
            // The limit is met for moments only: a cut would be no experiment, and who is refused comes in a pack.
            self.last = None;
            if refused {
                self.change((self.value * LEAP_UP).min(belief.most).max(self.value));
            }
            return;
        }
        self.last = Some(now_at);
        let measured_low = low(&measured.tally.latency).unwrap_or_default();
        let queue = now_at.throughput * (measured_low - belief.low).max(0.0);
        let room = headroom(belief.model, belief.endpoints);
        if queue > TOO_MUCH * room && self.value > belief.model {
            self.change((self.value * STEP_DOWN).max(belief.model));
        } else if queue < TOO_LITTLE * room && refused {
            let step = (self.value * STEP_UP).max(self.value + 1.0);
            self.change(belief.model.min(self.value * LEAP_UP).max(step));
        }
    }

    /// The value has been cut, and what comes of it will tell.
    fn test(&mut self, before: impl Into<Before>) {
        self.before = Some(before.into());
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
