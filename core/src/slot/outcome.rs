//! What the end of a request says about its upstream.

use super::Slot;
use crate::breaker::{BreakerState, TripReason, ramp_start};
use crate::config::Policy;
use crate::limit::Learned;
use crate::outcome::{Failure, Outcome};
use crate::permit::{Permit, Purpose};
use crate::tally::Count;
use crate::time::Instant;

impl Slot {
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
        // Worked out for those who leave alone: most do not.
        let is_long = |learned: &Learned| age >= learned.usual_wait(target);
        if !matches!(
            outcome,
            Outcome::Cancelled | Outcome::Failure(Failure::Timeout)
        ) {
            self.last_response = self.last_response.max(now);
            self.given_up.see_answer();
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
                if !answered && is_long(&self.learned) {
                    self.given_up.see(now);
                }
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
                Outcome::Cancelled if is_long(&self.learned) => {
                    self.tally.add(Count::ProbeFailures, 1)
                }
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
}
