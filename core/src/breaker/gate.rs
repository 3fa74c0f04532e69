//! A worker's side of the breaker: who may pass now, and the worker's own evidence.
//!
//! The leader decides for all, a tick or two later. A worker that sees enough by itself does not wait: it closes
//! its own gate at once, reports the trip, and holds to it until the leader has heard it.

use core::time::Duration;

use super::evidence::{Evidence, Finding, Thresholds};
use super::{BreakerState, TripReason};
use crate::exchange::LocalTrip;
use crate::outcome::Outcome;
use crate::permit::Purpose;
use crate::time::Instant;

/// How long a worker holds to its own trip when the leader does not answer: some ticks. After that the leader
/// knows better, having seen all workers.
const HEARING: Duration = Duration::from_secs(1);

/// Whether a request may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// The limit alone decides.
    Free,
    /// Within the ramp's limit.
    Ramp(u32),
    /// As a probe, if the count of probes ever sent stays within this ceiling.
    Probe(u64),
    /// Not before this much time has passed.
    Refuse(Duration),
}

/// The state a worker acts on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gate {
    state: BreakerState,
    epoch: u32,
    evidence: Evidence,
    trips: u32,
    trip: Option<LocalTrip>,
    unheard_since: Option<Instant>,
    /// Where the count of probes is not shared: the epoch and ceiling under which this worker sent its probe.
    probed: Option<(u32, u64)>,
}

impl Gate {
    pub(crate) const fn state(&self) -> BreakerState {
        self.state
    }

    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The last trip on this worker's own evidence.
    pub(crate) const fn trip(&self) -> Option<LocalTrip> {
        self.trip
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

    /// Where probes are not counted together, every worker may send one under each ceiling of each epoch.
    pub(crate) fn take_own_probe(&mut self, ceiling: u64) -> bool {
        let grant = Some((self.epoch, ceiling));
        core::mem::replace(&mut self.probed, grant) != grant
    }

    /// Hears how a request of `epoch`, admitted at `load`, ended. Answers with the reason when that trips.
    pub(crate) fn hear(
        &mut self,
        outcome: Outcome,
        purpose: Purpose,
        load: u32,
        thresholds: &Thresholds,
    ) -> Option<TripReason> {
        match (self.state, outcome) {
            (BreakerState::Open { .. }, Outcome::Failure(_) | Outcome::Overload { .. })
                if purpose == Purpose::Probe =>
            {
                Some(TripReason::ProbeFailed)
            }
            (BreakerState::Open { .. }, _) => None,
            (BreakerState::Closed | BreakerState::Ramp { .. }, Outcome::Success) => {
                self.evidence.success(load, thresholds);
                None
            }
            (BreakerState::Closed, Outcome::Failure(_)) => {
                let finding = self.evidence.failure(load, thresholds);
                (finding == Finding::Outage).then_some(TripReason::ConsecutiveFailures)
            }
            (BreakerState::Ramp { .. }, Outcome::Failure(_)) => {
                let finding = self.evidence.failure(load, &thresholds.in_ramp());
                (finding == Finding::Outage).then_some(TripReason::ProbeFailed)
            }
            (BreakerState::Closed | BreakerState::Ramp { .. }, _) => None,
        }
    }

    /// Closes the gate on this worker's own evidence, until the leader says otherwise.
    pub(crate) fn trip_locally(&mut self, reason: TripReason, state: BreakerState, now: Instant) {
        self.trips = self.trips.wrapping_add(1);
        self.trip = Some(LocalTrip {
            sequence: self.trips,
            epoch: self.epoch,
            reason,
        });
        self.unheard_since = Some(now);
        self.enter(state, self.epoch.wrapping_add(1));
    }

    /// Follows the leader, unless it has not heard this worker's trip yet.
    pub(crate) fn adopt(&mut self, state: BreakerState, epoch: u32, now: Instant) {
        if let (Some(since), Some(trip)) = (self.unheard_since, self.trip) {
            let ahead = epoch.wrapping_sub(trip.epoch);
            let heard = (1..u32::MAX / 2).contains(&ahead)
                && (matches!(state, BreakerState::Open { .. }) || ahead >= 2);
            // A clock that jumped back does not make it last.
            if !heard && since <= now && now.saturating_since(since) < HEARING {
                return;
            }
            self.unheard_since = None;
        }
        self.enter(state, epoch);
    }

    fn enter(&mut self, state: BreakerState, epoch: u32) {
        if epoch != self.epoch {
            self.evidence.forget();
        }
        self.state = state;
        self.epoch = epoch;
    }
}
