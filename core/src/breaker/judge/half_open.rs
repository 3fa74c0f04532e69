//! Recovery: a probe decides whether the upstream is back, the ramp how fast traffic returns.

use super::{BreakerTransition, Findings, Judge, MIN_OVERDUE};
use crate::ablation::{Mechanism, is_off};
use crate::breaker::{BreakerState, TripReason};
use crate::limit::LimitCheckpoint;
use crate::shed::ShedReason;
use crate::tally::{Count, Tally};
use crate::time::Instant;

/// Without a limit of Hold, the ramp starts with the limit divided by this. It doubles in each round with an answer.
const FIRST_RAMP_STEP: u32 = 4;

impl Judge {
    /// Whether the breaker opened because no answer came, and requests from before that are answered now, after such a wait: they did
    /// not hang, or the hang is over. Answers after a shorter wait do not contradict the hang.
    pub(super) fn has_stale_answer(&self, findings: &Findings<'_>) -> bool {
        let signs = self.signs.as_deref();
        signs.is_some_and(|signs| signs.opened_in_silence)
            && findings.sample.stale_wait() >= Some(findings.hang_after)
            && !is_off(Mechanism::StaleAnswers)
    }

    pub(super) fn judge_probe(
        &mut self,
        findings: &Findings<'_>,
        until: Instant,
        probes: u64,
    ) -> Option<BreakerTransition> {
        let tally = &findings.sample.tally;
        // One successful probe shows that the upstream is back, even if others failed. The ramp judges how good it is.
        if tally.get(Count::ProbeSuccesses) > 0 {
            return Some(BreakerTransition::Ramp);
        }
        let signs = self.signs.get_or_insert_default();
        signs.probe_failures += tally.get(Count::ProbeFailures);
        if signs.probe_failures >= u64::from(self.rates.probes()) {
            return Some(BreakerTransition::Trip(TripReason::ProbeFailed));
        }
        // A probe may have been sent without a report: its worker is gone, or reported to another leader. Then other requests
        // are refused as probes, or the ceiling is reached.
        if tally.get(Count::ProbesSent) > 0 || findings.probes >= probes || refuses_probes(tally) {
            // It was sent after the interval ended, and not before the last round.
            let earliest = findings.now - findings.sample.span;
            signs
                .probing_since
                .get_or_insert_with(|| until.max(earliest).min(findings.now));
        }
        // After a jump backwards the wait starts over.
        let since = signs.probing_since?.min(findings.now);
        signs.probing_since = Some(since);
        if findings.now.saturating_since(since) >= self.latency.patience(findings)
            && !is_off(Mechanism::ProbeHang)
        {
            return Some(BreakerTransition::Trip(TripReason::ProbeFailed));
        }
        let granted_at = *signs.granted_at.get_or_insert(since);
        let usual = findings.known.floor.usual_wait(findings.target);
        let patience = usual.max(signs.interval / 2);
        if findings.probes >= probes
            && findings.now.saturating_since(granted_at) >= patience
            && !is_off(Mechanism::ProbeCompany)
        {
            // The probe may hang for a long time although the upstream is back: allow another probe.
            signs.granted_at = Some(findings.now);
            self.state = BreakerState::Open {
                until,
                probes: findings.probes.saturating_add(1),
            };
            return None;
        }
        if findings.sample.in_flight == 0
            && tally.get(Count::ProbesSent) == 0
            && since + findings.sample.span < findings.now
        {
            // The probe ended without a result because its caller left, and every worker has reported since: grant another.
            signs.probing_since = None;
            self.state = BreakerState::Open {
                until,
                probes: probes.max(findings.probes).saturating_add(1),
            };
        }
        None
    }

    pub(super) fn judge_ramp(
        &mut self,
        findings: &Findings<'_>,
        limit: u32,
    ) -> Option<BreakerTransition> {
        let sample = findings.sample;
        if sample.overdue >= MIN_OVERDUE.min(limit)
            && self.is_unanswered(findings)
            && !is_off(Mechanism::Hang)
        {
            return Some(BreakerTransition::Trip(TripReason::Hang));
        }
        // Any answer shows that the upstream is alive, even the answer to a client error.
        let answers = sample.tally.get(Count::Successes) + sample.tally.get(Count::Ignored);
        if answers == 0 && !self.has_stale_answer(findings) {
            return None;
        }
        let next = limit.saturating_mul(2);
        if next >= findings.limit {
            return Some(BreakerTransition::Reset);
        }
        self.state = BreakerState::Ramp { limit: next };
        None
    }
}

/// The first limit of the ramp: the limit of Hold, which causes no queue, or a part of the limit in force without one.
pub(crate) fn ramp_start(limit: u32, known: &LimitCheckpoint) -> u32 {
    if is_off(Mechanism::Ramp) || known.is_congested() && !is_off(Mechanism::RampFromHold) {
        limit
    } else {
        (limit / FIRST_RAMP_STEP).max(1)
    }
}

/// Whether half-open refused any request, in any mode.
fn refuses_probes(tally: &Tally) -> bool {
    tally.shed(ShedReason::BreakerHalfOpen) > 0
        || tally.would_shed(ShedReason::BreakerHalfOpen) > 0
        || tally.get(Count::Spared) > 0
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::breaker::{BreakerCheckpoint, LocalTrip, RatesCheckpoint};
    use crate::config::{Config, MINIMAL_EXAMPLE};
    use crate::sample::Sample;
    use crate::units::{PerSecond, Share};

    const HANG_AFTER: Duration = Duration::from_millis(500);

    const FAILING: LocalTrip = LocalTrip {
        sequence: 1,
        epoch: 0,
        reason: TripReason::ConsecutiveFailures,
    };

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn half_open() -> Judge {
        half_open_of(0.0, 1)
    }

    /// For an upstream that usually fails this share of its outcomes, with this many probes granted.
    fn half_open_of(failure_rate: f64, probes: u64) -> Judge {
        let state = BreakerState::Open {
            until: at(1_000),
            probes,
        };
        let known = BreakerCheckpoint {
            rates: RatesCheckpoint {
                failures: Share::new(failure_rate),
                outcomes: PerSecond::new(100.0),
            },
            ..BreakerCheckpoint::default()
        };
        Judge::resume(state, 1, &known)
    }

    /// One round with these counts, and `sent` probes in all.
    fn round(
        judge: &mut Judge,
        counts: &[Count],
        sent: u64,
        now: Instant,
    ) -> Option<BreakerTransition> {
        let mut sample = Sample::empty(Duration::from_millis(100));
        for count in counts {
            sample.tally.add(*count, 1);
        }
        let findings = Findings {
            sample: &sample,
            trips: &[],
            known: &LimitCheckpoint::default(),
            target: Duration::from_millis(300),
            hang_after: HANG_AFTER,
            limit: 20,
            probes: sent,
            uniform: 0.0,
            now,
        };
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        judge.update(&findings, config.default_policy().breaker())
    }

    #[test]
    fn a_probe_decides() {
        let probe = |outcome| {
            let counts = [Count::ProbesSent, outcome];
            round(&mut half_open(), &counts, 1, at(1_100))
        };
        let failed = BreakerTransition::Trip(TripReason::ProbeFailed);
        assert_eq!(probe(Count::ProbeFailures), Some(failed));
        assert_eq!(probe(Count::ProbeSuccesses), Some(BreakerTransition::Ramp));
    }

    #[test]
    fn several_probes_decide_if_requests_usually_fail() {
        let failed = [Count::ProbesSent, Count::ProbeFailures];
        let mut judge = half_open_of(0.3, 3);
        assert_eq!(round(&mut judge, &failed, 1, at(1_100)), None);
        assert_eq!(round(&mut judge, &failed, 2, at(1_200)), None);
        let tripped = round(&mut judge, &failed, 3, at(1_300));
        assert_eq!(
            tripped,
            Some(BreakerTransition::Trip(TripReason::ProbeFailed))
        );
        let BreakerState::Open { probes, .. } = judge.state() else {
            panic!("open again");
        };
        assert_eq!(probes, 3 + 3, "as many for the next time");

        let mut judge = half_open_of(0.3, 3);
        round(&mut judge, &failed, 1, at(1_100));
        let both = [Count::ProbeFailures, Count::ProbeSuccesses];
        let ramp = round(&mut judge, &both, 3, at(1_200));
        assert_eq!(ramp, Some(BreakerTransition::Ramp), "one of them succeeds");
        let ramp = round(&mut half_open(), &both, 2, at(1_100));
        assert_eq!(
            ramp,
            Some(BreakerTransition::Ramp),
            "also where one decides"
        );
    }

    #[test]
    fn the_wait_for_an_unreported_probe_ends() {
        // Its worker crashed: the shared count has the probe, and no report has it.
        let mut judge = half_open();
        assert_eq!(round(&mut judge, &[], 1, at(1_100)), None);
        assert_eq!(round(&mut judge, &[], 1, at(1_200)), None);
        let granted = BreakerState::Open {
            until: at(1_000),
            probes: 2,
        };
        assert_eq!(judge.state(), granted);
    }

    /// A service that takes two seconds, asked for the first time. Rounds of 100 ms; when no answer has come, requests wait.
    #[test]
    fn answers_to_requests_from_before_end_an_outage_that_began_in_silence() {
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        let play = |failure_at: Option<u64>, waited| {
            let mut judge = Judge::default();
            let mut changes = Vec::new();
            for millis in (100..9_000).step_by(100) {
                let mut sample = Sample::empty(Duration::from_millis(100));
                sample.overdue = 20;
                sample.in_flight = 20;
                if Some(millis) == failure_at {
                    sample.last_response = at(millis);
                }
                if millis == 7_000 {
                    sample.last_response = at(millis);
                    sample.tally.add_stale_answer(Duration::from_millis(waited));
                }
                let findings = Findings {
                    sample: &sample,
                    trips: if Some(millis) == failure_at {
                        &[FAILING]
                    } else {
                        &[]
                    },
                    known: &LimitCheckpoint::default(),
                    target: Duration::from_millis(300),
                    hang_after: HANG_AFTER,
                    limit: 20,
                    probes: 0,
                    uniform: 0.0,
                    now: at(millis),
                };
                let change = judge.update(&findings, config.default_policy().breaker());
                changes.extend(change.map(|change| (millis, change)));
            }
            changes.truncate(2);
            changes
        };
        let hang = (5_000, BreakerTransition::Trip(TripReason::Hang));
        let ramp = (7_000, BreakerTransition::Ramp);
        assert_eq!(play(None, 7_000), [hang, ramp]);
        assert_eq!(play(None, 500), [hang, ramp], "as long as a hang");
        assert_eq!(play(None, 499), [hang], "no contradiction");
        let failed = (
            2_000,
            BreakerTransition::Trip(TripReason::ConsecutiveFailures),
        );
        assert_eq!(play(Some(2_000), 7_000), [failed], "sent before the outage");
    }

    #[test]
    fn the_ramp_doubles_with_every_round_that_saw_a_success() {
        let mut judge = half_open();
        round(&mut judge, &[Count::ProbeSuccesses], 1, at(1_100));
        assert_eq!(judge.state(), BreakerState::Ramp { limit: 5 });
        round(&mut judge, &[], 1, at(1_200));
        assert_eq!(judge.state(), BreakerState::Ramp { limit: 5 });
        round(&mut judge, &[Count::Successes], 1, at(1_300));
        assert_eq!(judge.state(), BreakerState::Ramp { limit: 10 });
        let done = round(&mut judge, &[Count::Successes], 1, at(1_400));
        assert_eq!(done, Some(BreakerTransition::Reset));
    }

    #[test]
    fn no_wait_is_longer_than_the_policy_allows_now() {
        let state = BreakerState::Open {
            until: at(3_600_000),
            probes: 1,
        };
        let mut judge = Judge::resume(state, 1, &BreakerCheckpoint::default());
        assert_eq!(round(&mut judge, &[], 0, at(1_000)), None);
        let BreakerState::Open { until, .. } = judge.state() else {
            panic!("still open");
        };
        assert_eq!(until, at(61_000), "maxOpen is 60 s");
    }
}
