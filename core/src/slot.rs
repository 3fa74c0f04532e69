//! What one worker keeps for one upstream.

use core::time::Duration;

use crate::ages::Ages;
use crate::breaker::{BreakerState, Gate, Thresholds, TripReason, ramp_start};
use crate::config::{Policy, RuleIndex};
use crate::exchange::{Directive, Introduction, Report};
use crate::ladder::{Ladder, Margin};
use crate::limit::Learned;
use crate::outcome::{Failure, Outcome};
use crate::permit::{Permit, Phase, Purpose};
use crate::tally::{Count, Counted};
use crate::time::Instant;
use crate::upstream::{UpstreamId, UpstreamKey};

/// After this long without an end, a request whose headers came is a stream: a websocket, server-sent events, a
/// gRPC stream, a large download. It no longer counts as in flight, because it says nothing about load.
pub const STREAM_AFTER: Duration = Duration::from_secs(5);
/// An upstream that was used this recently is reported to the leader.
const REPORTED_FOR: Duration = Duration::from_secs(5);
/// A leader that has not answered for an upstream in so many ticks is told its name again.
const INTRODUCED_FOR: u8 = 10;
/// Ages are told apart up to this many times the time after which a request hangs.
const AGE_HORIZON: u32 = 2;
/// A hang is seen a fifteenth of its time too late at most.
const WAITING_BUCKETS: usize = 32;
/// Whether an answer has become a stream is known to a sixth of [`STREAM_AFTER`]: nothing is in a hurry there.
const ANSWERING_BUCKETS: usize = 8;

/// Worker-side state of one upstream.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) key: UpstreamKey,
    pub(crate) hash: u64,
    /// The configuration's rule that applies.
    pub(crate) rule: RuleIndex,
    pub(crate) gate: Gate,
    pub(crate) ladder: Ladder,
    pub(crate) learned: Learned,
    pub(crate) thresholds: Thresholds,
    pub(crate) workers: u16,
    /// When the tally began.
    began: Instant,
    pub(crate) tally: Counted,
    pub(crate) in_flight: u32,
    pub(crate) waiting: Ages<WAITING_BUCKETS>,
    pub(crate) answering: Ages<ANSWERING_BUCKETS>,
    /// Requests that became streams, that hang since before the breaker opened, or that later ones overtook: held, but
    /// no load.
    pub(crate) streams: u32,
    /// The breaker let go, and what hangs since before is to be written off.
    write_off: bool,
    /// Whether the proxy-wide count of requests in flight includes this worker's.
    pub(crate) shared: bool,
    /// The last request was shed for want of room.
    pub(crate) full: bool,
    pub(crate) hang_after: Duration,
    pub(crate) last_response: Instant,
    /// When the latest of the requests that were answered had been let in.
    answered_up_to: Option<Instant>,
    pub(crate) last_used: Instant,
    /// When this worker, as leader, last decided about it for the others.
    pub(crate) last_led: Instant,
    pub(crate) endpoints: u32,
    peak: Recent,
    others: Fewest,
    retry_after_ms: Recent,
    /// Refusals and arrivals since the tick, for the cap on the share shed.
    pub(crate) refused_share: Share,
    integrated_at: Instant,
    /// Probes beyond this ceiling were refused: no need to ask the shared count again.
    pub(crate) exhausted: Option<u64>,
    /// For so many ticks more the leader is taken to know its name.
    introduced: u8,
}

/// The greatest of this tick and the one before, so that a report that is overwritten loses nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    this: u32,
    before: u32,
}

/// The fewest of this tick and the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Fewest {
    this: Option<i32>,
    before: Option<i32>,
}

/// How many of how many.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    pub(crate) part: u32,
    pub(crate) whole: u32,
}

impl Slot {
    pub(crate) fn new(
        key: UpstreamKey,
        hash: u64,
        rule: RuleIndex,
        policy: &Policy,
        now: Instant,
    ) -> Self {
        let bounds = policy.limit();
        let initial = bounds.initial().saturating_mul(2).min(bounds.max());
        let hang_after = policy.slo().latency_target();
        Self {
            key,
            hash,
            rule,
            gate: Gate::default(),
            ladder: Ladder::new(Margin::NONE, initial, initial),
            learned: Learned::default(),
            thresholds: Thresholds::new(0.0, 0.0, policy.breaker().trip_ratio().as_f64()),
            workers: 1,
            began: now,
            tally: Counted::default(),
            in_flight: 0,
            waiting: Ages::new(hang_after * AGE_HORIZON),
            answering: Ages::new(STREAM_AFTER),
            streams: 0,
            write_off: false,
            shared: false,
            full: false,
            hang_after,
            last_response: now,
            answered_up_to: None,
            last_used: now,
            last_led: now,
            endpoints: 0,
            peak: Recent::default(),
            others: Fewest::default(),
            retry_after_ms: Recent::default(),
            refused_share: Share::default(),
            integrated_at: now,
            exhausted: None,
            introduced: 0,
        }
    }

    /// Follows what the leader decided.
    pub(crate) fn adopt(&mut self, directive: &Directive, policy: &Policy, now: Instant) {
        let was_open = matches!(self.gate.state(), BreakerState::Open { .. });
        self.gate.adopt(directive.breaker, directive.epoch, now);
        self.write_off |= was_open && !matches!(self.gate.state(), BreakerState::Open { .. });
        self.ladder = Ladder::new(directive.margin, directive.limit, directive.reserve);
        self.learned = directive.learned;
        self.workers = directive.workers.max(1);
        self.follow_policy(policy, now);
    }

    /// What is in force.
    pub(crate) fn directive(&self) -> Directive {
        let (breaker, epoch) = self.gate.decided();
        Directive {
            upstream: self.hash,
            epoch,
            breaker,
            limit: self.ladder.limit(),
            reserve: self.ladder.reserve(),
            margin: self.ladder.margin(),
            workers: self.workers,
            learned: self.learned,
        }
    }

    /// A request asks for admission.
    pub(crate) fn arrive(&mut self, now: Instant) {
        self.last_used = now;
        self.tally.add(Count::Arrivals, 1);
        self.refused_share.whole = self.refused_share.whole.saturating_add(1);
    }

    /// A request is let in.
    pub(crate) fn enter(
        &mut self,
        upstream: UpstreamId,
        load: u32,
        purpose: Purpose,
        now: Instant,
    ) -> Permit {
        self.tally.add(Count::Admitted, 1);
        self.count_in_flight(1, now);
        Permit {
            upstream,
            admitted_at: now,
            phase: Phase::Waiting,
            place: self.waiting.enter(now),
            load,
            epoch: self.gate.epoch(),
            purpose,
            shared: self.shared,
            written_off: false,
        }
    }

    /// A request ended. Says whether it still counted as in flight; a stream does not.
    pub(crate) fn leave(&mut self, permit: &Permit, now: Instant) -> bool {
        let counted = match permit.phase {
            _ if permit.written_off => false,
            Phase::Waiting => self.waiting.leave(permit.place),
            Phase::Answered { .. } => self.answering.leave(permit.place),
        };
        if counted {
            self.count_in_flight(-1, now);
        } else {
            self.streams = self.streams.saturating_sub(1);
        }
        counted
    }

    /// Learns how a request ended. Answers with a reason when that is enough to trip.
    pub(crate) fn learn(
        &mut self,
        permit: &Permit,
        outcome: Outcome,
        policy: &Policy,
        now: Instant,
    ) -> Option<TripReason> {
        if permit.purpose == Purpose::Exempt {
            return None;
        }
        let answered = permit.is_answered();
        let target = policy.slo().latency_target();
        let age = now.saturating_since(permit.admitted_at);
        if !matches!(
            outcome,
            Outcome::Cancelled | Outcome::Failure(Failure::Timeout)
        ) {
            self.last_response = self.last_response.max(now);
        }
        if permit.epoch != self.gate.epoch() {
            self.tally.add(Count::Stale, 1);
            return None;
        }
        match outcome {
            Outcome::Success => {
                let latency = permit.latency().unwrap_or(age);
                self.tally.add(Count::Successes, 1);
                self.tally
                    .add_load(Count::SuccessLoad, Count::SuccessLoadSquares, permit.load);
                if !permit.written_off {
                    // What stands in no queue says nothing about one.
                    self.tally.add_latency(latency);
                }
                self.tally.add(Count::Slow, u64::from(latency > target));
            }
            Outcome::Failure(_) => {
                self.tally.add(Count::Failures, 1);
                self.tally
                    .add_load(Count::FailureLoad, Count::FailureLoadSquares, permit.load);
            }
            Outcome::Overload { retry_after } => {
                self.tally.add(Count::Overloads, 1);
                self.tally
                    .add_load(Count::FailureLoad, Count::FailureLoadSquares, permit.load);
                self.see_retry_after(retry_after.unwrap_or_default());
            }
            Outcome::Ignored => self.tally.add(Count::Ignored, 1),
            Outcome::Cancelled => {
                self.tally.add(Count::Cancelled, 1);
                // The caller lost patience: the answer would have been slow, however slow.
                self.tally
                    .add(Count::Slow, u64::from(!answered && age > target));
            }
        }
        if permit.purpose == Purpose::Probe {
            match outcome {
                Outcome::Success => self.tally.add(Count::ProbeSuccesses, 1),
                // A client error is an answer all the same: whoever can refuse is alive.
                Outcome::Ignored if answered => self.tally.add(Count::ProbeSuccesses, 1),
                Outcome::Failure(_) | Outcome::Overload { .. } => {
                    self.tally.add(Count::ProbeFailures, 1)
                }
                Outcome::Cancelled if age > target => self.tally.add(Count::ProbeFailures, 1),
                Outcome::Ignored | Outcome::Cancelled => {}
            }
        }
        if permit.purpose == Purpose::Probe
            && outcome == Outcome::Success
            && matches!(self.gate.state(), BreakerState::Open { .. })
        {
            // The leader hears of it a tick or two later, and will say the same.
            self.write_off = true;
            self.gate
                .ramp_locally(ramp_start(self.ladder.limit(), &self.learned), now);
            return None;
        }
        self.gate
            .hear(outcome, permit.purpose, permit.load, &self.thresholds)
    }

    /// What follows from the policy and from what was learned.
    pub(crate) fn follow_policy(&mut self, policy: &Policy, now: Instant) {
        let learned = &self.learned;
        self.thresholds = Thresholds::new(
            f64::from(learned.failure_rate),
            f64::from(learned.rate),
            policy.breaker().trip_ratio().as_f64(),
        );
        // Another policy's bounds hold at once, also where nobody asks the leader.
        let endpoints = learned.endpoints.max(1);
        self.ladder = self.ladder.within(
            policy.limit().min(),
            policy.limit().max().saturating_mul(endpoints),
        );
        self.hang_after = learned.hang_after(policy.slo());
        self.waiting
            .set_horizon(self.hang_after.saturating_mul(AGE_HORIZON), now);
    }

    /// The response headers of a request came.
    pub(crate) fn answer(&mut self, permit: &mut Permit, now: Instant) {
        self.last_response = now;
        self.answered_up_to = self.answered_up_to.max(Some(permit.admitted_at));
        if permit.phase == Phase::Waiting {
            if self.waiting.leave(permit.place) {
                permit.place = self.answering.enter(now);
            } else {
                permit.written_off = true;
            }
            permit.phase = Phase::Answered { at: now };
        }
    }

    /// Takes those out of the count in flight that are no load any more, and says how many: streams, what hangs since
    /// before the breaker opened, and what later ones overtook. An upstream that is back does not know of those that
    /// hang; their callers wait for timeouts, and until then they would take the places of requests that it could serve.
    pub(crate) fn take_unloading(&mut self, now: Instant) -> u32 {
        let lost = if core::mem::take(&mut self.write_off) {
            Some(self.hang_after)
        } else {
            self.overtaken(now)
        };
        let mut taken = self.answering.take_beyond(now);
        if let Some(age) = lost {
            taken = taken.saturating_add(self.waiting.take_at_least(age, now));
        }
        if taken > 0 {
            self.streams = self.streams.saturating_add(taken);
            self.count_in_flight(-i32::try_from(taken).unwrap_or(i32::MAX), now);
        }
        taken
    }

    /// The age from which waiting requests stand in no queue: they wait far beyond the target, and later ones have been
    /// answered. To refuse others for their sake would help neither.
    fn overtaken(&self, now: Instant) -> Option<Duration> {
        // A clock that jumped back knows of nobody who was let in later.
        let answered = self.answered_up_to.filter(|at| *at <= now)?;
        let age = now.saturating_since(answered).max(self.hang_after);
        // The ledger does not tell those apart that are older than its horizon.
        (age <= self.waiting.horizon()).then_some(age)
    }

    /// One more in flight, or one less.
    pub(crate) fn count_in_flight(&mut self, change: i32, now: Instant) {
        self.integrate(now);
        self.in_flight = self.in_flight.saturating_add_signed(change);
    }

    /// A request asked for admission when it would make so many in flight in the whole proxy.
    pub(crate) fn see_load(&mut self, load: u32) {
        self.peak.see(load);
        let met = i64::from(load) - 1 - i64::from(self.in_flight);
        self.others.see(i32::try_from(met).unwrap_or(i32::MAX));
    }

    pub(crate) fn see_retry_after(&mut self, wait: Duration) {
        self.retry_after_ms
            .see(u32::try_from(wait.as_millis()).unwrap_or(u32::MAX));
    }

    fn integrate(&mut self, now: Instant) {
        let span = now.saturating_since(self.integrated_at);
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.tally.add(
            Count::InFlightMicros,
            micros.saturating_mul(u64::from(self.in_flight)),
        );
        self.integrated_at = self.integrated_at.max(now);
    }

    /// The leader that is followed has answered for it.
    pub(crate) const fn is_introduced(&mut self) {
        self.introduced = INTRODUCED_FOR;
    }

    /// Another leader may not know it.
    pub(crate) const fn is_stranger(&mut self) {
        self.introduced = 0;
    }

    /// What the leader needs to be told besides the report.
    pub(crate) fn introduction(&self) -> Option<Introduction<'_>> {
        let tripped = self.gate.trip().is_some();
        (self.introduced == 0 || tripped).then(|| Introduction {
            cluster: &self.key.cluster,
            route: self.key.route.as_deref(),
            tripped,
        })
    }

    /// The end of a tick.
    pub(crate) fn roll(&mut self) {
        self.introduced = self.introduced.saturating_sub(1);
        self.peak.roll();
        self.others.roll();
        self.retry_after_ms.roll();
        self.refused_share = Share::default();
    }

    /// What the leader needs to know. `packed` is room for the counts.
    pub(crate) fn report<'a>(&mut self, packed: &'a mut Vec<u8>, now: Instant) -> Report<'a> {
        self.integrate(now);
        let overdue = self.waiting.at_least(self.hang_after, now);
        let report = Report {
            upstream: self.hash,
            began: self.began,
            in_flight: self.in_flight,
            streams: self.streams,
            overdue,
            peak: self.peak.value(),
            others: self.others.value(),
            last_response: self.last_response,
            endpoints: self.endpoints,
            retry_after_ms: self.retry_after_ms.value(),
            trip: self.gate.trip(),
            counts: &[],
        };
        report.with_counts(&self.tally, packed)
    }

    /// Whether the leader should hear of it.
    pub(crate) fn is_reported(&self, now: Instant) -> bool {
        !self.is_idle()
            || now.saturating_since(self.last_used) < REPORTED_FOR
            || self.gate.state() != BreakerState::Closed
    }

    /// When a request, of this worker or of one that it leads, last asked for it.
    pub(crate) fn last_wanted(&self) -> Instant {
        self.last_used.max(self.last_led)
    }

    /// Whether nothing would be lost if it were forgotten.
    pub(crate) const fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.streams == 0
    }
}

impl Fewest {
    fn see(&mut self, value: i32) {
        self.this = Some(self.this.map_or(value, |fewest| fewest.min(value)));
    }

    const fn roll(&mut self) {
        self.before = self.this.take();
    }

    fn value(self) -> Option<i32> {
        [self.this, self.before].into_iter().flatten().min()
    }
}

impl Recent {
    fn see(&mut self, value: u32) {
        self.this = self.this.max(value);
    }

    const fn roll(&mut self) {
        self.before = self.this;
        self.this = 0;
    }

    fn value(self) -> u32 {
        self.this.max(self.before)
    }
}
