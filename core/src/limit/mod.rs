//! The concurrency limit: how many requests may be in flight to one upstream.
//!
//! Two limits, for two kinds of overload:
//!
//! - The **burst** limit holds while no queue *stands*. It lets a burst queue as long as the SLO's latency
//!   affords, because a queue that drains costs nobody anything.
//! - The **knee** holds while a queue stands: the fewest requests in flight that carry the greatest throughput,
//!   by Little's law capacity x no-load latency, with some headroom. More would only wait.
//!
//! [`standing`] tells which. Neither needs a probing phase: the baseline is learned when the upstream is not busy
//! ([`baseline`]), capacity when it is. What is assumed while a queue stands is tested by small cuts ([`knee`]): if
//! throughput falls with the limit, there was no queue, and the baseline is what has moved. Of a few requests latency says
//! it ([`vain`]). What a window of evidence says to each of them stands in [`judge`].
//!
//! Failures and refusals that grow with load put a ceiling on both ([`ceiling`]).

mod capacity;
mod ceiling;
mod cruise;
mod feedback;
mod floor;
mod headroom;
mod hold;
mod in_force;
mod judge;
mod learned;
mod queue_test;
mod window;

use core::time::Duration;

use crate::config::{LimitConfig, Slo, Stance};
use crate::exchange::plausible::{PER_SECOND, PLACES, SECONDS};
use crate::sample::Sample;
use crate::time::Instant;
use capacity::Capacity;
use ceiling::Ceiling;
use cruise::Cruise;
use feedback::SloFeedback;
use floor::Floor;
use headroom::headroom;
use hold::Hold;
use in_force::{InForce, Wanted};

pub use cruise::STANDING_AFTER;
pub use learned::{Learned, LimitReason};

/// A window is complete with this many latencies, or after [`MAX_WINDOW`].
const MIN_WINDOW_SAMPLES: u64 = 10;
const MAX_WINDOW: Duration = Duration::from_secs(1);
/// Before anything is known, this many times the initial limit.
const COLD_FACTOR: f64 = 2.0;
/// Once the latency is known, at least this share of the initial limit: traffic that was rare may come in a surge.
const SURGE: f64 = 0.2;
/// And before answers have come for so long all of it: the slow ones are missing among the first.
const COLD_FOR: Duration = Duration::from_secs(2);
/// Share of the objective's latency that may be used; the rest is for what we do not see, the way to the caller.
const OBJECTIVE_USED: f64 = 0.95;
/// Latencies below this share of the objective's leave it so much room that a queue in them does no harm.
const HARMLESS: f64 = 0.7;
/// Weight of the newest round in the mean of uploads under way, and the least that matters.
const UPLOADING_WEIGHT: f64 = 0.2;
const MIN_UPLOADING: f64 = 0.05;
/// The least wait, by the objective's latency, where serving leaves nothing; and where no answer can be in time, so that
/// shedding is of no use.
const MIN_WAIT: f64 = 0.1;
const UNREACHABLE_WAIT: f64 = 0.5;
/// A queue is held at this share of the wait that the objective affords at most.
const HELD_SHARE: f64 = 0.35;

/// What the limiter is told about the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) slo: &'a Slo,
    pub(crate) limit: &'a LimitConfig,
    pub(crate) stance: Stance,
    /// What makes `now` the same clock for all proxies.
    pub(crate) ahead: Duration,
}

/// Whether a queue stands.
///
/// ```text
///          requests refused, and a queue for STANDING_AFTER
///  Cruise ---------------------------------------------------> Hold
///    ^      an outage has begun: what comes back may be less     |
///    +-----------------------------------------------------------+
///                  room under the limit for OVER_AFTER
/// ```
#[derive(Clone, Debug)]
enum State {
    /// No: bursts may wait for what the objective leaves.
    Cruise(Cruise),
    /// It does: as many as keep the upstream busy.
    Hold(Hold),
}

/// The limit of one upstream.
#[derive(Clone, Debug)]
pub(crate) struct Limiter {
    floor: Floor,
    capacity: Capacity,
    state: State,
    ceiling: Ceiling,
    /// How much of the wait is in use, of bursts and while a queue stands.
    burst_feedback: SloFeedback,
    hold_feedback: SloFeedback,
    /// A queue has stood at some time: the capacity is known.
    has_held: bool,
    /// How long answers have come: of the first ones the slow are missing.
    known_for: Duration,
    /// Requests have been refused since, with a floor that may have a queue in it.
    doubtful_since: Option<Instant>,
    window: Option<Sample>,
    sample_low: f64,
    sample_tail: f64,
    endpoints: u32,
    /// Mean uploads under way: they are counted with what is in flight, and are none of the upstream's time.
    uploading: f64,
    in_force: InForce,
}

impl Limiter {
    /// Goes on from what was learned (all zero: from nothing).
    pub(crate) fn resume(learned: &Learned) -> Self {
        Self {
            floor: Floor::believed(
                f64::from(learned.baseline_low),
                f64::from(learned.baseline_mean),
                f64::from(learned.baseline_tail),
            ),
            capacity: Capacity::of(f64::from(learned.capacity)),
            state: if learned.congested {
                State::Hold(Hold::at(f64::from(learned.knee)))
            } else {
                State::Cruise(Cruise::default())
            },
            ceiling: Ceiling::resume(learned),
            burst_feedback: SloFeedback::FULL,
            hold_feedback: SloFeedback::FULL,
            has_held: learned.knee > 0.0,
            known_for: if learned.baseline_mean > 0.0 {
                COLD_FOR
            } else {
                Duration::ZERO
            },
            doubtful_since: None,
            window: None,
            sample_low: f64::from(learned.sample_low),
            sample_tail: f64::from(learned.sample_tail),
            endpoints: learned.endpoints,
            uploading: 0.0,
            in_force: InForce::NONE,
        }
    }

    /// Writes down what a successor needs.
    pub(crate) fn teach(&self, learned: &mut Learned) {
        learned.baseline_low = SECONDS.hold(self.floor.low);
        learned.baseline_mean = SECONDS.hold(self.floor.mean);
        learned.baseline_tail = SECONDS.hold(self.floor.tail);
        learned.sample_low = SECONDS.hold(self.sample_low);
        learned.sample_tail = SECONDS.hold(self.sample_tail);
        learned.capacity = PER_SECOND.hold(self.capacity.value());
        if let State::Hold(hold) = &self.state {
            learned.knee = PLACES.hold(hold.limit());
        }
        self.ceiling.teach(learned);
        learned.congested = self.is_congested();
        learned.endpoints = self.endpoints;
    }

    pub(crate) const fn reason(&self) -> LimitReason {
        self.in_force.reason
    }

    pub(crate) const fn is_congested(&self) -> bool {
        matches!(self.state, State::Hold(_))
    }

    /// The upstream is away, and may be less when it comes back: it is held until it is seen to bear more.
    pub(crate) fn restart_conservatively(&mut self) {
        if self.floor.is_known() && self.floor.is_proven() && !self.is_congested() {
            let carried = self.capacity.value() * self.floor.mean;
            let limit = carried + headroom(carried, self.endpoints);
            self.state = State::Hold(Hold::at(limit));
        }
    }

    /// Answers a second that the upstream can give, as far as seen; 0 when unknown.
    pub(crate) const fn capacity(&self) -> f64 {
        self.capacity.value()
    }

    /// One round with what happened since the last.
    pub(crate) fn update(&mut self, sample: &Sample, terms: Terms<'_>, now: Instant) {
        self.follow_endpoints(sample.endpoints);
        self.uploading += (f64::from(sample.uploading) - self.uploading) * UPLOADING_WEIGHT;
        let tolerated = terms.slo.success_rate().complement().as_f64();
        let unheld = self.cruise_limit(terms).max(self.held_limit());
        self.ceiling.update(sample, unheld, tolerated, now);
        if let State::Hold(hold) = &mut self.state
            && hold.is_over(sample, now)
        {
            self.state = State::Cruise(Cruise::default());
        }
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
        // The least is the proxy's own: a thousand sidecars must not let in a thousand times what a service bears.
        let min = f64::from(terms.limit.min());
        let max = f64::from(terms.limit.max()) * f64::from(self.endpoints.max(1));
        let burst = self.cruise_limit(terms);
        let (limit, law) = match &self.state {
            State::Hold(hold) if terms.stance == Stance::FailFast => {
                (hold.limit(), LimitReason::Knee)
            }
            _ if self.floor.is_known() => (burst, LimitReason::Burst),
            _ => (burst, LimitReason::WarmUp),
        };
        let wanted = Wanted { limit, law, burst };
        let (limit, reserve) = self.in_force.set(&wanted, &self.ceiling, min, max);
        let uploading = in_force::count(self.uploading.ceil());
        if self.uploading > MIN_UPLOADING {
            (limit.saturating_add(uploading), reserve.saturating_add(uploading))
        } else {
            (limit, reserve)
        }
    }

    /// The limit while no queue stands.
    fn cruise_limit(&self, terms: Terms<'_>) -> f64 {
        let initial = f64::from(terms.limit.initial()) * f64::from(self.endpoints.max(1));
        if !self.floor.is_proven() {
            return initial * COLD_FACTOR;
        }
        let capacity = self.capacity.value();
        let carried = capacity * self.floor.mean;
        // What keeps the upstream busy between arrivals waits as well.
        let wait = self.burst_wait(terms.slo);
        let queue = (capacity * wait).max(headroom(carried, self.endpoints));
        let grown = match &self.state {
            State::Cruise(cruise) => cruise.grown(),
            State::Hold(_) => 0.0,
        };
        let least = match self.known_for < COLD_FOR {
            _ if self.has_held => 0.0,
            true => f64::from(terms.limit.initial()),
            false => f64::from(terms.limit.initial()) * SURGE,
        };
        (carried + queue).max(grown).max(least)
    }

    const fn held_limit(&self) -> f64 {
        match &self.state {
            State::Hold(hold) => hold.limit(),
            State::Cruise(_) => 0.0,
        }
    }

    /// How long a request may wait within the objective, in seconds: what is left after serving.
    fn affordable(&self, slo: &Slo) -> f64 {
        self.wait_at(slo, 1.0)
    }

    /// How long bursts may wait, as they have turned out so far.
    fn burst_wait(&self, slo: &Slo) -> f64 {
        self.wait_at(slo, self.burst_feedback.gain())
    }

    /// What the objective leaves after serving. The last in a queue is served within the mean as often as not, within the
    /// tail nearly always: a `gain` of 1 is halfway, and below a half there is less than the tail leaves.
    fn wait_at(&self, slo: &Slo, gain: f64) -> f64 {
        let target = slo.latency_target().as_secs_f64();
        let used = target * OBJECTIVE_USED;
        let quantile = slo.latency_quantile().as_f64();
        match self.floor.tail_within(used, quantile) {
            Some(tail) => {
                let left = (used - tail).max(target * MIN_WAIT);
                let spread = (tail - self.floor.mean).max(0.0);
                if gain < 0.5 {
                    left * gain * 2.0
                } else {
                    left + spread * (gain - 0.5)
                }
            }
            None => (target * UNREACHABLE_WAIT).max(self.floor.mean),
        }
    }

    /// Whether no shedding makes most answers be in time.
    fn is_unreachable(&self, slo: &Slo) -> bool {
        let used = slo.latency_target().as_secs_f64() * OBJECTIVE_USED;
        let quantile = slo.latency_quantile().as_f64();
        self.floor.is_proven() && self.floor.tail_within(used, quantile).is_none()
    }

    fn follow_endpoints(&mut self, endpoints: u32) {
        if endpoints == 0 || endpoints == self.endpoints {
            return;
        }
        if self.endpoints > 0 {
            // Capacity comes and goes with endpoints at once; what one of them can do does not change.
            let factor = f64::from(endpoints) / f64::from(self.endpoints);
            self.capacity.scale(factor);
            match &mut self.state {
                State::Cruise(cruise) => cruise.scale(factor),
                State::Hold(hold) => hold.scale(factor),
            }
            self.ceiling.scale(factor);
        }
        self.endpoints = endpoints;
    }
}
