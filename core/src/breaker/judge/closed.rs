//! When a closed breaker opens: the sum of evidence, the window's success rate, a hang, or calls that stay too slow.

use core::time::Duration;

use super::{Findings, Judge, MIN_OVERDUE};
use crate::breaker::TripReason;
use crate::breaker::evidence::{Finding, Loads, is_caused_by_load};
use crate::breaker::window::Outcomes;
use crate::config::BreakerConfig;
use crate::tally::Count;

/// A success rate of fewer outcomes means nothing (Hystrix: 20 requests; Linkerd: 5 of one endpoint).
const MIN_REQUESTS: u64 = 20;
/// The last two buckets must agree with the window, so that an outage that is over does not trip.
const FRESH_BUCKETS: usize = 2;
/// Slow calls trip only when the limit has been at its floor for so long.
const SLOW_PATIENCE: Duration = Duration::from_secs(3);
/// The share of answers beyond the target that makes an upstream useless.
const SLOW_SHARE: f64 = 0.9;
/// A success rate too low must stay so for this long: failures that load causes stop when the limit has followed.
const LOW_PATIENCE: Duration = Duration::from_secs(1);

impl Judge {
    pub(super) fn judge_closed(
        &mut self,
        findings: &Findings<'_>,
        config: &BreakerConfig,
    ) -> Option<TripReason> {
        let sample = findings.sample;
        let thresholds = self.rates.thresholds(config);
        let (successes, failures) = (sample.success_loads(), sample.failure_loads());
        self.window.add(
            Outcomes {
                successes: sample.tally.get(Count::Successes),
                failures: sample.tally.get(Count::Failures),
            },
            findings.now,
        );
        if sample.tally.get(Count::Failures) > 0 || successes.n > 0.0 {
            let judged = if sample.tally.get(Count::Overloads) == 0 {
                failures
            } else {
                Loads::default()
            };
            if self.evidence.window(successes, judged, &thresholds) == Finding::Outage {
                return Some(TripReason::ConsecutiveFailures);
            }
        }
        let trip_ratio = config.trip_ratio().as_f64();
        let whole = self
            .window
            .whole(findings.now)
            .fail_at_least(trip_ratio, MIN_REQUESTS);
        let fresh = self
            .window
            .recent(FRESH_BUCKETS, findings.now)
            .fail_at_least(trip_ratio, MIN_REQUESTS / 2);
        if !(whole && fresh) || is_caused_by_load(&failures, &successes) {
            self.low_since = None;
        } else if findings
            .now
            .saturating_since(*self.low_since.get_or_insert(findings.now))
            >= LOW_PATIENCE
        {
            return Some(TripReason::LowSuccessRate);
        }
        let silent = findings.now.saturating_since(sample.last_response) >= findings.hang_after;
        if sample.overdue >= MIN_OVERDUE && silent {
            return Some(TripReason::Hang);
        }
        self.is_slow(findings).then_some(TripReason::SlowCalls)
    }

    /// Whether answers stayed far too slow although hardly anything is let in.
    fn is_slow(&mut self, findings: &Findings<'_>) -> bool {
        let sample = findings.sample;
        let judged = sample
            .count(Count::Slow)
            .max(sample.count(Count::Successes));
        let slow = judged > 0.0
            && sample.count(Count::Slow) >= SLOW_SHARE * judged
            && findings.limit <= findings.min_limit;
        if judged > 0.0 && !slow {
            self.slow_since = None;
        }
        if !slow {
            return false;
        }
        let since = *self.slow_since.get_or_insert(findings.now);
        findings.now.saturating_since(since) >= SLOW_PATIENCE
    }
}
