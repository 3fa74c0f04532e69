//! What is usual for an upstream while its breaker is closed: how many outcomes it has, and what share of them fails.
//!
//! An outage must not teach that failing is usual. It shows some moments before the breaker opens; so what was learned
//! then is taken back to what held a while ago.

use core::time::Duration;

use crate::breaker::evidence::Thresholds;
use crate::config::BreakerConfig;
use crate::exchange::plausible::{PER_SECOND, SHARE};
use crate::limit::Learned;
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;

/// Outcomes in which the learned failure rate moves halfway and a bit.
const RATE_MEMORY: f64 = 200.0;
/// Time constant of the learned outcome rate, seconds; shorter at first, so that the beginning is no rate of zero.
const RATE_SECONDS: f64 = 10.0;
/// What a failure rate was this long ago is free of the outage that begins now.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// The rates, as learned.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    /// Share of outcomes that fail, 0..=1.
    failures: f64,
    /// The same a while ago, and the candidate that takes its place.
    settled: f64,
    settling: f64,
    settled_at: Instant,
    /// Outcomes a second.
    outcomes: f64,
    /// Seconds that `outcomes` stands on, at most [`RATE_SECONDS`].
    span: f64,
}

impl Rates {
    pub(super) fn resume(learned: &Learned) -> Self {
        let failures = f64::from(learned.failure_rate);
        Self {
            failures,
            settled: failures,
            settling: failures,
            settled_at: Instant::default(),
            outcomes: f64::from(learned.rate),
            span: if learned.rate > 0.0 {
                RATE_SECONDS
            } else {
                0.0
            },
        }
    }

    pub(super) fn teach(&self, learned: &mut Learned) {
        learned.failure_rate = SHARE.hold(self.failures);
        learned.rate = PER_SECOND.hold(self.outcomes);
    }

    /// Outcomes a second.
    pub(super) const fn outcomes(&self) -> f64 {
        self.outcomes
    }

    /// Learns from a round with a closed breaker.
    pub(super) fn learn(&mut self, sample: &Sample, now: Instant) {
        let failures = sample.count(Count::Failures);
        let outcomes = failures + sample.count(Count::Successes);
        let span = sample.span.as_secs_f64();
        self.outcomes += (outcomes / span - self.outcomes) * span / (span + self.span);
        self.span = (self.span + span).min(RATE_SECONDS);
        if outcomes > 0.0 {
            self.failures +=
                (failures / outcomes - self.failures) * outcomes / (outcomes + RATE_MEMORY);
        }
        if now.saturating_since(self.settled_at) >= SETTLED_AFTER {
            self.settled_at = now;
            self.settled = self.settling;
            self.settling = self.failures;
        }
    }

    /// The outage that begins now must not teach what is usual.
    pub(super) const fn settle(&mut self) {
        self.failures = self.settled;
    }

    /// What an outcome weighs now.
    pub(super) fn thresholds(&self, config: &BreakerConfig) -> Thresholds {
        Thresholds::new(self.failures, self.outcomes, config.trip_ratio().as_f64())
    }
}
