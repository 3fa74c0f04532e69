//! What is usual for an upstream while its breaker is closed: the rate of outcomes, and the share of them that fails.
//!
//! An outage must not make failures usual. It begins some moments before the breaker opens, so the failure rate is then
//! reset to that of a while ago.
//!
//! A new upstream may be one that always fails a little. So the failure rate starts high, and the first outcomes weigh more.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ablation::{Mechanism, is_off};
use crate::breaker::thresholds::probes;
use crate::breaker::window::BucketOutcomes;
use crate::breaker::{FIRST_FAILURE_RATE, Thresholds};
use crate::config::BreakerConfig;
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;
use crate::units::{PerSecond, Share};

/// The memory of the learned failure rate, in outcomes: after this many new ones it has moved more than halfway to their rate.
const RATE_MEMORY: f64 = 200.0;
/// The weight of the initial failure rate, in outcomes.
const FIRST_WEIGHT: f64 = 20.0;
/// Time constant of the learned outcome rate, seconds; shorter at first, so that the rate does not start from zero.
const RATE_SECONDS: f64 = 10.0;
/// Time constant of the usual rate of successes while failures prevail, seconds. It is many times the ten seconds that the
/// window needs to show failures, or the lower rate would become usual first. It is not longer, because traffic may fall
/// meanwhile.
const FAILING_SECONDS: f64 = 300.0;
/// A rate of successes from a shorter time counts as unknown, seconds.
const KNOWN_SECONDS: f64 = 2.0;
/// As many successes as this many standard deviations of a Poisson count may be missing by chance.
const MISSING: f64 = 4.0;
/// The failure rate of this long ago is not affected by an outage that begins now.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The rates that a successor starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RatesCheckpoint {
    /// The share of outcomes that usually fail; meaningless if `outcomes` is 0.
    pub failures: Share,
    /// Outcomes a second; 0 while nothing is known.
    pub outcomes: PerSecond,
}

impl RatesCheckpoint {
    /// The share of outcomes that usually fail, 0..=1; `None` while nothing is known.
    pub(crate) fn usual_failures(&self) -> Option<f64> {
        (self.outcomes.get() > 0.0).then(|| self.failures.get())
    }
}

/// The learned rates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    usual: UsualFailures,
    /// The same a while ago, and the candidate that replaces it.
    settled: UsualFailures,
    settling: UsualFailures,
    settled_at: Instant,
    /// Outcomes a second.
    outcomes: f64,
    /// Seconds from which `outcomes` was learned, at most [`RATE_SECONDS`].
    span: f64,
    /// Successes a second.
    successes: f64,
    /// Seconds without prevailing failures from which `successes` was learned, at most [`RATE_SECONDS`].
    good_span: f64,
}

/// The share of outcomes that usually fail.
#[derive(Clone, Copy, Debug)]
struct UsualFailures {
    /// 0..=1.
    failures: f64,
    /// The share that fail or are later than the latency target, 0..=1: as probes they say nothing, or come too late to count.
    misses: f64,
    /// Outcomes from which it was learned, at most [`RATE_MEMORY`].
    weight: f64,
}

impl Default for UsualFailures {
    fn default() -> Self {
        Self {
            failures: FIRST_FAILURE_RATE,
            misses: FIRST_FAILURE_RATE,
            weight: FIRST_WEIGHT,
        }
    }
}

impl UsualFailures {
    /// Learns from `outcomes`, of which so many failed, and so many succeeded after the latency target.
    fn learn(&mut self, failures: f64, late: f64, outcomes: f64) {
        let weight = outcomes / (outcomes + self.weight);
        let misses = ((failures + late) / outcomes).min(1.0);
        self.failures += (failures / outcomes - self.failures) * weight;
        self.misses += (misses - self.misses) * weight;
        self.weight = (self.weight + outcomes).min(RATE_MEMORY);
    }
}

impl Rates {
    /// Continues from the state of an earlier leader.
    pub(super) fn resume(known: RatesCheckpoint) -> Self {
        let (usual, span) = match known.usual_failures() {
            Some(failures) => {
                let usual = UsualFailures {
                    failures,
                    misses: failures,
                    weight: RATE_MEMORY,
                };
                (usual, RATE_SECONDS)
            }
            None => (UsualFailures::default(), 0.0),
        };
        let outcomes = known.outcomes.get();
        Self {
            usual,
            settled: usual,
            settling: usual,
            settled_at: Instant::default(),
            outcomes,
            span,
            successes: outcomes * (1.0 - usual.failures),
            good_span: span,
        }
    }

    /// The state for a successor.
    pub(super) const fn checkpoint(&self) -> RatesCheckpoint {
        RatesCheckpoint {
            failures: Share::new(self.usual.failures),
            outcomes: PerSecond::new(self.outcomes),
        }
    }

    /// Outcomes a second.
    pub(super) const fn outcomes(&self) -> f64 {
        self.outcomes
    }

    /// Learns from a round with a closed breaker; `failing` while failures prevail.
    pub(super) fn learn(&mut self, sample: &Sample, failing: bool, now: Instant) {
        let failures = sample.count(Count::Failures);
        let successes = sample.successes();
        let outcomes = failures + successes;
        let span = sample.span.as_secs_f64();
        self.outcomes += (outcomes / span - self.outcomes) * span / (span + self.span);
        let memory = if failing && !is_off(Mechanism::FailingMemory) {
            FAILING_SECONDS
        } else {
            self.good_span
        };
        if !failing || self.good_span >= KNOWN_SECONDS {
            self.successes += (successes / span - self.successes) * span / (span + memory);
        }
        if !failing {
            self.good_span = (self.good_span + span).min(RATE_SECONDS);
        }
        self.span = (self.span + span).min(RATE_SECONDS);
        if outcomes > 0.0 && !is_off(Mechanism::UsualRate) {
            let late = sample.count(Count::Slow);
            self.usual.learn(failures, late, outcomes);
        }
        if now.saturating_since(self.settled_at) >= SETTLED_AFTER {
            self.settled_at = now;
            self.settled = self.settling;
            self.settling = self.usual;
        }
    }

    /// Whether the `fresh` successes are so few, compared with the usual rate, that failures have replaced at least `trip_ratio`
    /// (0..=1) of them, and more than are missing by chance. False if the usual rate is unknown: a service that has failed this often
    /// from the start still serves its other requests, and an open breaker would lose these.
    pub(super) fn lacks_successes(&self, fresh: BucketOutcomes, trip_ratio: f64) -> bool {
        let span = fresh.span.as_secs_f64();
        let usual = self.successes * span;
        let missing = usual - fresh.success_rate() * span;
        let is_chance = missing < MISSING * usual.sqrt() && !is_off(Mechanism::MissingByChance);
        self.good_span >= KNOWN_SECONDS && missing >= trip_ratio * usual && !is_chance
    }

    /// The breaker opens because of this low rate of successes. If the rate is the same when the breaker closes, it is the
    /// usual one: to open again would lose these successes.
    pub(super) const fn accept_successes(&mut self, rate: f64) {
        self.successes = rate;
        self.good_span = RATE_SECONDS;
    }

    /// An outage begins: resets the usual failure rate to that of a while ago.
    pub(super) const fn settle(&mut self) {
        self.usual = self.settled;
    }

    /// How many probes decide. A worker knows only the share of failures: a probe that fails where nearly none does may close its
    /// gate at once, a probe that is late may not.
    pub(super) fn probes(&self) -> u32 {
        probes(self.usual.misses)
    }

    /// The weights and threshold of the trip test now.
    pub(super) fn thresholds(&self, config: &BreakerConfig) -> Thresholds {
        let ratio = config.trip_ratio().as_f64();
        Thresholds::new(self.usual.failures, self.outcomes, ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tenth of a second with so many answers, of which so many came after the latency target.
    fn round(successes: u64, late: u64) -> Sample {
        let mut sample = Sample::empty(Duration::from_millis(100));
        sample.tally.add(Count::Successes, successes);
        sample.tally.add(Count::Slow, late);
        sample
    }

    fn probes_after(late: u64) -> u32 {
        let mut rates = Rates::default();
        for tenth in 0..100 {
            let now = Instant::ZERO + Duration::from_millis(100) * tenth;
            rates.learn(&round(10, late), false, now);
        }
        rates.probes()
    }

    #[test]
    fn the_more_answers_are_usually_late_the_more_probes_decide() {
        let found = [0, 1, 3, 5].map(probes_after);
        assert_eq!(found, [1, 2, 3, 5], "of ten answers");
    }

    #[test]
    fn an_outage_begins_with_what_was_usual_a_while_ago() {
        let mut rates = Rates::default();
        for tenth in 0..100 {
            let now = Instant::ZERO + Duration::from_millis(100) * tenth;
            rates.learn(&round(10, if tenth < 90 { 0 } else { 10 }), false, now);
        }
        rates.settle();
        assert_eq!(rates.probes(), 1);
    }

    #[test]
    fn successes_are_replaced_only_if_more_are_missing_than_chance_explains() {
        // After ten seconds of so many successes a second, so many came in two seconds.
        for (usual, fresh, expected) in [
            (100, 100, true),
            (100, 120, false),
            (10, 0, true),
            (10, 2, true),
            (10, 3, false),
            (1, 0, false),
        ] {
            let mut rates = Rates::default();
            for second in 0..10 {
                let mut sample = Sample::empty(Duration::from_secs(1));
                sample.tally.add(Count::Successes, usual);
                let now = Instant::ZERO + Duration::from_secs(second);
                rates.learn(&sample, false, now);
            }
            let outcomes = BucketOutcomes {
                successes: fresh,
                failures: 1_000,
                span: Duration::from_secs(2),
            };
            let found = rates.lacks_successes(outcomes, 0.5);
            assert_eq!(found, expected, "{fresh} where {usual} a second are usual");
        }
    }
}
