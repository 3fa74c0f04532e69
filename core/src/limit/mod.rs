//! The concurrency limit: how many requests may be in flight to one upstream.
//!
//! Two limits, for two kinds of overload:
//!
//! - The **burst** limit holds while no queue *stands*. It lets a burst queue as long as the SLO's latency
//!   affords, because a queue that drains costs nobody anything.
//! - The **knee** holds while a queue stands: the fewest requests in flight that carry the greatest throughput,
//!   by Little's law capacity x no-load latency, with some headroom. More would only wait.
//!
//! A queue stands when the low latency quantile has been above the baseline without a break for
//! [`STANDING_AFTER`] (CoDel's rule: judge the minimum over an interval). Neither needs a probing phase: the
//! baseline is learned when the upstream is not busy ([`baseline`]), capacity when it is. What is assumed while a
//! queue stands is tested by small cuts ([`knee`]): if throughput falls with the limit, there was no queue, and
//! the baseline is what has moved.
//!
//! Failures and refusals that grow with load put a ceiling on both ([`ceiling`]).

mod baseline;
mod ceiling;
mod knee;

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{LimitConfig, Slo, Stance};
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;
use baseline::{Baseline, LOW};
use ceiling::Ceiling;
use knee::{Knee, Verdict};

/// A queue that has not drained for so long stands.
pub const STANDING_AFTER: Duration = Duration::from_millis(500);
/// The queue delay that counts as one, as a fraction of the mean no-load latency.
const BUSY_DELAY: f64 = 0.25;
/// And at least this much, seconds: below it schedulers and networks make noise.
const MIN_BUSY_DELAY: f64 = 0.001;
/// A window is complete with this many latencies, or after [`MAX_WINDOW`].
const MIN_WINDOW_SAMPLES: u64 = 10;
const MAX_WINDOW: Duration = Duration::from_secs(1);
/// Share of the SLO's latency that bursts may use; the rest is for what we do not see, the way to the caller.
const SLO_USED: f64 = 0.95;
/// Bursts may queue for this fraction of the target however long the tail without a queue is: a tail that
/// shedding cannot shorten is no reason to shed.
const MIN_BURST_OF_TARGET: f64 = 0.5;
/// Before anything is known, this many times the initial limit.
const COLD_FACTOR: f64 = 2.0;
/// Growth of the burst limit in one window in which it was used up without a queue.
const GROWTH: f64 = 1.25;
/// Weight of the newest window in the capacity of a busy upstream.
const CAPACITY_WEIGHT: f64 = 0.5;
/// Weight in the throughput of one that is not.
const THROUGHPUT_WEIGHT: f64 = 0.2;
/// The SLO guard judges by this many answers at least.
const GUARD_SAMPLES: f64 = 50.0;
/// It cuts the burst allowance to this, down to [`MIN_GUARD`], and returns it in steps of [`GUARD_STEP`].
const GUARD_CUT: f64 = 0.8;
const MIN_GUARD: f64 = 0.2;
const GUARD_STEP: f64 = 0.05;
/// So many answers without a refusal make a baseline that is trusted.
const PROVEN: u64 = 100;
/// When more than this share is refused before the baseline is trusted, it has to be found from above.
const SEEK_SHARE: f64 = 0.2;
/// What one queue teaches about the next.
const NERVE_STEP: f64 = 0.25;
/// Silence for so many mean latencies, and so many targets, is more than a bad moment.
const HANG_OF_MEAN: f64 = 5.0;
const HANG_OF_TARGET: u32 = 2;
/// Garbage collectors and schedulers pause for longer than a tight target.
const MIN_HANG: Duration = Duration::from_millis(500);
/// Congestion is over when in-flight stays below this share of the knee.
const RELIEF: f64 = 0.9;

/// What the laws know of an upstream; outlives VMs and configurations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Learned {
    /// Low quantile of the no-load latency, seconds; 0 while unknown.
    pub baseline_low: f32,
    /// Mean no-load latency, seconds.
    pub baseline_mean: f32,
    /// The SLO's quantile of the no-load latency, seconds.
    pub baseline_tail: f32,
    /// The same low quantile now, seconds.
    pub sample_low: f32,
    /// The SLO's quantile now, seconds.
    pub sample_tail: f32,
    /// Answers a second it can give, as far as seen.
    pub capacity: f32,
    /// Fewest in flight that carry that.
    pub knee: f32,
    /// Most in flight while no queue stands.
    pub burst: f32,
    /// Whether a queue stands.
    pub congested: bool,
    /// Endpoints the limits were learned with, 0 when unknown.
    pub endpoints: u32,
    /// Share of outcomes that usually fail, 0..=1.
    pub failure_rate: f32,
    /// Outcomes a second.
    pub rate: f32,
    /// How long recoveries usually take, seconds; 0 when none was seen.
    pub recovery: f32,
    /// When the outage under way began.
    pub outage_since: Instant,
    /// The open interval in force, milliseconds; 0 when closed.
    pub open_interval_ms: u32,
}

/// Why the limit is what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitReason {
    /// Nothing is known yet.
    #[default]
    WarmUp,
    /// No queue stands: as much as the SLO's latency affords.
    Burst,
    /// A queue stands: the knee.
    Knee,
    /// Load-caused failures put a ceiling.
    LoadFailures,
    /// The policy's bounds.
    Bounds,
}

/// What the limiter is told about the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) slo: &'a Slo,
    pub(crate) limit: &'a LimitConfig,
    pub(crate) stance: Stance,
}

/// The limit of one upstream.
#[derive(Clone, Debug)]
pub(crate) struct Limiter {
    baseline: Baseline,
    capacity: f64,
    throughput: f64,
    burst: f64,
    knee: Knee,
    ceiling: Ceiling,
    busy_since: Option<Instant>,
    refused_while_busy: bool,
    /// How much of the tail a burst may risk, 0..=1: more after bursts that drained, less after queues that stood.
    nerve: f64,
    congested: bool,
    /// Whether more than the no-load in-flight was in flight at the end of the window before.
    full: bool,
    /// Answers that came while nothing was refused: the baseline is trusted from [`PROVEN`] on.
    proof: u64,
    refusing_since: Option<Instant>,
    guard: Guard,
    window: Option<Sample>,
    sample_low: f64,
    sample_tail: f64,
    endpoints: u32,
    reason: LimitReason,
}

/// Returns burst allowance when the SLO is missed in spite of it.
#[derive(Clone, Copy, Debug)]
struct Guard {
    factor: f64,
    answers: f64,
    slow: f64,
}

/// One window's figures.
#[derive(Clone, Copy, Debug)]
struct Figures {
    throughput: f64,
    in_flight: f64,
    in_flight_at_end: f64,
    delay: f64,
    refused: u64,
    /// Of the arrivals, 0..=1.
    refused_share: f64,
}

impl Limiter {
    /// Goes on from what was learned (all zero: from nothing).
    pub(crate) fn resume(learned: &Learned) -> Self {
        Self {
            baseline: Baseline::believed(
                f64::from(learned.baseline_low),
                f64::from(learned.baseline_mean),
                f64::from(learned.baseline_tail),
            ),
            capacity: f64::from(learned.capacity),
            throughput: 0.0,
            burst: f64::from(learned.burst),
            knee: Knee::at(f64::from(learned.knee)),
            ceiling: Ceiling::default(),
            busy_since: None,
            refused_while_busy: false,
            nerve: 0.5,
            congested: learned.congested,
            full: false,
            proof: if learned.baseline_mean > 0.0 {
                PROVEN
            } else {
                0
            },
            refusing_since: None,
            guard: Guard {
                factor: 1.0,
                answers: 0.0,
                slow: 0.0,
            },
            window: None,
            sample_low: f64::from(learned.sample_low),
            sample_tail: f64::from(learned.sample_tail),
            endpoints: learned.endpoints,
            reason: LimitReason::WarmUp,
        }
    }

    /// Writes down what a successor needs.
    #[expect(clippy::cast_possible_truncation, reason = "six digits are plenty")]
    pub(crate) fn teach(&self, learned: &mut Learned) {
        learned.baseline_low = self.baseline.low as f32;
        learned.baseline_mean = self.baseline.mean as f32;
        learned.baseline_tail = self.baseline.tail as f32;
        learned.sample_low = self.sample_low as f32;
        learned.sample_tail = self.sample_tail as f32;
        learned.capacity = self.capacity as f32;
        learned.knee = self.knee.value() as f32;
        learned.burst = self.burst as f32;
        learned.congested = self.congested;
        learned.endpoints = self.endpoints;
    }

    pub(crate) const fn reason(&self) -> LimitReason {
        self.reason
    }

    pub(crate) const fn is_congested(&self) -> bool {
        self.congested
    }

    /// Answers a second that the upstream can give, as far as seen; 0 when unknown.
    pub(crate) const fn capacity(&self) -> f64 {
        self.capacity
    }

    /// How long a request may wait for its headers before it counts as hanging.
    pub(crate) fn hang_after(&self, slo: &Slo) -> Duration {
        // An upstream that is slow by nature is not a hanging one. What hangs meanwhile is bounded by the limit.
        let usual =
            Duration::try_from_secs_f64(self.baseline.mean * HANG_OF_MEAN).unwrap_or_default();
        (slo.latency_target() * HANG_OF_TARGET)
            .max(MIN_HANG)
            .max(usual)
    }

    /// One round with what happened since the last.
    pub(crate) fn update(&mut self, sample: &Sample, terms: Terms<'_>, now: Instant) {
        self.follow_endpoints(sample.endpoints);
        let tolerated = terms.slo.success_rate().complement().as_f64();
        self.ceiling
            .update(sample, self.burst.max(self.knee.value()), tolerated, now);
        let window = match self.window.take() {
            Some(mut window) => {
                window.extend(sample);
                window
            }
            None => sample.clone(),
        };
        if window.tally.latency.len() < MIN_WINDOW_SAMPLES && window.span < MAX_WINDOW {
            self.window = Some(window);
            return;
        }
        self.judge(&window, terms, now);
    }

    /// The limits in force: for the marginal level, and for those above it.
    pub(crate) fn limits(&mut self, terms: Terms<'_>) -> (u32, u32) {
        let endpoints = f64::from(self.endpoints.max(1));
        let (min, max) = (
            f64::from(terms.limit.min()) * endpoints,
            f64::from(terms.limit.max()) * endpoints,
        );
        let initial = f64::from(terms.limit.initial()) * endpoints;
        let trusted = self.proof >= PROVEN || self.refusing_since.is_none();
        let burst = if self.burst > 0.0 && trusted {
            self.burst
        } else {
            initial * COLD_FACTOR
        };
        let at_knee = self.congested && terms.stance == Stance::FailFast;
        let wanted = if at_knee {
            self.knee.value()
        } else {
            burst.max(initial)
        };
        let held = self.ceiling.hold(wanted);
        let limit = held.clamp(min, max);
        self.reason = if held < wanted {
            LimitReason::LoadFailures
        } else if (limit - held).abs() > 0.5 {
            LimitReason::Bounds
        } else if at_knee {
            LimitReason::Knee
        } else if self.baseline.is_known() {
            LimitReason::Burst
        } else {
            LimitReason::WarmUp
        };
        let reserve = self
            .ceiling
            .hold(burst.max(limit + 2.0 * limit.sqrt()))
            .clamp(limit, max.max(limit));
        (count(limit), count(reserve))
    }

    fn follow_endpoints(&mut self, endpoints: u32) {
        if endpoints == 0 || endpoints == self.endpoints {
            return;
        }
        if self.endpoints > 0 {
            // Capacity comes and goes with endpoints at once; what one of them can do does not change.
            let factor = f64::from(endpoints) / f64::from(self.endpoints);
            self.capacity *= factor;
            self.throughput = self.throughput.min(self.capacity);
            self.burst *= factor;
            self.knee.scale(factor);
            self.ceiling.scale(factor);
        }
        self.endpoints = endpoints;
    }

    fn judge(&mut self, window: &Sample, terms: Terms<'_>, now: Instant) {
        let quantile = terms.slo.latency_quantile().as_f64();
        let latency = &window.tally.latency;
        let Some(low) = latency.quantile(LOW) else {
            // No answer, nothing to learn: a hang is the breaker's business, an idle upstream nobody's.
            if window.in_flight == 0 {
                self.busy_since = None;
                self.relieve(window.mean_in_flight());
            }
            return;
        };
        self.sample_low = low;
        self.sample_tail = latency.quantile(quantile).unwrap_or(low);
        if !self.baseline.is_known()
            || low < self.baseline.low * (1.0 - BUSY_DELAY) && latency.len() >= MIN_WINDOW_SAMPLES
        {
            self.baseline.learn(latency, quantile);
        }
        let refused = window.tally.refused_for_load();
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of one window stay far below 2^53"
        )]
        let refused_f64 = refused as f64;
        let figures = Figures {
            throughput: window.throughput(),
            in_flight: window.mean_in_flight(),
            in_flight_at_end: f64::from(window.in_flight),
            delay: (low - self.baseline.low).max(0.0),
            refused,
            refused_share: refused_f64 / window.count(Count::Arrivals).max(1.0),
        };
        let busy = figures.delay > (self.baseline.mean * BUSY_DELAY).max(MIN_BUSY_DELAY);
        self.learn_capacity(&figures, busy);
        if !busy && !self.congested {
            self.baseline.learn(latency, quantile);
        }
        self.find_standing_queue(&figures, busy, now);
        self.prove_baseline(&figures, latency.len(), now);
        self.guard_slo(window, terms.slo, busy);
        self.set_burst(&figures, terms, busy);
        if self.congested {
            let model = Knee::model(self.capacity, self.baseline.mean);
            match self.knee.update(window, self.baseline.low, model, now) {
                Verdict::Nothing => {}
                Verdict::BaselineLower(measured) => self.baseline.restart(&measured, quantile),
                Verdict::BaselineMoved(measured) => {
                    self.baseline.restart(&measured, quantile);
                    self.proof = PROVEN;
                }
            }
            if figures.refused == 0 && figures.in_flight_at_end < self.knee.value() {
                self.relieve(figures.in_flight);
            }
        }
    }

    fn learn_capacity(&mut self, figures: &Figures, busy: bool) {
        // A window in which the queue ran empty shows less than the upstream can do, a full one shows just that.
        let carried = figures.throughput * self.baseline.mean;
        let full = figures.in_flight_at_end > carried;
        let full_throughout = core::mem::replace(&mut self.full, full) && full;
        if busy && self.capacity > 0.0 && (full_throughout || figures.throughput > self.capacity) {
            self.capacity += (figures.throughput - self.capacity) * CAPACITY_WEIGHT;
            self.throughput = self.capacity;
        } else if !busy || self.capacity <= 0.0 {
            let weight = if self.throughput > 0.0 {
                THROUGHPUT_WEIGHT
            } else {
                1.0
            };
            self.throughput += (figures.throughput - self.throughput) * weight;
            self.capacity = self.capacity.max(self.throughput);
        }
    }

    fn find_standing_queue(&mut self, figures: &Figures, busy: bool, now: Instant) {
        if !busy {
            if self.busy_since.take().is_some() && core::mem::take(&mut self.refused_while_busy) {
                self.nerve = (self.nerve + NERVE_STEP).min(1.0);
            }
            return;
        }
        self.refused_while_busy |= figures.refused > 0;
        let since = *self.busy_since.get_or_insert(now);
        let queue = figures.throughput * figures.delay;
        let patience = STANDING_AFTER
            .max(Duration::try_from_secs_f64(self.baseline.mean * 5.0).unwrap_or_default());
        if !self.congested && queue >= Knee::MIN_HEADROOM && now.saturating_since(since) >= patience
        {
            self.congested = true;
            self.nerve = (self.nerve - NERVE_STEP).max(0.0);
            self.refused_while_busy = false;
            self.knee.enter(
                Knee::model(self.capacity, self.baseline.mean),
                figures.in_flight,
                figures.throughput,
                now,
            );
        }
    }

    /// A baseline learned while requests had to be refused may have a queue in it.
    fn prove_baseline(&mut self, figures: &Figures, answers: u64, now: Instant) {
        if figures.refused == 0 {
            self.proof = self.proof.saturating_add(answers);
            self.refusing_since = None;
        } else if self.proof < PROVEN && !self.congested && figures.refused_share > SEEK_SHARE {
            let since = *self.refusing_since.get_or_insert(now);
            if now.saturating_since(since) >= STANDING_AFTER {
                self.congested = true;
                self.knee.seek(figures.in_flight_at_end, now);
            }
        }
    }

    fn relieve(&mut self, in_flight: f64) {
        if in_flight < self.knee.value() * RELIEF {
            self.congested = false;
        }
    }

    fn guard_slo(&mut self, window: &Sample, slo: &Slo, busy: bool) {
        self.guard.answers += window.count(Count::Successes);
        self.guard.slow += window.count(Count::Slow);
        if self.guard.answers < GUARD_SAMPLES {
            return;
        }
        let allowed = 2.0 * (1.0 - slo.latency_quantile().as_f64());
        let missed = self.guard.slow > allowed * self.guard.answers + 2.0;
        let factor = self.guard.factor;
        let factor = if missed && busy {
            factor * GUARD_CUT
        } else {
            factor + GUARD_STEP
        };
        self.guard = Guard {
            factor: factor.clamp(MIN_GUARD, 1.0),
            answers: 0.0,
            slow: 0.0,
        };
    }

    fn set_burst(&mut self, figures: &Figures, terms: Terms<'_>, busy: bool) {
        let target = terms.slo.latency_target().as_secs_f64();
        // Whoever waits at the end of the queue is served within the mean as often as not, within the tail nearly
        // always. How much to dare is learned from how earlier queues ended.
        let service = self.baseline.tail + (self.baseline.mean - self.baseline.tail) * self.nerve;
        let affordable =
            (target * SLO_USED - service).max(target * MIN_BURST_OF_TARGET) * self.guard.factor;
        let modelled = Knee::model(self.capacity, self.baseline.mean) + self.capacity * affordable;
        self.burst = if figures.refused > 0 && !busy {
            modelled.max(self.burst * GROWTH)
        } else {
            modelled
        };
    }
}

/// A limit as a count: at least one, whatever the float.
fn count(limit: f64) -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of u32"
    )]
    let whole = limit.round().clamp(1.0, f64::from(u32::MAX)) as u32;
    whole
}
