//! The knee: the fewest requests in flight that carry the greatest throughput.
//!
//! Little's law gives it from capacity and no-load latency, if both are right. Whether they are shows when the
//! limit moves: above the knee throughput does not care, below it throughput goes with the limit. So every cut is
//! an experiment. The elasticity of throughput to in-flight is near 0 when there was a queue to cut, near 1 when
//! there was none: then the upstream's own latency has changed, and the baseline must follow. While the limit
//! holds, such a cut is made from time to time; above the knee it sheds nothing that a queue would not have
//! delayed into uselessness.

use core::time::Duration;

use crate::histogram::Histogram;
use crate::limit::baseline::LOW;
use crate::sample::Sample;
use crate::time::Instant;

/// Room above Little's law, in standard deviations of a Poisson in-flight.
const HEADROOM_DEVIATIONS: f64 = 1.5;
/// A queue beyond this many times the headroom is cut, below the other share it may grow.
const TOO_MUCH: f64 = 1.5;
const TOO_LITTLE: f64 = 0.5;
/// One step down, one step up.
const STEP_DOWN: f64 = 0.75;
const STEP_UP: f64 = 1.1;
/// One step up towards what Little's law promises.
const LEAP_UP: f64 = 1.5;
/// Throughput that falls with more than this power of in-flight was not held up by a queue.
const NO_QUEUE: f64 = 0.6;
/// While seeking the cuts are deeper, the measurements surer, and one cut too many is expensive.
const NO_QUEUE_SEEKING: f64 = 0.4;
/// A cut says something when in-flight followed it this far.
const TELLING_CUT: f64 = 0.9;
/// Answers that make one measurement; after [`PATIENCE`] fewer must do.
const MEASURED: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(2);
/// The first experiment while holding, and the longest pause between two that found nothing new.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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

/// What the cuts are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The baseline is trusted: hold, and try it from time to time.
    Hold,
    /// It is not: go down until throughput is lost.
    Seek,
}

/// In-flight and throughput before a cut.
#[derive(Clone, Copy, Debug)]
struct Before {
    in_flight: f64,
    throughput: f64,
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
    held_since: Instant,
    pause: Duration,
}

impl Knee {
    /// Fewer requests than this above Little's law are no queue.
    pub(crate) const MIN_HEADROOM: f64 = 2.0;

    pub(crate) const fn at(value: f64) -> Self {
        Self {
            value,
            mode: Mode::Hold,
            peak: 0.0,
            before: None,
            measured: None,
            settling: false,
            held_since: Instant::ZERO,
            pause: FIRST_PAUSE,
        }
    }

    /// By Little's law: `capacity` a second, `latency` seconds without load.
    pub(crate) fn model(capacity: f64, latency: f64) -> f64 {
        let carried = capacity * latency;
        carried + headroom(carried)
    }

    pub(crate) const fn value(&self) -> f64 {
        self.value
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.before = None;
        self.measured = None;
    }

    /// A queue stands: from what was in flight down to the model.
    pub(crate) fn enter(&mut self, model: f64, in_flight: f64, throughput: f64, now: Instant) {
        self.value = model;
        self.mode = Mode::Hold;
        self.pause = FIRST_PAUSE;
        self.cut(
            Before {
                in_flight,
                throughput,
            },
            now,
        );
    }

    /// More is refused than let in before anything is known of the latency without load: find it from above.
    pub(crate) fn seek(&mut self, in_flight: f64, now: Instant) {
        self.value = in_flight;
        self.mode = Mode::Seek;
        self.peak = 0.0;
        self.before = None;
        self.measured = None;
        self.settling = true;
        self.held_since = now;
    }

    /// One window while a queue stands.
    pub(crate) fn update(
        &mut self,
        window: &Sample,
        baseline_low: f64,
        model: f64,
        now: Instant,
    ) -> Verdict {
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
        if measured.tally.latency.len() < MEASURED && measured.span < PATIENCE {
            self.measured = Some(measured);
            return Verdict::Nothing;
        }
        self.step(&measured, baseline_low, model, now)
    }

    fn step(&mut self, measured: &Sample, baseline_low: f64, model: f64, now: Instant) -> Verdict {
        let now_at = Before {
            in_flight: measured.mean_in_flight(),
            throughput: measured.throughput(),
        };
        let delay = low(&measured.tally.latency).map_or(0.0, |low| (low - baseline_low).max(0.0));
        if let Some(before) = self.before.take() {
            let lost = lost_throughput(&before, &now_at, self.mode);
            self.peak = self.peak.max(now_at.throughput).max(before.throughput);
            let lower =
                low(&measured.tally.latency).is_some_and(|low| low < baseline_low * STILL_QUEUED);
            match (self.mode, lost) {
                (_, true) => {
                    // Below the knee: go back. If latency is up all the same, it is not for a queue.
                    let was_seeking = core::mem::replace(&mut self.mode, Mode::Hold) == Mode::Seek;
                    self.value = if was_seeking {
                        Self::model(self.peak, measured.tally.latency.mean().unwrap_or_default())
                    } else {
                        before.in_flight.max(self.value) + 1.0
                    };
                    self.settling = true;
                    self.hold(now, FIRST_PAUSE);
                    let claimed = now_at.throughput * delay > Self::MIN_HEADROOM;
                    return if was_seeking || claimed {
                        Verdict::BaselineMoved(Box::new(measured.tally.latency.clone()))
                    } else {
                        Verdict::Nothing
                    };
                }
                (Mode::Seek, false) => {
                    self.value *= SEEK_DOWN;
                    self.cut(now_at, now);
                    return Verdict::BaselineLower(Box::new(measured.tally.latency.clone()));
                }
                (Mode::Hold, false) if lower => {
                    self.mode = Mode::Seek;
                    self.peak = now_at.throughput.max(before.throughput);
                    self.value *= SEEK_DOWN;
                    self.cut(now_at, now);
                    return Verdict::BaselineLower(Box::new(measured.tally.latency.clone()));
                }
                (Mode::Hold, false) => self.pause = (self.pause * 2).min(LONGEST_PAUSE),
            }
        } else if self.mode == Mode::Seek {
            self.value *= SEEK_DOWN;
            self.cut(now_at, now);
            return Verdict::Nothing;
        }
        let queue = now_at.throughput * delay;
        let room = headroom(model);
        if queue > TOO_MUCH * room && self.value > model {
            self.value = (self.value * STEP_DOWN).max(model);
            self.cut(now_at, now);
        } else if queue < TOO_LITTLE * room && measured.tally.refused_for_load() > 0 {
            let step = (self.value * STEP_UP).max(self.value + 1.0);
            self.value = model.min(self.value * LEAP_UP).max(step);
            self.settling = true;
        } else if now.saturating_since(self.held_since) >= self.pause
            && measured.tally.refused_for_load() > 0
        {
            self.value *= STEP_DOWN;
            self.cut(now_at, now);
        }
        Verdict::Nothing
    }

    fn cut(&mut self, before: Before, now: Instant) {
        self.before = Some(before);
        self.measured = None;
        self.settling = true;
        self.held_since = now;
    }

    fn hold(&mut self, now: Instant, pause: Duration) {
        self.held_since = now;
        self.pause = pause;
    }
}

/// Room above `carried` requests in flight.
fn headroom(carried: f64) -> f64 {
    (HEADROOM_DEVIATIONS * carried.max(0.0).sqrt()).max(Knee::MIN_HEADROOM)
}

fn low(latency: &Histogram) -> Option<f64> {
    latency.quantile(LOW)
}

/// Whether throughput went down with in-flight.
fn lost_throughput(before: &Before, after: &Before, mode: Mode) -> bool {
    let in_flight = after.in_flight / before.in_flight;
    let throughput = after.throughput / before.throughput;
    if !(in_flight.is_finite() && throughput.is_finite())
        || in_flight > TELLING_CUT
        || in_flight <= 0.0
    {
        return false;
    }
    throughput <= 0.0
        || throughput.ln() / in_flight.ln()
            > if mode == Mode::Seek {
                NO_QUEUE_SEEKING
            } else {
                NO_QUEUE
            }
}
