//! Which of a worker's requests are in flight.
//!
//! A request counts from its admission to its end, unless it is no load any more: it has become a stream, hangs since
//! before the breaker opened, or later ones have overtaken it. Such a one is held, and counted apart.
//!
//! ```text
//!   enter --> waiting --answer--> answering --leave--> gone
//!                |                    |                  ^
//!                +-- take_unloading --+--> held ---------+
//! ```

use core::time::Duration;

use super::Slot;
use crate::ablation::{Mechanism, is_off};
use crate::permit::{Permit, Phase, Purpose};
use crate::tally::Count;
use crate::time::Instant;
use crate::upstream::UpstreamId;

impl Slot {
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

    /// The response headers of a request came.
    pub(crate) fn answer(&mut self, permit: &mut Permit, now: Instant) {
        // A health check may be answered beside the queue, by an upstream that answers nothing else.
        if permit.purpose != Purpose::Exempt {
            self.last_response = now;
            self.given_up.see_answer();
            self.answered_up_to = self.answered_up_to.max(Some(permit.admitted_at));
        }
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
        let lost = if core::mem::take(&mut self.write_off) && !is_off(Mechanism::WriteOff) {
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
        let age = now.saturating_since(answered).max(self.overtaken_after);
        // The ledger does not tell those apart that are older than its horizon.
        (age <= self.waiting.horizon() && !is_off(Mechanism::Overtaken)).then_some(age)
    }

    /// One more in flight, or one less.
    pub(crate) fn count_in_flight(&mut self, change: i32, now: Instant) {
        self.integrate(now);
        self.in_flight = self.in_flight.saturating_add_signed(change);
    }

    pub(super) fn integrate(&mut self, now: Instant) {
        let span = now.saturating_since(self.integrated_at);
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.tally.add(
            Count::InFlightMicros,
            micros.saturating_mul(u64::from(self.in_flight)),
        );
        self.integrated_at = self.integrated_at.max(now);
    }
}
