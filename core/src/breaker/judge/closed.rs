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
        let hangs = self.are_enough_overdue(findings) && self.is_unanswered(findings)
            || self.is_full_in_silence(findings);
        (hangs && !is_off(Mechanism::Hang)).then_some(TripReason::Hang)
    }

    /// Whether so many requests are overdue that it may be a hang. A limit may admit fewer. Where they fill it, nothing but the breaker lets
    /// another request in. The fewer they are, the longer they must have waited. Requests whose callers left are overdue, too, but fill no limit.
    fn are_enough_overdue(&self, findings: &Findings<'_>) -> bool {
        let sample = findings.sample;
        let filling = sample.overdue.min(sample.in_flight);
        let is_full = filling >= findings.limit && !is_off(Mechanism::HangOfFew);
        let waited = self.silent_for(findings).saturating_mul(filling);
        let needed = self.latency.patience(findings).saturating_mul(MIN_OVERDUE);
        sample.overdue >= MIN_OVERDUE || is_full && waited >= needed
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
    use crate::units::Seconds;

    const TICK: Duration = Duration::from_millis(100);

    /// The outcomes of one round.
    #[derive(Clone, Copy, Default)]
    struct Round {
        successes: u64,
        failures: u64,
    }

    fn findings<'a>(sample: &'a Sample, known: &'a LimitCheckpoint, now: Instant) -> Findings<'a> {
        Findings {
            sample,
            trips: &[],
            known,
            target: Duration::from_millis(300),
            hang_after: Duration::from_millis(500),
            limit: 20,
            probes: 0,
            uniform: 0.0,
            now,
        }
    }

    /// Plays the same round again and again. Returns when and why the breaker opened, if it did.
    fn play(judge: &mut Judge, from: u32, rounds: u32, round: Round) -> Option<(u32, TripReason)> {
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        let known = LimitCheckpoint::default();
        (from..from + rounds).find_map(|number| {
            let now = Instant::ZERO + TICK * number;
            let mut sample = Sample::empty(TICK);
            sample.tally.add(Count::Successes, round.successes);
            sample.tally.add(Count::Failures, round.failures);
            sample.last_response = now;
            let findings = findings(&sample, &known, now);
            match judge.update(&findings, config.default_policy().breaker()) {
                Some(BreakerTransition::Trip(reason)) => Some((number - from, reason)),
                _ => None,
            }
        })
    }

    /// The limit, requests that are overdue and in flight, and after how many milliseconds without an answer the breaker opens. A request hangs
    /// after 500 ms.
    #[test]
    fn a_few_requests_that_fill_the_limit_are_a_hang_after_a_longer_wait() {
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        let mut known = LimitCheckpoint::default();
        known.floor.mean = Seconds::new(0.05);
        for (limit, overdue, in_flight, expected) in [
            (20, 4, 20, None),
            (20, 5, 20, Some(500)),
            (4, 3, 4, None),
            (4, 4, 4, Some(700)),
            (4, 4, 3, None),
            (2, 2, 2, Some(1_300)),
            (1, 1, 1, Some(2_500)),
            (1, 4, 1, Some(2_500)),
            (1, 4, 0, None),
        ] {
            let mut judge = Judge::default();
            assert_eq!(play(&mut judge, 0, 31, GOOD), None);
            let answered = Instant::ZERO + Duration::from_secs(3);
            let silent_for = (100..5_000).step_by(100).find(|millis| {
                let mut sample = Sample::empty(TICK);
                (sample.overdue, sample.in_flight) = (overdue, in_flight);
                sample.last_response = answered;
                let now = answered + Duration::from_millis(*millis);
                let findings = Findings {
                    limit,
                    ..findings(&sample, &known, now)
                };
                let change = judge.update(&findings, config.default_policy().breaker());
                change == Some(BreakerTransition::Trip(TripReason::Hang))
            });
            assert_eq!(silent_for, expected, "{overdue} and {in_flight} of {limit}");
        }
    }

    /// The mean latency without a queue in seconds, the limit, requests in flight, and after how many milliseconds without an answer the
    /// breaker opens. None is overdue: a request hangs after 16 s.
    #[test]
    fn a_full_limit_in_silence_is_a_hang_sooner_where_answers_are_fast() {
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        for (mean, limit, in_flight, expected) in [
            (0.05, 20, 20, Some(2_000)),
            (0.05, 20, 19, None),
            (0.25, 20, 20, Some(3_800)),
            (0.25, 20, 30, Some(3_800)),
            (1.1, 20, 20, None),
            (0.0, 20, 20, None),
            (0.05, 5, 5, Some(2_000)),
            (0.05, 4, 4, None),
        ] {
            let mut known = LimitCheckpoint::default();
            known.floor.mean = Seconds::new(mean);
            let mut judge = Judge::default();
            assert_eq!(play(&mut judge, 0, 31, GOOD), None);
            let answered = Instant::ZERO + Duration::from_secs(3);
            let silent_for = (100..16_000).step_by(100).find(|millis| {
                let mut sample = Sample::empty(TICK);
                sample.in_flight = in_flight;
                sample.last_response = answered;
                let now = answered + Duration::from_millis(*millis);
                let findings = Findings {
                    limit,
                    target: Duration::from_secs(8),
                    hang_after: Duration::from_secs(16),
                    ..findings(&sample, &known, now)
                };
                let change = judge.update(&findings, config.default_policy().breaker());
                change == Some(BreakerTransition::Trip(TripReason::Hang))
            });
            assert_eq!(silent_for, expected, "{mean} s, {in_flight} of {limit}");
        }
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
