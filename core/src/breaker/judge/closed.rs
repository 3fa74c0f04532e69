//! When a closed breaker opens: on the sum of evidence, the window's success rate, or a hang.

use core::time::Duration;

use super::{Findings, Judge, MIN_OVERDUE};
use crate::ablation::{Mechanism, is_off};
use crate::breaker::TripReason;
use crate::breaker::window::BucketOutcomes;
use crate::config::BreakerConfig;
use crate::loads::is_caused_by_load;
use crate::tally::Count;
use crate::time::Instant;

/// A success rate of fewer outcomes means nothing (Hystrix: 20 requests; Linkerd: 5 of one endpoint).
const MIN_REQUESTS: u64 = 20;
/// The success rate must be too low for this long: failures that load causes stop when the limit has followed.
const LOW_PATIENCE: Duration = Duration::from_secs(1);

impl Judge {
    pub(super) fn judge_closed(
        &mut self,
        findings: &Findings<'_>,
        config: &BreakerConfig,
    ) -> Option<TripReason> {
        let sample = findings.sample;
        let (now, trip_ratio) = (findings.now, config.trip_ratio().as_f64());
        let outcomes = BucketOutcomes {
            successes: sample
                .tally
                .get(Count::Successes)
                .saturating_sub(sample.tally.get(Count::Retracted)),
            failures: sample.tally.get(Count::Failures),
            span: sample.span,
        };
        self.window.add(outcomes, now);
        if outcomes.total() > 0 {
            let sent_since = findings.known.floor.usual_wait(findings.target) + sample.span;
            let waiting = self.evidence.waiting_since();
            if outcomes.successes > 0 && waiting.is_some_and(|since| now > since + sent_since) {
                self.successes.doubt(now);
            }
            // An upstream that says it is too busy is alive.
            let is_busy = sample.tally.get(Count::Overloads) > 0;
            let thresholds = self.rates.thresholds(config);
            let evidence = BucketOutcomes {
                failures: if is_busy { 0 } else { outcomes.failures },
                ..outcomes
            };
            if self
                .evidence
                .window(evidence, &thresholds, &self.successes, now)
            {
                return Some(TripReason::ConsecutiveFailures);
            }
        }
        // Failures beside the usual number of successes come from one path or one caller.
        let fresh = self.window.fresh(now);
        let is_low = self
            .window
            .whole(now)
            .fail_at_least(trip_ratio, MIN_REQUESTS)
            && (self.is_failing(now, trip_ratio) || is_off(Mechanism::FreshBuckets))
            && (self.rates.lacks_successes(fresh, trip_ratio) || is_off(Mechanism::LacksSuccesses));
        // Failures that load causes stop when the limit has followed.
        let is_load = is_low
            && is_caused_by_load(&sample.failure_loads(), &sample.success_loads())
            && !is_off(Mechanism::LoadCausedRate);
        if !is_low || is_load || is_off(Mechanism::SuccessRate) {
            if let Some(signs) = &mut self.signs {
                signs.low_since = None;
            }
        } else {
            let since = *self.signs().low_since.get_or_insert(now);
            if now.saturating_since(since) >= LOW_PATIENCE || is_off(Mechanism::LowPatience) {
                if !is_off(Mechanism::AcceptSuccesses) {
                    self.rates.accept_successes(fresh.success_rate());
                }
                return Some(TripReason::LowSuccessRate);
            }
        }
        let hangs = sample.overdue >= MIN_OVERDUE
            && self.is_unanswered(findings)
            && !is_off(Mechanism::Hang);
        hangs.then_some(TripReason::Hang)
    }

    /// Whether at least `trip_ratio` (0..=1) of the newest outcomes failed.
    pub(super) fn is_failing(&mut self, now: Instant, trip_ratio: f64) -> bool {
        self.window
            .fresh(now)
            .fail_at_least(trip_ratio, MIN_REQUESTS / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::judge::BreakerTransition;
    use crate::config::{Config, MINIMAL_EXAMPLE};
    use crate::limit::LimitCheckpoint;
    use crate::sample::Sample;

    const TICK: Duration = Duration::from_millis(100);

    /// The outcomes of one round.
    #[derive(Clone, Copy, Default)]
    struct Round {
        successes: u64,
        failures: u64,
    }

    /// Plays the same round again and again. Returns when and why the breaker opened, if it did.
    fn play(judge: &mut Judge, from: u32, rounds: u32, round: Round) -> Option<(u32, TripReason)> {
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        (from..from + rounds).find_map(|number| {
            let now = Instant::ZERO + TICK * number;
            let mut sample = Sample::empty(TICK);
            sample.tally.add(Count::Successes, round.successes);
            sample.tally.add(Count::Failures, round.failures);
            sample.last_response = now;
            let findings = Findings {
                sample: &sample,
                trips: &[],
                known: &LimitCheckpoint::default(),
                target: Duration::from_millis(300),
                hang_after: Duration::from_millis(500),
                limit: 20,
                probes: 0,
                uniform: 0.0,
                now,
            };
            match judge.update(&findings, config.default_policy().breaker()) {
                Some(BreakerTransition::Trip(reason)) => Some((number - from, reason)),
                _ => None,
            }
        })
    }

    #[test]
    fn an_unknown_upstream_may_be_one_that_fails_often() {
        let dead = Round {
            failures: 1,
            ..Round::default()
        };
        let failures = |judge: &mut Judge, from| {
            let (rounds, reason) = play(judge, from, 50, dead).unwrap();
            assert_eq!(reason, TripReason::ConsecutiveFailures);
            rounds + 1
        };
        // Sixteen failures, and a second in which successes may still come.
        assert_eq!(failures(&mut Judge::default(), 0), 26);
        let mut judge = Judge::default();
        let good = Round {
            successes: 10,
            ..Round::default()
        };
        assert_eq!(play(&mut judge, 0, 30, good), None);
        assert_eq!(failures(&mut judge, 30), 8);
    }

    const GOOD: Round = Round {
        successes: 10,
        failures: 0,
    };

    #[test]
    fn failures_beside_the_usual_successes_are_no_outage() {
        let beside = Round {
            failures: 90,
            ..GOOD
        };
        let instead = Round {
            successes: 2,
            failures: 8,
        };
        let mut judge = Judge::default();
        assert_eq!(play(&mut judge, 0, 100, GOOD), None);
        assert_eq!(play(&mut judge, 100, 300, beside), None, "one caller");
        let (_, reason) = play(&mut judge, 400, 300, instead).unwrap();
        assert_eq!(reason, TripReason::LowSuccessRate, "in place of successes");
    }

    /// A falling rate of successes must not become usual before the window shows the failures.
    #[test]
    fn a_sudden_share_of_failures_opens_the_breaker_before_it_becomes_usual() {
        for failures in [55, 60, 70, 80, 90] {
            let mut judge = Judge::default();
            let good = Round {
                successes: 100,
                ..GOOD
            };
            let failing = Round {
                successes: 100 - failures,
                failures,
            };
            assert_eq!(play(&mut judge, 0, 300, good), None);
            let (rounds, _) = play(&mut judge, 300, 150, failing).unwrap();
            assert!(rounds < 120, "{failures} % after {rounds} rounds");
        }
    }

    #[test]
    fn a_steady_high_failure_rate_does_not_trip() {
        let failing = Round {
            successes: 4,
            failures: 6,
        };
        assert_eq!(play(&mut Judge::default(), 0, 500, failing), None, "always");
        let mut judge = Judge::default();
        assert_eq!(play(&mut judge, 0, 100, GOOD), None);
        assert!(
            play(&mut judge, 100, 200, failing).is_some(),
            "it was better"
        );
        judge.state = crate::breaker::BreakerState::Closed;
        assert_eq!(play(&mut judge, 300, 300, failing), None, "it is no worse");
    }
}
