//! Why a limit or a breaker moved, in words.
//!
//! Every reason of the laws has a text here, which the compiler enforces. A limit is `C (T + w)`: the work that the
//! service does in the time of one request without a queue, plus room for waiting requests. The wait `w` follows from
//! the limit.

use tidegate_core::{BreakerPhase, LimitReason, ShedReason, TripReason};
use tidegate_sim::decision::LimitDecision;

/// A change of less than this share of the limit explains nothing.
const NOTABLE: f64 = 0.02;

/// Explains a reason for the limit.
#[must_use]
pub const fn law(reason: Option<LimitReason>) -> &'static str {
    match reason {
        None => "No worker leads, so the limit does not change.",
        Some(LimitReason::WarmUp) => {
            "Nothing is known about the service yet, so the initial limit applies."
        }
        Some(LimitReason::Cruise) => {
            "No queue stands, so the limit leaves room for bursts: requests may wait as long as they still meet the objective."
        }
        Some(LimitReason::Hold) => {
            "A queue stands, and more requests in flight would only make it longer. The limit is just enough to keep the service busy."
        }
        Some(LimitReason::BelowOne) => {
            "A queue stands, and this proxy is one of many: its share is less than one request in flight. So requests are granted one by one, and others are shed."
        }
        Some(LimitReason::LoadFailures) => {
            "More requests in flight make the service fail, so the limit stays below the number at which failures began."
        }
        Some(LimitReason::Bounds) => "The limit is at a bound of the policy.",
        Some(LimitReason::Unreachable) => {
            "Most answers are later than the objective even without a queue. No limit can change that, so the limit only keeps queues from growing without bound."
        }
    }
}

/// Explains a reason to shed.
#[must_use]
pub const fn shed(reason: ShedReason) -> &'static str {
    match reason {
        ShedReason::Limit => "the limit was reached",
        ShedReason::Criticality => "more important requests needed the place",
        ShedReason::Retry => "a retry, and first attempts needed the place",
        ShedReason::Deadline => "its caller would have given up before the answer",
        ShedReason::MaxOpen => "too many requests had not ended",
        ShedReason::BreakerOpen => "the breaker was open",
        ShedReason::BreakerHalfOpen => "the breaker let only probes or a ramp pass",
    }
}

/// Explains a reason to trip.
#[must_use]
pub const fn trip(reason: TripReason) -> &'static str {
    match reason {
        TripReason::ConsecutiveFailures => {
            "too many failures with too few successes between them for a service that is up"
        }
        TripReason::LowSuccessRate => "too few requests succeed",
        TripReason::Hang => "requests wait, and no answer comes",
        TripReason::ProbeFailed => "a probe failed, or the traffic after it",
    }
}

/// Why a breaker moved, if a note gives only a name. Rivals have their own names.
#[must_use]
pub fn note(reason: &str) -> &str {
    let trips = TripReason::ALL.iter();
    let found = trips.copied().find(|known| known.as_str() == reason);
    match (reason, found) {
        (_, Some(known)) => trip(known),
        ("probe_succeeded", _) => "a probe succeeded, so traffic returns step by step",
        ("ramp_done", _) => "traffic is back",
        (other, None) => other,
    }
}

/// The text for `Hold` while the breaker is not closed: the limit is as cautious as with a queue.
const AFTER_OUTAGE: &str = "The breaker is not closed. The service may come back weaker, so the limit restarts at the number of requests that it served without a queue.";

/// Explains a limit, and what has changed since the decision before; `breaker` is the phase of the breaker.
#[must_use]
pub fn limit(before: Option<&LimitDecision>, now: &LimitDecision, breaker: BreakerPhase) -> String {
    let is_outage = breaker != BreakerPhase::Closed && now.reason == Some(LimitReason::Hold);
    let law = if is_outage {
        AFTER_OUTAGE
    } else {
        law(now.reason)
    };
    let mut parts = vec![law.to_owned()];
    if let (Some(LimitReason::LoadFailures), Some(ceiling)) = (now.reason, now.ceiling) {
        parts.push(format!("That bound is {ceiling:.0} requests now; it rises again after some time without such failures."));
    }
    if let Some(terms) = LimitTerms::of(now) {
        parts.push(terms.words());
        let was = before.filter(|before| before.reason == now.reason);
        parts.extend(
            was.and_then(LimitTerms::of)
                .and_then(|was| terms.since(&was)),
        );
    }
    parts.join(" ")
}

/// The terms of `limit = C (T + w)`, in answers a second and seconds.
#[derive(Debug, Clone, Copy)]
struct LimitTerms {
    capacity: f64,
    floor: f64,
    wait: f64,
}

impl LimitTerms {
    fn of(decision: &LimitDecision) -> Option<Self> {
        let (capacity, floor) = (decision.capacity, decision.floor_s);
        // Other reasons do not use this formula.
        let is_sum = matches!(
            decision.reason,
            Some(LimitReason::Cruise | LimitReason::Hold | LimitReason::Unreachable)
        );
        (is_sum && capacity > 0.0 && floor > 0.0).then(|| Self {
            capacity,
            floor,
            wait: f64::from(decision.limit) / capacity - floor,
        })
    }

    fn words(&self) -> String {
        let (capacity, floor) = (self.capacity, millis(self.floor));
        let at_work = capacity * self.floor;
        let room = capacity * self.wait;
        let known = format!(
            "As far as is known, the service answers {} a second and takes {floor} without a queue. The limit has room for {at_work:.0} requests in service",
            whole(capacity)
        );
        if room < 0.5 {
            return format!("{known}, and for no waiting ones.");
        }
        let wait = millis(self.wait);
        format!("{known}, and for {room:.0} that wait up to {wait}.")
    }

    /// The term that has changed the limit most.
    fn since(&self, was: &Self) -> Option<String> {
        let by_capacity = (self.capacity - was.capacity) * (was.floor + was.wait);
        let by_floor = self.capacity * (self.floor - was.floor);
        let by_wait = self.capacity * (self.wait - was.wait);
        let limit = self.capacity * (self.floor + self.wait);
        let most = by_capacity.abs().max(by_floor.abs()).max(by_wait.abs());
        if most < limit * NOTABLE {
            return None;
        }
        let words = |now: f64, was: f64| if now > was { "rose" } else { "fell" };
        let (what, now, was, verb) = if most <= by_capacity.abs() {
            let verb = words(self.capacity, was.capacity);
            let rate = |value| format!("{} a second", whole(value));
            (
                "the known capacity",
                rate(self.capacity),
                rate(was.capacity),
                verb,
            )
        } else if most <= by_wait.abs() {
            let verb = words(self.wait, was.wait);
            let wait = |value: f64| millis(value.max(0.0));
            ("the allowed wait", wait(self.wait), wait(was.wait), verb)
        } else {
            let verb = words(self.floor, was.floor);
            (
                "the latency without a queue",
                millis(self.floor),
                millis(was.floor),
                verb,
            )
        };
        Some(format!(
            "The main change since the limit before: {what} {verb} from {was} to {now}."
        ))
    }
}

fn whole(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

fn millis(seconds: f64) -> String {
    let ms = seconds * 1_000.0;
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else if ms < 10_000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{seconds:.0} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(limit: u32, reason: LimitReason, capacity: f64, floor_s: f64) -> LimitDecision {
        LimitDecision {
            limit,
            reason: Some(reason),
            capacity,
            floor_s,
            ceiling: None,
        }
    }

    #[test]
    fn a_limit_is_what_is_at_work_and_what_may_wait() {
        let text = limit(
            None,
            &decision(40, LimitReason::Cruise, 400.0, 0.04),
            BreakerPhase::Closed,
        );
        assert!(text.starts_with("No queue stands"), "{text}");
        let terms = "answers 400 a second and takes 40 ms without a queue. The limit has room for 16 requests in service, and for 24 that wait up to 60 ms.";
        assert!(text.ends_with(terms), "{text}");
    }

    #[test]
    fn the_term_that_changed_most_is_named() {
        let before = decision(40, LimitReason::Cruise, 400.0, 0.04);
        let says = |now: &LimitDecision| limit(Some(&before), now, BreakerPhase::Closed);
        let text = says(&decision(20, LimitReason::Cruise, 200.0, 0.04));
        assert!(
            text.ends_with("the known capacity fell from 400 a second to 200 a second."),
            "{text}"
        );
        let text = says(&decision(80, LimitReason::Cruise, 400.0, 0.14));
        assert!(
            text.ends_with("the latency without a queue rose from 40 ms to 140 ms."),
            "{text}"
        );
        let text = says(&decision(24, LimitReason::Cruise, 400.0, 0.04));
        assert!(
            text.ends_with("the allowed wait fell from 60 ms to 20 ms."),
            "{text}"
        );
        let text = says(&decision(24, LimitReason::Hold, 400.0, 0.04));
        assert!(
            !text.contains("main change"),
            "another law says enough: {text}"
        );
    }

    #[test]
    fn a_limit_that_begins_again_after_an_outage_is_no_queue() {
        let now = decision(20, LimitReason::Hold, 400.0, 0.04);
        let open = limit(None, &now, BreakerPhase::Open);
        assert!(open.starts_with(AFTER_OUTAGE), "{open}");
        let closed = limit(None, &now, BreakerPhase::Closed);
        assert!(closed.starts_with("A queue stands"), "{closed}");
    }

    #[test]
    fn a_ceiling_is_named() {
        let now = LimitDecision {
            ceiling: Some(31.6),
            ..decision(32, LimitReason::LoadFailures, 400.0, 0.04)
        };
        let text = limit(None, &now, BreakerPhase::Closed);
        assert!(text.contains("is 32 requests"), "{text}");
    }

    #[test]
    fn unknown_terms_are_left_out() {
        let text = limit(
            None,
            &decision(100, LimitReason::WarmUp, 0.0, 0.0),
            BreakerPhase::Closed,
        );
        assert_eq!(text, law(Some(LimitReason::WarmUp)));
    }

    #[test]
    fn notes_of_tidegate_have_words_and_those_of_rivals_keep_theirs() {
        for reason in TripReason::ALL {
            assert_eq!(note(reason.as_str()), trip(reason));
        }
        assert_eq!(note("ejected"), "ejected");
    }
}
