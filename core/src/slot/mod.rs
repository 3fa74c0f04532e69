//! One worker's state of one upstream: gate and limits by the leader's decision, requests [in flight](in_flight), their
//! [outcomes](outcome), and the [report](report) to the leader.

mod given_up;
pub(crate) mod in_flight;
mod outcome;
mod rationing;
mod report;
mod shed_budget;
#[cfg(test)]
mod testing;

use core::time::Duration;
use std::sync::Arc;

use crate::ages::Ages;
use crate::breaker::{BreakerState, FIRST_FAILURE_RATE, Gate, Thresholds};
use crate::config::Policy;
use crate::exchange::Directive;
use crate::ladder::{Ladder, Margin};
use crate::learned::Learned;
use crate::resting_ages::RestingAges;
use crate::tally::{Count, Counted};
use crate::time::{Instant, Nanos};
use crate::upstream::UpstreamKey;
use given_up::GivenUp;
use rationing::Rationing;
use report::{Fewest, Recent};

/// If the objective measures a later moment than the headers, a body that continues for this long after them is a stream or a
/// large download: it no longer counts as in flight. The time is longer if the objective leaves a request more time.
pub const ANSWERING_FOR: Duration = Duration::from_secs(5);
/// Ages are told apart up to this many times the time after which a request hangs.
const AGE_HORIZON: u32 = 2;
/// With this many buckets, a hang is noticed late by a fifteenth of its time at most.
const WAITING_BUCKETS: usize = 32;
/// With this many, a stalled upload or a stream is noticed late by a sixth of its time at most, which is soon enough.
const COARSE_BUCKETS: usize = 8;

/// Worker-side state of one upstream.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) key: Arc<UpstreamKey>,
    pub(crate) hash: u64,
    pub(crate) gate: Gate,
    pub(crate) ladder: Ladder,
    /// Under a limit below one: requests are admitted until the count of grants reaches this.
    pub(crate) grants: Option<u64>,
    pub(crate) learned: Learned,
    pub(crate) thresholds: Thresholds,
    pub(crate) workers: u16,
    /// When the tally began.
    began: Instant,
    pub(crate) tally: Counted,
    pub(crate) in_flight: u32,
    pub(crate) waiting: RestingAges<WAITING_BUCKETS>,
    /// Most requests have no body and are measured to their headers: they need neither ledger.
    answering: Option<Box<Ages<COARSE_BUCKETS>>>,
    uploads: Option<Box<Ages<COARSE_BUCKETS>>>,
    /// Uploads under way that may soon be in flight.
    pub(crate) uploading: u32,
    /// Requests that have not ended and do not count as load: their latency is measured, or they were taken out of the count.
    pub(crate) open: u32,
    /// Of these, requests of health checkers that passed a refusal.
    pub(crate) exempt: u32,
    /// Most requests per endpoint that have not ended.
    max_open: Option<u32>,
    /// Requests of the proxy's other workers that have not ended, by the leader's last directive.
    unended_elsewhere: u32,
    /// What this worker last reported of that.
    unended_reported: u32,
    /// Whether requests that hang since before the breaker opened must be written off, because it let go.
    write_off: bool,
    /// Whether the proxy-wide count of requests in flight includes this worker's.
    pub(crate) shared: bool,
    rationing: Option<Box<Rationing>>,
    /// Whether an answer has upgraded its connection: later requests are asked whether they want that.
    pub(crate) sees_upgrades: bool,
    /// Whether the last request was shed because of load.
    pub(crate) full: bool,
    /// A request that waits for longer hangs; if later requests are answered meanwhile, it is overtaken.
    hang_after: Nanos,
    /// An upload that takes longer may never end, and does not count as load until it does.
    upload_horizon: Nanos,
    pub(crate) last_response: Instant,
    /// The latest admission among the requests that this worker, or by the last directive any, saw answered; zero before the first.
    answered_up_to: Instant,
    given_up: GivenUp,
    pub(crate) last_used: Instant,
    /// When this worker, as leader, last decided about it for the others.
    pub(crate) last_led: Instant,
    pub(crate) endpoints: u32,
    peak: Recent,
    others: Fewest,
    retry_after_ms: Recent,
    integrated_at: Instant,
    /// For this many more ticks the leader is assumed to know the upstream's name.
    introduced: u8,
}

impl Slot {
    pub(crate) fn new(key: Arc<UpstreamKey>, hash: u64, policy: &Policy, now: Instant) -> Self {
        let bounds = policy.limit();
        let initial = bounds.initial().saturating_mul(2).min(bounds.max());
        let learned = Learned::default();
        let hang_after = learned.hang_after(policy.slo());
        Self {
            key,
            hash,
            gate: Gate::default(),
            ladder: Ladder::new(Margin::NONE, initial, initial),
            grants: None,
            learned,
            thresholds: Thresholds::new(
                FIRST_FAILURE_RATE,
                0.0,
                policy.breaker().trip_ratio().as_f64(),
            ),
            workers: 1,
            began: now,
            tally: Counted::default(),
            in_flight: 0,
            waiting: RestingAges::new(hang_after * AGE_HORIZON),
            answering: None,
            uploads: None,
            uploading: 0,
            open: 0,
            exempt: 0,
            max_open: bounds.max_open(),
            unended_elsewhere: 0,
            unended_reported: 0,
            write_off: false,
            shared: false,
            rationing: None,
            sees_upgrades: false,
            full: false,
            hang_after: hang_after.into(),
            upload_horizon: policy.slo().latency_target().into(),
            last_response: now,
            answered_up_to: Instant::ZERO,
            given_up: GivenUp::default(),
            last_used: now,
            last_led: now,
            endpoints: 0,
            peak: Recent::default(),
            others: Fewest::default(),
            retry_after_ms: Recent::default(),
            integrated_at: now,
            introduced: 0,
        }
    }

    /// Follows the leader's directive.
    pub(crate) fn adopt(&mut self, directive: &Directive, policy: &Policy, now: Instant) {
        let was_open = matches!(self.gate.state(), BreakerState::Open { .. });
        self.gate.adopt(directive.breaker, directive.epoch, now);
        if was_open && !matches!(self.gate.state(), BreakerState::Open { .. }) {
            self.write_off = true;
            self.given_up = GivenUp::default();
        }
        self.ladder = directive.ladder();
        self.grants = directive.grants;
        let before = self.learned.breaker.rates.usual_failures();
        self.learned = directive.learned;
        self.workers = directive.workers.max(1);
        self.unended_elsewhere = directive.unended.saturating_sub(self.unended_reported);
        // Written before the clock jumped back, it would be later than any request.
        if directive.answered_up_to <= now {
            self.answered_up_to = self.answered_up_to.max(directive.answered_up_to);
        }
        let rates = &self.learned.breaker.rates;
        if rates.usual_failures() == before {
            // In most rounds of most upstreams nothing fails.
            self.thresholds.follow_rate(rates.outcomes.get());
        } else {
            self.thresholds = self.thresholds_by(policy);
        }
        self.follow_learned(policy, now);
    }

    /// The directive in force.
    pub(crate) fn directive(&self) -> Directive {
        let (breaker, epoch) = self.gate.decided();
        Directive {
            upstream: self.hash,
            epoch,
            breaker,
            limit: self.ladder.limit(),
            reserve: self.ladder.reserve(),
            grants: self.grants,
            margin: self.ladder.margin(),
            workers: self.workers,
            unended: self.unended_elsewhere.saturating_add(self.unended_reported),
            answered_up_to: self.answered_up_to,
            learned: self.learned,
        }
    }

    /// A request asks for admission.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant) {
        self.last_used = now;
        self.tally.add(Count::Arrivals, 1);
    }

    /// Sets what follows from a new policy and from learned state.
    pub(crate) fn follow_policy(&mut self, policy: &Policy, now: Instant) {
        self.thresholds = self.thresholds_by(policy);
        self.follow_learned(policy, now);
    }

    fn thresholds_by(&self, policy: &Policy) -> Thresholds {
        let rates = &self.learned.breaker.rates;
        Thresholds::new(
            rates.usual_failures().unwrap_or(FIRST_FAILURE_RATE),
            rates.outcomes.get(),
            policy.breaker().trip_ratio().as_f64(),
        )
    }

    /// Sets what else follows from policy and learned state.
    fn follow_learned(&mut self, policy: &Policy, now: Instant) {
        // The bounds of a new policy hold at once, without a decision of the leader.
        self.ladder = within(self.ladder, policy, &self.learned);
        self.max_open = policy.limit().max_open();
        let hang_after = self.learned.hang_after(policy.slo());
        self.hang_after = hang_after.into();
        self.waiting
            .set_horizon(hang_after.saturating_mul(AGE_HORIZON), now);
        let target = policy.slo().latency_target();
        self.upload_horizon = target.into();
        if let Some(uploads) = &mut self.uploads {
            uploads.set_horizon(target, now);
        }
        let horizon = self.answering_horizon();
        if let Some(answering) = &mut self.answering {
            answering.set_horizon(horizon, now);
        }
    }

    /// How long a body may continue before it is a stream.
    fn answering_horizon(&self) -> Duration {
        ANSWERING_FOR.max(self.hang_after.get())
    }

    /// Whether the proxy has as many requests that have not ended as the policy allows.
    #[inline]
    pub(crate) fn is_full_of_open(&self) -> bool {
        self.max_open.is_some_and(|per_endpoint| {
            let endpoints = self.endpoints.max(self.learned.limit.endpoints).max(1);
            let most = per_endpoint.saturating_mul(endpoints);
            self.unended_elsewhere.saturating_add(self.unended()) >= most
        })
    }

    /// When a request of this worker, or of a worker that it leads, last asked for the upstream.
    pub(crate) fn last_wanted(&self) -> Instant {
        self.last_used.max(self.last_led)
    }

    /// Whether nothing would be lost if it were forgotten.
    pub(crate) const fn is_idle(&self) -> bool {
        self.unended() == 0
    }
}

/// A ladder within the bounds of a policy.
pub(crate) fn within(ladder: Ladder, policy: &Policy, learned: &Learned) -> Ladder {
    let endpoints = learned.limit.endpoints.max(1);
    let max = policy.limit().max().saturating_mul(endpoints);
    ladder.within(policy.limit().min(), max)
}
