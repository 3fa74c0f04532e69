//! A worker's side of the breaker: which requests may pass now, and the worker's own evidence.
//!
//! The leader decides for all workers, a tick or two later. A worker with enough evidence of its own does not wait: it
//! closes its own gate at once, reports the trip, and keeps the gate closed until the leader has received the report.
//! Likewise, when its own probe succeeds, it opens its gate to the first step of the ramp.

use core::time::Duration;

use super::evidence::OutageEvidence;
use super::successes::Successes;
use super::{BreakerState, LocalTrip, Thresholds, TripReason};
use crate::ablation::{Mechanism, is_off};
use crate::outcome::Outcome;
use crate::permit::{Permit, Purpose};
use crate::time::Instant;

/// How long a worker keeps its own step when the leader does not confirm it: some ticks. After that the leader's decision
/// holds, because the leader has the reports of all workers.
const HEARING: Duration = Duration::from_secs(1);

/// Whether a request may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The limit alone decides.
    Free,
    /// Within the ramp's limit.
    Ramp(u32),
    /// As a probe, if the count of grants stays within this ceiling.
    Probe(u64),
    /// Not before this much time has passed.
    Refuse(Duration),
}

/// The state a worker acts on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    state: BreakerState,
    epoch: u32,
    evidence: OutageEvidence,
    /// This worker's own successes, and the failures beside them.
    successes: Successes,
    /// Boxed, because every worker has a gate for each upstream, and most upstreams never need this.
    own: Option<Box<Own>>,
}

/// A worker's own steps, and its probes.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    trips: u32,
    trip: Option<LocalTrip>,
    /// A step that the leader has not confirmed.
    unheard: Option<Unheard>,
    /// Where the count of grants is not shared: the epoch and ceiling under which this worker claimed its own.
    claimed: Option<(u32, u64)>,
    /// The shared count of grants has reached this ceiling: no need to read it again.
    exhausted: Option<u64>,
}

/// A step on a worker's own evidence.
#[derive(Clone, Copy, Debug)]
struct Unheard {
    since: Instant,
    /// The epoch that it ended.
    epoch: u32,
    /// Whether it was a trip, and not a ramp.
    trip: bool,
    /// The last decision for the proxy: state and epoch, without this worker's own step.
    decided: (BreakerState, u32),
}

impl Gate {
    pub(crate) const fn state(&self) -> BreakerState {
        self.state
    }

    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The last trip on this worker's own evidence.
    pub(crate) fn trip(&self) -> Option<LocalTrip> {
        self.own.as_ref()?.trip
    }

    pub(crate) fn passage(&self, now: Instant) -> Passage {
        match self.state {
            BreakerState::Closed => Passage::Free,
            BreakerState::Ramp { limit } => Passage::Ramp(limit),
            BreakerState::Open { until, .. } if now < until => {
                Passage::Refuse(until.saturating_since(now))
            }
            BreakerState::Open { probes, .. } => Passage::Probe(probes),
        }
    }

    /// Whether this worker may claim a grant of its own. Where the count of grants is not shared, every worker may claim one
    /// under each ceiling of each epoch.
    pub(crate) fn take_own_grant(&mut self, ceiling: u64) -> bool {
        let grant = Some((self.epoch, ceiling));
        let own = self.own.get_or_insert_default();
        core::mem::replace(&mut own.claimed, grant) != grant
    }

    /// Whether the shared count of grants is known to be at this ceiling.
    pub(crate) fn is_exhausted(&self, ceiling: u64) -> bool {
        let exhausted = self.own.as_ref().and_then(|own| own.exhausted);
        exhausted == Some(ceiling)
    }

    /// The shared count of grants is at this ceiling.
    pub(crate) fn exhaust(&mut self, ceiling: u64) {
        self.own.get_or_insert_default().exhausted = Some(ceiling);
    }

    /// Records how a request of this epoch ended. Returns the reason if that trips the breaker.
    pub(crate) fn record(
        &mut self,
        outcome: Outcome,
        permit: &Permit,
        thresholds: &Thresholds,
        now: Instant,
    ) -> Option<TripReason> {
        match (self.state, outcome) {
            // Where several probes decide, other workers may have sent some of them: the leader counts.
            (BreakerState::Open { .. }, Outcome::Failure(_))
                if permit.purpose == Purpose::Probe && thresholds.probes == 1 =>
            {
                Some(TripReason::ProbeFailed)
            }
            (BreakerState::Open { .. }, _) => None,
            (BreakerState::Closed | BreakerState::Ramp { .. }, Outcome::Success) => {
                self.evidence.success(thresholds);
                None
            }
            (BreakerState::Closed | BreakerState::Ramp { .. }, Outcome::Failure(_)) => {
                self.successes.fail(1, now);
                let is_outage = self.evidence.failure(thresholds, &self.successes, now);
                let reason = match self.state {
                    BreakerState::Ramp { .. } => TripReason::ProbeFailed,
                    _ => TripReason::ConsecutiveFailures,
                };
                (is_outage && !is_off(Mechanism::LocalTrip)).then_some(reason)
            }
            (BreakerState::Closed | BreakerState::Ramp { .. }, _) => None,
        }
    }

    /// A request that was admitted in this epoch and sent at `started_at` succeeded to its end.
    pub(crate) fn succeed(&mut self, started_at: Instant, now: Instant) {
        let waiting = self.evidence.waiting_since();
        if waiting.is_some_and(|since| started_at > since) {
            self.successes.doubt(now);
        }
        self.successes.succeed(now);
    }

    /// A recorded success turned out to be none.
    pub(crate) fn retract(&mut self, thresholds: &Thresholds) {
        if !matches!(self.state, BreakerState::Open { .. }) {
            self.evidence.retract(thresholds);
        }
    }

    /// Closes the gate on this worker's own evidence, until the leader says otherwise.
    pub(crate) fn trip_locally(&mut self, reason: TripReason, state: BreakerState, now: Instant) {
        let own = self.own.get_or_insert_default();
        own.trips = own.trips.wrapping_add(1);
        own.trip = Some(LocalTrip {
            sequence: own.trips,
            epoch: self.epoch,
            reason,
        });
        self.step(state, true, now);
    }

    /// Opens the gate to the first step of the ramp after this worker's own successful probe. The leader does the same when it
    /// receives the report.
    pub(crate) fn ramp_locally(&mut self, limit: u32, now: Instant) {
        if !is_off(Mechanism::LocalRamp) {
            self.step(BreakerState::Ramp { limit }, false, now);
        }
    }

    fn step(&mut self, state: BreakerState, trip: bool, now: Instant) {
        let decided = self.decided();
        self.own.get_or_insert_default().unheard = Some(Unheard {
            since: now,
            epoch: self.epoch,
            trip,
            decided,
        });
        self.enter(state, self.epoch.wrapping_add(1), now);
    }

    /// The last decision for the proxy, without a step of this worker's own that the leader has not received.
    pub(crate) fn decided(&self) -> (BreakerState, u32) {
        let unheard = self.own.as_ref().and_then(|own| own.unheard);
        unheard.map_or((self.state, self.epoch), |step| step.decided)
    }

    /// Whether an own step holds that the leader may not know of. Then each decision of the leader is compared with it.
    pub(crate) fn is_ahead(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.unheard.is_some())
    }

    /// Follows the leader, unless the leader has not received this worker's own step yet.
    pub(crate) fn adopt(&mut self, state: BreakerState, epoch: u32, now: Instant) {
        let unheard = self.own.as_mut().map(|own| &mut own.unheard);
        if let Some(place) = unheard
            && let Some(step) = place
        {
            step.decided = (state, epoch);
            if step.is_unheard(state, epoch, now) {
                return;
            }
            *place = None;
        }
        self.enter(state, epoch, now);
    }

    fn enter(&mut self, state: BreakerState, epoch: u32, now: Instant) {
        if epoch != self.epoch {
            self.evidence.forget();
            self.successes.restart(now);
        }
        self.state = state;
        self.epoch = epoch;
    }
}

impl Unheard {
    /// Whether the leader cannot have known of the step when it decided this.
    fn is_unheard(&self, state: BreakerState, epoch: u32, now: Instant) -> bool {
        let ahead = epoch.wrapping_sub(self.epoch);
        let heard = (1..u32::MAX / 2).contains(&ahead)
            && (!self.trip || matches!(state, BreakerState::Open { .. }) || ahead >= 2);
        // A clock that jumped back does not make it last.
        !heard && self.since <= now && now.saturating_since(self.since) < HEARING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_trip_is_not_a_decision() {
        // A leader that met the upstream just then once took its own worker's trip for decided, and never counted it.
        let mut gate = Gate::default();
        let open = BreakerState::Open {
            until: at(1_000),
            probes: 1,
        };
        gate.trip_locally(TripReason::ConsecutiveFailures, open, at(0));
        assert_eq!(gate.decided(), (BreakerState::Closed, 0));
        assert!(gate.is_ahead());
        gate.adopt(open, 1, at(100));
        assert_eq!(gate.decided(), (open, 1));
        assert!(!gate.is_ahead());
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn open(until: u64, probes: u64) -> BreakerState {
        BreakerState::Open {
            until: at(until),
            probes,
        }
    }

    fn tripped(now: u64) -> Gate {
        let mut gate = Gate::default();
        gate.trip_locally(TripReason::ConsecutiveFailures, open(now + 500, 1), at(now));
        gate
    }

    #[test]
    fn an_open_gate_refuses_until_its_time_and_then_asks_for_probes() {
        let gate = tripped(100);
        assert_eq!(
            gate.passage(at(200)),
            Passage::Refuse(Duration::from_millis(400))
        );
        assert_eq!(gate.passage(at(600)), Passage::Probe(1));
    }

    #[test]
    fn a_worker_keeps_its_trip_until_the_leader_has_received_it() {
        let mut gate = tripped(100);
        gate.adopt(BreakerState::Closed, 0, at(150));
        assert_eq!(gate.state(), open(600, 1), "the leader does not know yet");
        gate.adopt(open(900, 3), 1, at(250));
        assert_eq!((gate.state(), gate.epoch()), (open(900, 3), 1));
        gate.adopt(BreakerState::Closed, 3, at(950));
        assert_eq!(gate.state(), BreakerState::Closed);
    }

    #[test]
    fn a_trip_that_the_leader_never_confirms_ends_even_if_the_clock_jumps_back() {
        for later in [1_100, 99] {
            let mut gate = tripped(100);
            gate.adopt(BreakerState::Closed, 0, at(later));
            assert_eq!(gate.state(), BreakerState::Closed, "{later}");
        }
    }

    #[test]
    fn a_worker_ramps_by_itself_until_the_leader_decides() {
        let ramped = || {
            let mut gate = tripped(100);
            gate.adopt(open(900, 3), 1, at(250));
            gate.ramp_locally(5, at(950));
            gate
        };
        let mut gate = ramped();
        gate.adopt(open(900, 3), 1, at(1_000));
        assert_eq!(
            (gate.state(), gate.epoch()),
            (BreakerState::Ramp { limit: 5 }, 2),
            "the leader does not know of the probe"
        );
        gate.adopt(open(1_900, 4), 2, at(1_050));
        assert_eq!(gate.state(), open(1_900, 4), "another probe had failed");
        let mut gate = ramped();
        gate.adopt(open(900, 3), 1, at(1_950));
        assert_eq!(gate.state(), open(900, 3), "it is never confirmed");
    }

    #[test]
    fn a_worker_that_counts_alone_sends_one_probe_under_each_ceiling_of_each_epoch() {
        let mut gate = tripped(0);
        assert!(gate.take_own_grant(1) && !gate.take_own_grant(1));
        assert!(gate.take_own_grant(2), "another was granted");
        gate.adopt(open(900, 2), 1, at(10));
        assert!(!gate.take_own_grant(2));
        gate.adopt(open(1_900, 2), 2, at(20));
        assert!(gate.take_own_grant(2));
    }
}
