//! The control laws for one upstream, which decide from the merged reports of its workers.

mod merge;
mod pacer;

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::breaker::{BreakerState, BreakerTransition, Findings, Judge, TripReason};
use crate::config::{Policy, Slo};
use crate::exchange::Directive;
use crate::ladder::{LevelDemand, Margin};
use crate::learned::Learned;
use crate::limit::{LimitReason, Limiter, OutageSign, Terms};
use crate::time::Instant;

pub(super) use merge::LastSaid;
pub(crate) use merge::MergedReports;
pub use merge::RequestsUnderWay;
use merge::WorkerRecord;
use pacer::Pacer;

/// The laws for one upstream.
#[derive(Debug)]
pub(super) struct Controller {
    pub(super) limiter: Limiter,
    judge: Judge,
    demand: LevelDemand,
    /// The last report of each worker.
    pub(super) seen: Vec<WorkerRecord>,
    /// When any worker last had a request.
    pub(super) active_at: Instant,
    /// The requests under way in the last round that had a report.
    pub(super) under_way: RequestsUnderWay,
    pub(super) directive: Directive,
    /// Grants requests one by one while the limit is below one.
    pacer: Option<Box<Pacer>>,
    /// The reason for the limit; `None` before the first round of a new leader, which is not a change of the reason.
    limit_reason: Option<LimitReason>,
}

/// The inputs of one round besides the reports.
pub(crate) struct RoundInputs<'a> {
    pub(crate) policy: &'a Policy,
    /// Requests ever granted one by one.
    pub(crate) granted: u64,
    /// A random number in 0..1.
    pub(crate) uniform: f64,
    /// Added to `now`, this gives a clock that is the same for all proxies.
    pub(crate) ahead: Duration,
}

/// The events of one round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundChanges {
    /// A transition of the breaker.
    pub(crate) transition: Option<BreakerTransition>,
    /// The new reason for the limit, if it changed.
    pub(crate) limit_reason: Option<LimitReason>,
}

impl Controller {
    pub(super) fn new(hash: u64, known: Option<Directive>, now: Instant) -> Self {
        let directive = known.unwrap_or_else(|| Directive::unknown(hash));
        Self {
            limiter: Limiter::resume(&directive.learned.limit),
            judge: Judge::resume(
                directive.breaker,
                directive.epoch,
                &directive.learned.breaker,
            ),
            demand: LevelDemand::default(),
            seen: Vec::new(),
            active_at: now,
            under_way: RequestsUnderWay::default(),
            directive,
            pacer: None,
            limit_reason: None,
        }
    }

    pub(super) fn decide(
        &mut self,
        round: &MergedReports,
        around: &RoundInputs<'_>,
        now: Instant,
    ) -> RoundChanges {
        let (sample, policy) = (&round.sample, around.policy);
        if round.is_active() {
            self.active_at = now;
        }
        let terms = Terms {
            slo: policy.slo(),
            limit: policy.limit(),
            stance: policy.stance(),
            ahead: around.ahead,
        };
        if matches!(
            self.judge.state(),
            BreakerState::Closed | BreakerState::Ramp { .. }
        ) {
            self.limiter.update(sample, terms, now);
        }
        self.demand.update(sample);
        let (limit, reserve) = self.limiter.limits(terms);
        let known = self.limiter.checkpoint();
        let findings = Findings {
            sample,
            trips: &round.trips,
            known: &known,
            target: policy.slo().latency_target(),
            hang_after: known.floor.hang_after(policy.slo()),
            limit,
            probes: around.granted,
            uniform: around.uniform,
            now,
        };
        let was_closed = self.judge.state() == BreakerState::Closed;
        let transition = self.judge.update(&findings, policy.breaker());
        if was_closed && let Some(BreakerTransition::Trip(reason)) = transition {
            let sign = match reason {
                TripReason::Hang => OutageSign::Hang,
                TripReason::ConsecutiveFailures
                | TripReason::LowSuccessRate
                | TripReason::ProbeFailed => OutageSign::Failures,
            };
            self.limiter.restart_conservatively(terms, sign);
        }
        let pressed = self.limiter.is_congested() || sample.tally.refused_for_load() > 0;
        let capacity = if pressed {
            self.limiter.capacity()
        } else {
            0.0
        };
        let margin = self.demand.margin(capacity);
        // If all requests can be served, no reserve is needed.
        let reserve = if margin == Margin::NONE || is_off(Mechanism::Reserve) {
            limit
        } else {
            reserve
        };
        self.directive = Directive {
            upstream: self.directive.upstream,
            epoch: self.judge.epoch(),
            breaker: self.judge.state(),
            limit,
            reserve,
            grants: self.grants(policy.slo(), sample.span, around.granted),
            margin,
            workers: sample.workers.max(1),
            unended: round.under_way.unended(),
            answered_up_to: self.answered_up_to(round, now),
            learned: Learned {
                limit: known,
                breaker: self.judge.checkpoint(),
            },
        };
        let reason = self.limiter.reason();
        let before = self.limit_reason.replace(reason).unwrap_or(reason);
        RoundChanges {
            transition,
            limit_reason: (reason != before).then_some(reason),
        }
    }

    /// The latest admission among the requests that any worker saw answered. After the clock jumped back, none is known.
    fn answered_up_to(&self, round: &MergedReports, now: Instant) -> Instant {
        let known = [self.directive.answered_up_to, round.answered_up_to];
        let past = known.into_iter().filter(|at| *at <= now);
        past.max().unwrap_or(Instant::ZERO)
    }

    /// The ceiling on the count of grants, of which `used` are claimed; `None`: the limit is at least one.
    fn grants(&mut self, slo: &Slo, span: Duration, used: u64) -> Option<u64> {
        let Some(rate) = self.limiter.pace(slo) else {
            self.pacer = None;
            return None;
        };
        let pacer = self.pacer.get_or_insert_with(|| Box::new(Pacer::new(used)));
        Some(pacer.ceiling(rate, span, used))
    }
}

#[cfg(test)]
mod tests;
