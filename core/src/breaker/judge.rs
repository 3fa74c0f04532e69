//! The leader's side of the breaker: one state for the whole proxy.

use core::time::Duration;

use super::evidence::{Evidence, Finding, Loads, Thresholds, is_caused_by_load};
use super::interval::{Bounds, History, learn_recovery, open_interval};
use super::window::{Outcomes, Window};
use super::{BreakerState, TripReason};
use crate::config::BreakerConfig;
use crate::exchange::LocalTrip;
use crate::exchange::plausible::{PER_SECOND, SECONDS, SHARE};
use crate::limit::Learned;
use crate::sample::Sample;
use crate::shed::ShedReason;
use crate::tally::{Count, Tally};
use crate::time::Instant;

/// A success rate of fewer outcomes means nothing (Hystrix: 20 requests; Linkerd: 5 of one endpoint).
const MIN_REQUESTS: u64 = 20;
/// The last two buckets must agree with the window, so that an outage that is over does not trip.
const FRESH_BUCKETS: usize = 2;
/// One request that hangs may be a slow query; this many, and no answer to anyone, is a hang.
const MIN_OVERDUE: u32 = 5;
/// Slow calls trip only when the limit has been at its floor for so long.
const SLOW_PATIENCE: Duration = Duration::from_secs(3);
/// The share of answers beyond the target that makes an upstream useless.
const SLOW_SHARE: f64 = 0.9;
/// Outcomes in which the learned failure rate moves halfway and a bit.
const RATE_MEMORY: f64 = 200.0;
/// Time constant of the learned outcome rate, seconds; shorter at first, so that the beginning is no rate of zero.
const RATE_SECONDS: f64 = 10.0;
/// What a failure rate was this long ago is free of the outage that begins now.
const SETTLED_AFTER: Duration = Duration::from_secs(2);
/// A trip this soon after a reset continues the outage before it.
const RELAPSE: Duration = Duration::from_secs(10);
/// Where the knee is not known the ramp starts with this part of the limit; it doubles at every tick: three steps to go.
const FIRST_RAMP_STEP: u32 = 4;
/// A success rate too low must stay so for this long: failures that load causes stop when the limit has followed.
const LOW_PATIENCE: Duration = Duration::from_secs(1);

/// What the judge is told about one interval.
pub(crate) struct Findings<'a> {
    pub(crate) sample: &'a Sample,
    /// Trips that workers reported and that were not heard before.
    pub(crate) trips: &'a [LocalTrip],
    /// What the limiter has learned.
    pub(crate) learned: &'a Learned,
    /// The objective's latency target.
    pub(crate) target: Duration,
    /// Waiting longer than this for response headers is a hang.
    pub(crate) hang_after: Duration,
    /// The concurrency limit that would hold with a closed breaker, and its floor.
    pub(crate) limit: u32,
    pub(crate) min_limit: u32,
    /// Probes ever sent.
    pub(crate) probes: u64,
    /// In 0..1.
    pub(crate) dice: f64,
    pub(crate) now: Instant,
}

/// One step along the diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transition {
    Trip(TripReason),
    Ramp,
    Reset,
}

/// The breaker of one upstream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judge {
    state: BreakerState,
    epoch: u32,
    evidence: Evidence,
    window: Window,
    failure_rate: f64,
    /// The failure rate of a while ago, and the candidate that takes its place.
    settled_rate: f64,
    settling_rate: f64,
    settled_at: Instant,
    rate: f64,
    /// Seconds that `rate` stands on, at most [`RATE_SECONDS`].
    rate_span: f64,
    outage_since: Option<Instant>,
    reset_at: Option<Instant>,
    usual_recovery: f64,
    slow_since: Option<Instant>,
    low_since: Option<Instant>,
    /// A probe is under way since.
    probing_since: Option<Instant>,
    /// When the last probe beside it was granted.
    granted_at: Option<Instant>,
    interval: Duration,
}

impl Judge {
    /// Goes on where another leader stopped.
    pub(crate) fn resume(state: BreakerState, epoch: u32, learned: &Learned) -> Self {
        let open = !matches!(state, BreakerState::Closed);
        Self {
            state,
            epoch,
            failure_rate: f64::from(learned.failure_rate),
            settled_rate: f64::from(learned.failure_rate),
            settling_rate: f64::from(learned.failure_rate),
            rate: f64::from(learned.rate),
            rate_span: if learned.rate > 0.0 {
                RATE_SECONDS
            } else {
                0.0
            },
            usual_recovery: f64::from(learned.recovery),
            outage_since: open.then_some(learned.outage_since),
            interval: Duration::from_millis(u64::from(learned.open_interval_ms)),
            ..Self::default()
        }
    }

    /// Writes down what a successor needs.
    pub(crate) fn teach(&self, learned: &mut Learned) {
        learned.failure_rate = SHARE.hold(self.failure_rate);
        learned.rate = PER_SECOND.hold(self.rate);
        learned.recovery = SECONDS.hold(self.usual_recovery);
        learned.outage_since = self.outage_since.unwrap_or_default();
        learned.open_interval_ms = u32::try_from(self.interval.as_millis()).unwrap_or(u32::MAX);
    }

    pub(crate) const fn state(&self) -> BreakerState {
        self.state
    }

    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// One round: at most one transition.
    pub(crate) fn update(
        &mut self,
        findings: &Findings<'_>,
        config: &BreakerConfig,
    ) -> Option<Transition> {
        let transition = if config.enabled() {
            self.decide(findings, config)
        } else {
            self.disarm()
        }?;
        self.enter(transition, findings, config);
        Some(transition)
    }

    fn decide(&mut self, findings: &Findings<'_>, config: &BreakerConfig) -> Option<Transition> {
        let reported = self.reported(findings.trips).map(Transition::Trip);
        match self.state {
            BreakerState::Closed => {
                self.learn_rates(findings);
                reported.or_else(|| self.judge_closed(findings, config).map(Transition::Trip))
            }
            BreakerState::Open { until, probes } if findings.now < until => {
                // The policy may have changed, and clocks jump back: no wait is longer than allowed now.
                let latest = findings.now + config.max_open().max(config.min_open());
                self.state = BreakerState::Open {
                    until: until.min(latest),
                    probes,
                };
                None
            }
            BreakerState::Open { until, probes } => {
                reported.or_else(|| self.judge_probe(findings, until, probes))
            }
            BreakerState::Ramp { limit } => reported.or_else(|| self.judge_ramp(findings, limit)),
        }
    }

    /// A trip that a worker made on evidence of this epoch, of the one before when this is young, or of the next one: of
    /// its own ramp, that the leader has not heard of.
    fn reported(&self, trips: &[LocalTrip]) -> Option<TripReason> {
        let behind_the_next =
            |trip: &LocalTrip| self.epoch.wrapping_add(1).wrapping_sub(trip.epoch);
        trips
            .iter()
            .filter(|trip| behind_the_next(trip) <= 2)
            .map(|trip| trip.reason)
            .min()
    }

    fn judge_closed(
        &mut self,
        findings: &Findings<'_>,
        config: &BreakerConfig,
    ) -> Option<TripReason> {
        let sample = findings.sample;
        let thresholds = self.thresholds(config);
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

    fn judge_probe(
        &mut self,
        findings: &Findings<'_>,
        until: Instant,
        probes: u64,
    ) -> Option<Transition> {
        let tally = &findings.sample.tally;
        if tally.get(Count::ProbeFailures) > 0 {
            return Some(Transition::Trip(TripReason::ProbeFailed));
        }
        if tally.get(Count::ProbeSuccesses) > 0 {
            return Some(Transition::Ramp);
        }
        // A probe may have been sent without a report of it: its worker is gone, or reported to another leader. Then
        // others are refused, or the ceiling is reached.
        if tally.get(Count::ProbesSent) > 0 || findings.probes >= probes || refuses_probes(tally) {
            // It went when the interval was over or later, but not before the last round.
            let earliest = findings.now - findings.sample.span;
            self.probing_since
                .get_or_insert_with(|| until.max(earliest).min(findings.now));
        }
        // After a jump backwards the wait begins anew.
        let since = self.probing_since?.min(findings.now);
        self.probing_since = Some(since);
        if findings.now.saturating_since(since) >= findings.hang_after {
            return Some(Transition::Trip(TripReason::ProbeFailed));
        }
        let granted_at = *self.granted_at.get_or_insert(since);
        let patience = findings.target.max(self.interval / 2);
        if findings.probes >= probes && findings.now.saturating_since(granted_at) >= patience {
            // The probe may hang for long yet, and the upstream be back meanwhile: it gets company.
            self.granted_at = Some(findings.now);
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
            // The probe ended without a verdict, its caller gone, and every worker has reported since: grant another.
            self.probing_since = None;
            self.state = BreakerState::Open {
                until,
                probes: probes.max(findings.probes).saturating_add(1),
            };
        }
        None
    }

    fn judge_ramp(&mut self, findings: &Findings<'_>, limit: u32) -> Option<Transition> {
        let sample = findings.sample;
        let silent = findings.now.saturating_since(sample.last_response) >= findings.hang_after;
        if silent && sample.overdue >= MIN_OVERDUE.min(limit) {
            return Some(Transition::Trip(TripReason::Hang));
        }
        // A client's error is an answer all the same: whoever can refuse is alive.
        if sample.tally.get(Count::Successes) + sample.tally.get(Count::Ignored) == 0 {
            return None;
        }
        let next = limit.saturating_mul(2);
        if next >= findings.limit {
            return Some(Transition::Reset);
        }
        self.state = BreakerState::Ramp { limit: next };
        None
    }

    fn disarm(&self) -> Option<Transition> {
        (self.state != BreakerState::Closed).then_some(Transition::Reset)
    }

    fn enter(&mut self, transition: Transition, findings: &Findings<'_>, config: &BreakerConfig) {
        let now = findings.now;
        self.epoch = self.epoch.wrapping_add(1);
        self.evidence.forget();
        self.window.clear();
        let probing_since = self.probing_since.take();
        self.granted_at = None;
        self.slow_since = None;
        self.low_since = None;
        self.state = match transition {
            Transition::Trip(_) => self.open(findings, config, probing_since),
            Transition::Ramp => BreakerState::Ramp {
                limit: ramp_start(findings.limit, findings.learned),
            },
            Transition::Reset => {
                if let Some(since) = self.outage_since {
                    self.usual_recovery =
                        learn_recovery(self.usual_recovery, now.saturating_since(since));
                }
                self.reset_at = Some(now);
                self.interval = Duration::ZERO;
                BreakerState::Closed
            }
        };
    }

    fn open(
        &mut self,
        findings: &Findings<'_>,
        config: &BreakerConfig,
        probing_since: Option<Instant>,
    ) -> BreakerState {
        let now = findings.now;
        let relapse = self
            .reset_at
            .is_some_and(|reset| now.saturating_since(reset) < RELAPSE);
        if self.state == BreakerState::Closed {
            // The outage that begins now must not teach what is usual.
            self.failure_rate = self.settled_rate;
            if !relapse {
                self.outage_since = None;
            }
        }
        let since = *self.outage_since.get_or_insert(now);
        self.interval = open_interval(
            Bounds {
                min: config.min_open(),
                max: config.max_open(),
            },
            &History {
                outage: now.saturating_since(since),
                usual_recovery: self.usual_recovery,
                usual_rate: self.rate,
                retry_after: findings.sample.retry_after,
            },
            findings.dice,
        );
        // A probe that hangs has used up part of the wait already.
        let until = (probing_since.unwrap_or(now) + self.interval).max(now);
        BreakerState::Open {
            until,
            probes: findings.probes.saturating_add(1),
        }
    }

    /// What an outcome weighs now.
    pub(crate) fn thresholds(&self, config: &BreakerConfig) -> Thresholds {
        Thresholds::new(self.failure_rate, self.rate, config.trip_ratio().as_f64())
    }

    fn learn_rates(&mut self, findings: &Findings<'_>) {
        let sample = findings.sample;
        let failures = sample.count(Count::Failures);
        let outcomes = failures + sample.count(Count::Successes);
        let span = sample.span.as_secs_f64();
        self.rate += (outcomes / span - self.rate) * span / (span + self.rate_span);
        self.rate_span = (self.rate_span + span).min(RATE_SECONDS);
        if outcomes > 0.0 {
            self.failure_rate +=
                (failures / outcomes - self.failure_rate) * outcomes / (outcomes + RATE_MEMORY);
        }
        if findings.now.saturating_since(self.settled_at) >= SETTLED_AFTER {
            self.settled_at = findings.now;
            self.settled_rate = self.settling_rate;
            self.settling_rate = self.failure_rate;
        }
    }
}

/// The first limit of the ramp: the knee, which makes no queue. Where that is not known, a part of what is.
pub(crate) fn ramp_start(limit: u32, learned: &Learned) -> u32 {
    if learned.congested {
        limit
    } else {
        (limit / FIRST_RAMP_STEP).max(1)
    }
}

/// Whether half-open refused anybody, in whatever mode.
fn refuses_probes(tally: &Tally) -> bool {
    tally.shed(ShedReason::BreakerHalfOpen) > 0
        || tally.would_shed(ShedReason::BreakerHalfOpen) > 0
        || tally.get(Count::Spared) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, MINIMAL_EXAMPLE};

    const HANG_AFTER: Duration = Duration::from_millis(500);

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn half_open() -> Judge {
        let state = BreakerState::Open {
            until: at(1_000),
            probes: 1,
        };
        Judge::resume(state, 1, &Learned::default())
    }

    /// One round that counted these, with `sent` probes in all.
    fn round(judge: &mut Judge, counts: &[Count], sent: u64, now: Instant) -> Option<Transition> {
        let mut sample = Sample::empty(Duration::from_millis(100));
        for count in counts {
            sample.tally.add(*count, 1);
        }
        let findings = Findings {
            sample: &sample,
            trips: &[],
            learned: &Learned::default(),
            target: Duration::from_millis(300),
            hang_after: HANG_AFTER,
            limit: 20,
            min_limit: 1,
            probes: sent,
            dice: 0.0,
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
        let failed = Transition::Trip(TripReason::ProbeFailed);
        assert_eq!(probe(Count::ProbeFailures), Some(failed));
        assert_eq!(probe(Count::ProbeSuccesses), Some(Transition::Ramp));
    }

    #[test]
    fn a_probe_that_nobody_reported_is_not_waited_for_without_end() {
        // Its worker crashed: the shared count says that it was sent, no report does.
        let mut judge = half_open();
        assert_eq!(round(&mut judge, &[], 1, at(1_100)), None);
        assert_eq!(round(&mut judge, &[], 1, at(1_200)), None);
        let granted = BreakerState::Open {
            until: at(1_000),
            probes: 2,
        };
        assert_eq!(judge.state(), granted);
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
        assert_eq!(done, Some(Transition::Reset));
    }

    #[test]
    fn no_wait_is_longer_than_the_policy_allows_now() {
        let state = BreakerState::Open {
            until: at(3_600_000),
            probes: 1,
        };
        let mut judge = Judge::resume(state, 1, &Learned::default());
        assert_eq!(round(&mut judge, &[], 0, at(1_000)), None);
        let BreakerState::Open { until, .. } = judge.state() else {
            panic!("still open");
        };
        assert_eq!(until, at(61_000), "maxOpen is 60 s");
    }
}
