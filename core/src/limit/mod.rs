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

mod baseline;
mod burst;
mod capacity;
mod ceiling;
mod figures;
mod forming;
mod headroom;
mod in_force;
mod judge;
mod knee;
mod learned;
mod proof;
mod share;
mod standing;
mod vain;

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::config::{LimitConfig, Slo, Stance};
use crate::exchange::plausible::{PER_SECOND, PLACES, SECONDS};
use crate::sample::Sample;
use crate::time::Instant;
use baseline::Baseline;
use burst::Burst;
use capacity::Capacity;
use ceiling::Ceiling;
use forming::Forming;
use in_force::{InForce, Wanted};
use knee::Knee;
use proof::Proof;
use share::is_one_of_many;
use standing::Standing;
use vain::Vain;

pub use learned::{Learned, LimitReason};
pub use standing::STANDING_AFTER;

/// A window is complete with this many latencies, or after [`MAX_WINDOW`].
const MIN_WINDOW_SAMPLES: u64 = 10;
const MAX_WINDOW: Duration = Duration::from_secs(1);
/// Before anything is known, this many times the initial limit.
const COLD_FACTOR: f64 = 2.0;
/// At least this share of the initial limit is let in when an upstream is back from an outage, or has shown its capacity.
const MISTRUSTED: f64 = 0.25;
/// With less than this share of the limit in flight, there is room.
const ROOM: f64 = 0.5;

/// What the limiter is told about the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) slo: &'a Slo,
    pub(crate) limit: &'a LimitConfig,
    pub(crate) stance: Stance,
    /// What makes `now` the same clock for all proxies.
    pub(crate) ahead: Duration,
}

/// The limit of one upstream.
#[derive(Clone, Debug)]
pub(crate) struct Limiter {
    baseline: Baseline,
    /// Until the baseline is of all requests.
    forming: Option<Forming>,
    capacity: Capacity,
    burst: Burst,
    knee: Knee,
    ceiling: Ceiling,
    standing: Standing,
    proof: Proof,
    vain: Vain,
    window: Option<Sample>,
    sample_low: f64,
    sample_tail: f64,
    endpoints: u32,
    in_force: InForce,
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
            forming: (learned.baseline_mean <= 0.0 && !is_off(Mechanism::Forming))
                .then(Forming::default),
            capacity: Capacity::of(f64::from(learned.capacity)),
            burst: Burst::resume(learned),
            knee: Knee::at(f64::from(learned.knee)),
            ceiling: Ceiling::resume(learned),
            standing: Standing::resume(learned.congested),
            proof: Proof::inherited(learned.baseline_mean > 0.0),
            vain: Vain::default(),
            window: None,
            sample_low: f64::from(learned.sample_low),
            sample_tail: f64::from(learned.sample_tail),
            endpoints: learned.endpoints,
            in_force: InForce::NONE,
        }
    }

    /// Writes down what a successor needs.
    pub(crate) fn teach(&self, learned: &mut Learned) {
        learned.baseline_low = SECONDS.hold(self.baseline.low);
        learned.baseline_mean = SECONDS.hold(self.baseline.mean);
        learned.baseline_tail = SECONDS.hold(self.baseline.tail);
        learned.sample_low = SECONDS.hold(self.sample_low);
        learned.sample_tail = SECONDS.hold(self.sample_tail);
        learned.capacity = PER_SECOND.hold(self.capacity.value());
        learned.knee = PLACES.hold(self.knee.value());
        self.burst.teach(learned);
        self.ceiling.teach(learned);
        learned.congested = self.standing.stands();
        learned.endpoints = self.endpoints;
    }

    pub(crate) const fn reason(&self) -> LimitReason {
        self.in_force.reason
    }

    pub(crate) const fn is_congested(&self) -> bool {
        self.standing.stands()
    }

    /// The upstream is away, and may be less when it comes back: the knee is to hold until it is seen to bear more.
    pub(crate) fn mistrust(&mut self, terms: Terms<'_>) {
        if self.baseline.is_known()
            && self.proof.is_complete()
            && !self.standing.stands()
            && !is_off(Mechanism::Suspected)
        {
            let model = Knee::model(self.capacity.value(), self.baseline.mean, self.endpoints);
            // What was rarely asked has shown little of what it can do.
            let least = f64::from(terms.limit.initial()) * MISTRUSTED;
            let is_raised = model < least && !is_off(Mechanism::RestartFloor);
            self.knee.hold(if is_raised { least } else { model });
            self.standing.suspect();
            self.vain.forget();
        }
    }

    /// Answers a second that the upstream can give, as far as seen; 0 when unknown.
    pub(crate) const fn capacity(&self) -> f64 {
        self.capacity.value()
    }

    /// One round with what happened since the last.
    pub(crate) fn update(&mut self, sample: &Sample, terms: Terms<'_>, now: Instant) {
        self.follow_endpoints(sample.endpoints);
        let tolerated = terms.slo.success_rate().complement().as_f64();
        let unheld = self.burst.value().max(self.knee.value());
        self.ceiling.update(sample, unheld, tolerated, now);
        if self.standing.stands() {
            // Who carries less than one request holds no queue, and has a limit that chance alone meets.
            let holds_with_others = self.is_one_of_many() && self.carried() >= 1.0;
            self.standing
                .relieve(sample, self.knee.value(), holds_with_others, now);
        }
        if f64::from(sample.in_flight) < self.in_force.limit * ROOM
            && sample.tally.refused_for_load() == 0
        {
            self.proof.calm();
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
        let endpoints = f64::from(self.endpoints.max(1));
        let bound = |per_endpoint: u32| f64::from(per_endpoint) * endpoints;
        // The least is the proxy's own: a thousand sidecars must not let in a thousand times what a service bears.
        let (min, max) = (f64::from(terms.limit.min()), bound(terms.limit.max()));
        let burst = match self.burst.value() {
            burst if burst > 0.0 && self.proof.is_undoubted() => burst,
            _ if is_off(Mechanism::ColdFactor) => bound(terms.limit.initial()),
            _ => bound(terms.limit.initial()) * COLD_FACTOR,
        };
        let at_knee =
            self.standing.stands() && terms.stance == Stance::FailFast && !is_off(Mechanism::Knee);
        let (limit, law) = if at_knee {
            (self.knee.value(), LimitReason::Knee)
        } else {
            let law = if self.baseline.is_known() {
                LimitReason::Burst
            } else {
                LimitReason::WarmUp
            };
            // Traffic that was rare may come in a surge; but what each endpoint bears is known better by now.
            let initial = f64::from(terms.limit.initial());
            let least = if self.capacity.is_shown() && !is_off(Mechanism::Shown) {
                initial * MISTRUSTED
            } else {
                initial
            };
            let is_raised = burst < least && !is_off(Mechanism::InitialFloor);
            (if is_raised { least } else { burst }, law)
        };
        let wanted = Wanted { limit, law, burst };
        self.in_force.set(&wanted, &self.ceiling, min, max)
    }

    /// What is in flight without a queue, by Little's law.
    fn carried(&self) -> f64 {
        self.capacity.value() * self.baseline.mean
    }

    /// Whether a queue that stands is mostly of other proxies.
    fn is_one_of_many(&self) -> bool {
        is_one_of_many(self.carried(), self.endpoints)
    }

    fn follow_endpoints(&mut self, endpoints: u32) {
        if endpoints == 0 || endpoints == self.endpoints {
            return;
        }
        if self.endpoints > 0 && !is_off(Mechanism::EndpointsScale) {
            // Capacity comes and goes with endpoints at once; what one of them can do does not change.
            let factor = f64::from(endpoints) / f64::from(self.endpoints);
            self.capacity.scale(factor);
            self.burst.scale(factor);
            self.knee.scale(factor);
            self.ceiling.scale(factor);
            self.vain.forget();
        }
        self.endpoints = endpoints;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::tally::Count;

    fn limiter() -> Limiter {
        Limiter::resume(&Learned {
            baseline_low: 0.1,
            baseline_mean: 0.1,
            baseline_tail: 0.15,
            capacity: 30.0,
            burst: 10.0,
            ..Learned::default()
        })
    }

    /// A second of thirty answers a fifth of a second each, and of fewer in flight when requests are held back.
    fn second(in_flight: u64) -> Sample {
        let mut sample = Sample::empty(Duration::from_secs(1));
        (0..30).for_each(|_| sample.tally.latency.record(Duration::from_millis(200)));
        sample
            .tally
            .add(Count::InFlightMicros, in_flight * 1_000_000);
        sample
    }

    /// Whether holding back is found to be in vain against what was before, when this happened in between.
    fn compares_after(event: impl Fn(&mut Limiter, Terms<'_>)) -> bool {
        let text = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}}}"#;
        let config = Config::from_json(text.as_bytes()).unwrap();
        let policy = config.policy(crate::config::RuleIndex::TopLevel);
        let terms = Terms {
            slo: policy.slo(),
            limit: policy.limit(),
            stance: Stance::FailFast,
            ahead: Duration::ZERO,
        };
        let mut limiter = limiter();
        limiter.vain.found(&second(6), Instant::ZERO);
        event(&mut limiter, terms);
        let target = policy.slo().latency_target();
        (1..10_u32).any(|after| {
            let now = Instant::ZERO + Duration::from_secs(1) * after;
            limiter.vain.held(&second(3), target, now).is_some()
        })
    }

    #[test]
    fn what_was_before_a_queue_that_was_found_says_nothing_of_one_that_is_assumed() {
        assert!(compares_after(|_, _| {}));
        assert!(!compares_after(|limiter, terms| limiter.mistrust(terms)));
        assert!(!compares_after(|limiter, _| {
            limiter.follow_endpoints(2);
            limiter.follow_endpoints(4);
        }));
    }
}
