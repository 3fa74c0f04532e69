//! What a request's answer and its end say about the upstream.
//!
//! A success counts with the response headers, because a stream may continue for minutes. If the response fails after them, the
//! success is taken back, unless the response was open for long: a stream that is reset after minutes, together with many
//! others, shows a restarted endpoint and not failing requests. A timeout before the request is complete is the caller's
//! fault.

use super::{ANSWERING_FOR, Slot};
use crate::breaker::{BreakerState, TripReason, ramp_start};
use crate::config::Policy;
use crate::outcome::{Failure, Outcome};
use crate::permit::{AnswerClass, Permit, Purpose, RequestStage};
use crate::tally::Count;
use crate::time::Instant;

impl Slot {
    /// Learns from the response headers of a request, unless they are bad. Bad outcomes are learned at its end.
    #[inline(always)]
    pub(crate) fn learn_answer(&mut self, permit: &mut Permit, outcome: Outcome, now: Instant) {
        if permit.purpose == Purpose::Exempt || permit.answer.is_some() {
            return;
        }
        if permit.epoch != self.gate.epoch() {
            if matches!(outcome, Outcome::Success | Outcome::Ignored) {
                let waited = now.saturating_since(permit.started_at);
                self.tally.add_stale_answer(waited);
            }
            return;
        }
        permit.answer = match outcome {
            Outcome::Success => Some(AnswerClass::Success),
            Outcome::Ignored => Some(AnswerClass::Neutral),
            Outcome::Failure(_) | Outcome::Overload { .. } | Outcome::Cancelled => None,
        };
        if permit.answer != Some(AnswerClass::Success) {
            return;
        }
        self.tally.add(Count::Successes, 1);
        self.tally
            .add_load(Count::SuccessLoad, Count::SuccessLoadSquares, permit.load);
        if permit.purpose == Purpose::Probe {
            self.tally.add(Count::ProbeSuccesses, 1);
            if matches!(self.gate.state(), BreakerState::Open { .. }) {
                // The leader gets the report a tick or two later, and will decide the same.
                self.write_off = true;
                self.gate
                    .ramp_locally(ramp_start(self.ladder.limit(), &self.learned.limit), now);
                return;
            }
        }
        // A success trips nothing.
        let _ = self
            .gate
            .record(Outcome::Success, permit, &self.thresholds, now);
    }

    /// Learns that a success upgraded its connection, whose end says nothing.
    pub(crate) fn learn_upgrade(&mut self, permit: &mut Permit) {
        self.sees_upgrades = true;
        if permit.answer == Some(AnswerClass::Success) {
            permit.answer = Some(AnswerClass::Upgraded);
        }
    }

    /// Records the latency of a request, once it is measured.
    pub(crate) fn record_latency(&mut self, permit: &Permit, policy: &Policy) {
        let sample = permit.latency.sample();
        let Some(answer) = permit.answer else {
            if let Some(latency) = sample {
                self.tally.add_unanswered(latency);
            }
            return;
        };
        if permit.epoch != self.gate.epoch() && permit.purpose != Purpose::Probe {
            return;
        }
        let is_success = answer == AnswerClass::Success;
        if let Some(latency) = sample {
            if let Some(left) = permit.explored {
                self.learn_deadline(latency <= left);
            }
            self.tally.add_answer(latency, is_success);
        }
        let target = policy.slo().latency_target();
        let is_late = permit.latency().is_some_and(|waited| waited > target);
        self.tally
            .add(Count::Slow, u64::from(is_success && is_late));
    }

    /// Learns that a request ended as well as its headers promised.
    #[inline]
    pub(crate) fn learn_good_end(&mut self, permit: &Permit, now: Instant) {
        if says_nothing(permit, now) {
            return;
        }
        self.learn_unmeasured(permit);
        self.see_answer(now);
        if self.counts_as_stale(permit) {
            return;
        }
        self.gate.succeed(permit.started_at, now);
    }

    /// Learns how a request ended. Returns a reason if that trips the breaker.
    pub(crate) fn learn_end(
        &mut self,
        permit: &Permit,
        outcome: Outcome,
        policy: &Policy,
        now: Instant,
    ) -> Option<TripReason> {
        if outcome == Outcome::Success {
            self.learn_good_end(permit, now);
            return None;
        }
        if says_nothing(permit, now) {
            return None;
        }
        self.learn_unmeasured(permit);
        let outcome = match outcome {
            // A proxy with a timeout for every stream ends stalled uploads, for which the upstream is not to blame. Nor is it
            // to blame for a caller's deadline that most answers cannot meet.
            Outcome::Failure(Failure::Timeout)
                if permit.stage == RequestStage::Uploading || self.is_too_soon(permit, now) =>
            {
                Outcome::Cancelled
            }
            outcome => outcome,
        };
        if !matches!(
            outcome,
            Outcome::Cancelled | Outcome::Failure(Failure::Timeout)
        ) {
            self.see_answer(now);
        }
        if self.counts_as_stale(permit) {
            return None;
        }
        if outcome != Outcome::Cancelled && permit.answer == Some(AnswerClass::Success) {
            // A gRPC status in the trailers, or a response that broke off.
            self.tally.add(Count::Retracted, 1);
            self.gate.retract(&self.thresholds);
        }
        match outcome {
            // Learned above.
            Outcome::Success => {}
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
            Outcome::Cancelled => self.learn_departure(permit, policy, now),
        }
        if permit.purpose == Purpose::Probe {
            self.judge_probe(permit, outcome, policy, now);
        }
        self.gate.record(outcome, permit, &self.thresholds, now)
    }

    /// A request ended. Without a latency, its caller's deadline was too short for it.
    fn learn_unmeasured(&mut self, permit: &Permit) {
        if permit.explored.is_some() && permit.latency.sample().is_none() {
            self.learn_deadline(false);
        }
    }

    /// The upstream has answered a request.
    fn see_answer(&mut self, now: Instant) {
        self.last_response = self.last_response.max(now);
        self.given_up.see_answer();
    }

    /// Whether the end of a request is about a state of the breaker that is over, which is counted. A success was counted in its
    /// own epoch.
    fn counts_as_stale(&mut self, permit: &Permit) -> bool {
        let is_past = permit.epoch != self.gate.epoch();
        if is_past && permit.answer != Some(AnswerClass::Success) {
            self.tally.add(Count::Stale, 1);
        }
        is_past
    }

    /// Whether a request has waited for less than answers take on average.
    fn is_too_soon(&self, permit: &Permit, now: Instant) -> bool {
        let usual = self.learned.limit.floor.usual_latency();
        now.saturating_since(permit.started_at) < usual
    }

    /// A caller left.
    fn learn_departure(&mut self, permit: &Permit, policy: &Policy, now: Instant) {
        self.tally.add(Count::Cancelled, 1);
        if matches!(permit.stage, RequestStage::Uploading | RequestStage::Open) {
            return;
        }
        // The caller gave up after the target: the answer would have been slow.
        let age = now.saturating_since(permit.started_at);
        let target = policy.slo().latency_target();
        self.tally.add(Count::Slow, u64::from(age > target));
        // Worked out only for callers that left: most do not.
        if permit.stage == RequestStage::Waiting
            && age >= self.learned.limit.floor.usual_wait(target)
        {
            self.given_up.see(now);
        }
    }

    /// Judges a probe by its end, if its headers did not decide.
    fn judge_probe(&mut self, permit: &Permit, outcome: Outcome, policy: &Policy, now: Instant) {
        let age = now.saturating_since(permit.started_at);
        let target = policy.slo().latency_target();
        let count = match outcome {
            // An upstream that rejects a request is alive.
            Outcome::Ignored if permit.is_answered() => Count::ProbeSuccesses,
            Outcome::Overload { .. } => Count::ProbeSuccesses,
            Outcome::Failure(_) => Count::ProbeFailures,
            Outcome::Cancelled
                if permit.stage == RequestStage::Waiting
                    && age >= self.learned.limit.floor.usual_wait(target) =>
            {
                Count::ProbeFailures
            }
            Outcome::Success | Outcome::Ignored | Outcome::Cancelled => return,
        };
        self.tally.add(count, 1);
    }
}

/// Whether the end of a request says nothing about the upstream.
fn says_nothing(permit: &Permit, now: Instant) -> bool {
    permit.purpose == Purpose::Exempt
        || permit.answer == Some(AnswerClass::Upgraded)
        || is_past(permit, now)
}

/// Whether a request had a good answer so long ago that its end says nothing about the upstream now.
fn is_past(permit: &Permit, now: Instant) -> bool {
    let is_long = |since| now.saturating_since(since) >= ANSWERING_FOR;
    // Most requests are too young for that.
    is_long(permit.started_at)
        && permit.answer == Some(AnswerClass::Success)
        && permit
            .latency
            .sample()
            .is_some_and(|latency| is_long(permit.started_at + latency))
}

#[cfg(test)]
mod tests;
