//! Tables of the counts for each outcome by the headers and the end of a response.

use core::time::Duration;

use super::*;
use crate::config::Until;
use crate::slot::testing::{TARGET, at, policy, slot};
use crate::units::Seconds;

const SUCCESS: Outcome = Outcome::Success;
const NEUTRAL: Outcome = Outcome::Ignored;
const GONE: Outcome = Outcome::Cancelled;
const BROKEN: Outcome = Outcome::Failure(Failure::Truncated);
const LATE: Outcome = Outcome::Failure(Failure::Timeout);
const BUSY: Outcome = Outcome::Overload { retry_after: None };

/// Every count that an outcome may change.
const COUNTS: [Count; 9] = [
    Count::Successes,
    Count::Retracted,
    Count::Failures,
    Count::Overloads,
    Count::Ignored,
    Count::Cancelled,
    Count::Stale,
    Count::ProbeSuccesses,
    Count::ProbeFailures,
];

/// What the headers say, where they come, what the end says, and what is counted.
type Exchange = (Option<Outcome>, Outcome, &'static [(Count, u64)]);
/// The same of a probe: headers, whether its body is still on its way, end, milliseconds, and which counts change.
type Probe = (Option<Outcome>, bool, Outcome, u64, &'static [Count]);

/// The counts that are not zero.
fn counted(slot: &Slot) -> Vec<(Count, u64)> {
    let counts = COUNTS.map(|count| (count, slot.count(count)));
    counts.into_iter().filter(|(_, value)| *value > 0).collect()
}

/// The response headers came.
fn answer(slot: &mut Slot, permit: &mut Permit, outcome: Outcome, now: Instant) {
    let _ = slot.answer(permit, Until::Headers, now);
    slot.learn_answer(permit, outcome, now);
    slot.record_latency(permit, &policy());
}

fn end(slot: &mut Slot, permit: &Permit, outcome: Outcome, now: Instant) -> Option<TripReason> {
    let _ = slot.leave(permit, now);
    slot.learn_end(permit, outcome, &policy(), now)
}

/// A slot whose breaker is open, and time for a probe.
fn open_slot() -> Slot {
    let mut slot = slot();
    let open = BreakerState::Open {
        until: at(0),
        probes: 1,
    };
    slot.gate.adopt(open, 7, at(0));
    slot
}

#[test]
fn a_success_counts_with_the_headers() {
    let mut slot = slot();
    let mut permit = slot.admit(Purpose::Normal, false, at(0));
    answer(&mut slot, &mut permit, SUCCESS, at(20));
    assert_eq!(counted(&slot), [(Count::Successes, 1)]);
    assert_eq!(slot.count(Count::SuccessLoad), 1);
    assert_eq!(slot.last_response, at(20));
    // Minutes later the stream adds nothing.
    assert_eq!(end(&mut slot, &permit, SUCCESS, at(300_000)), None);
    assert_eq!(counted(&slot), [(Count::Successes, 1)]);
    assert_eq!(slot.count(Count::SuccessLoad), 1);
}

#[test]
fn a_response_that_was_open_for_long_says_nothing_by_its_end() {
    let long = u64::try_from(ANSWERING_FOR.as_millis()).unwrap();
    let broken = [
        (Count::Successes, 1),
        (Count::Retracted, 1),
        (Count::Failures, 1),
    ];
    let table: [(u64, &[(Count, u64)]); 2] = [(long - 1, &broken), (long, &broken[..1])];
    for (open_for, expected) in table {
        let mut slot = slot();
        let mut permit = slot.admit(Purpose::Normal, false, at(0));
        answer(&mut slot, &mut permit, SUCCESS, at(20));
        assert_eq!(end(&mut slot, &permit, BROKEN, at(20 + open_for)), None);
        assert_eq!(counted(&slot), expected, "after {open_for} ms");
    }
}

#[test]
fn headers_and_end_together_count_once() {
    let table: [Exchange; 13] = [
        (Some(SUCCESS), SUCCESS, &[(Count::Successes, 1)]),
        (
            Some(SUCCESS),
            BROKEN,
            &[
                (Count::Successes, 1),
                (Count::Retracted, 1),
                (Count::Failures, 1),
            ],
        ),
        // gRPC says in its trailers how it went.
        (
            Some(SUCCESS),
            BUSY,
            &[
                (Count::Successes, 1),
                (Count::Retracted, 1),
                (Count::Overloads, 1),
            ],
        ),
        (
            Some(SUCCESS),
            NEUTRAL,
            &[
                (Count::Successes, 1),
                (Count::Retracted, 1),
                (Count::Ignored, 1),
            ],
        ),
        (
            Some(SUCCESS),
            GONE,
            &[(Count::Successes, 1), (Count::Cancelled, 1)],
        ),
        (Some(NEUTRAL), NEUTRAL, &[(Count::Ignored, 1)]),
        (Some(NEUTRAL), BROKEN, &[(Count::Failures, 1)]),
        (Some(NEUTRAL), GONE, &[(Count::Cancelled, 1)]),
        // What speaks against the upstream is heard at the end.
        (Some(BROKEN), BROKEN, &[(Count::Failures, 1)]),
        (Some(BUSY), BUSY, &[(Count::Overloads, 1)]),
        (None, BROKEN, &[(Count::Failures, 1)]),
        (None, LATE, &[(Count::Failures, 1)]),
        (None, GONE, &[(Count::Cancelled, 1)]),
    ];
    for (headers, at_end, expected) in table {
        let mut slot = slot();
        let mut permit = slot.admit(Purpose::Normal, false, at(0));
        if let Some(outcome) = headers {
            answer(&mut slot, &mut permit, outcome, at(20));
        }
        end(&mut slot, &permit, at_end, at(40));
        assert_eq!(counted(&slot), expected, "{headers:?}, {at_end:?}");
    }
}

#[test]
fn headers_that_come_twice_count_once() {
    let mut slot = slot();
    let mut permit = slot.admit(Purpose::Normal, false, at(0));
    answer(&mut slot, &mut permit, SUCCESS, at(20));
    answer(&mut slot, &mut permit, NEUTRAL, at(30));
    end(&mut slot, &permit, SUCCESS, at(40));
    assert_eq!(counted(&slot), [(Count::Successes, 1)]);
}

/// What the latency of an answer adds: answers, their sum in microseconds, the histogram, slow ones.
#[test]
fn latencies_are_those_of_answers_that_are_no_failures() {
    let table = [
        (SUCCESS, false, 20, (1, 20_000, 1, 0)),
        (SUCCESS, false, 301, (1, 301_000, 1, 1)),
        // A client's error costs the upstream time, and is not an answer to which the objective applies.
        (NEUTRAL, false, 301, (1, 301_000, 0, 0)),
        (BROKEN, false, 20, (0, 0, 0, 0)),
        (BUSY, false, 20, (0, 0, 0, 0)),
        // Answered before the request was complete: nothing was measured.
        (SUCCESS, true, 20, (0, 0, 0, 0)),
    ];
    for (outcome, has_body, millis, expected) in table {
        let mut slot = slot();
        let mut permit = slot.admit(Purpose::Normal, has_body, at(0));
        answer(&mut slot, &mut permit, outcome, at(millis));
        end(&mut slot, &permit, outcome, at(millis + 5_000));
        let found = (
            slot.count(Count::Answers),
            slot.count(Count::LatencyMicros),
            slot.tally
                .latency
                .filled()
                .map(|(_, count)| u64::from(count))
                .sum::<u64>(),
            slot.count(Count::Slow),
        );
        assert_eq!(found, expected, "{outcome:?} after {millis} ms");
        let is_answer = matches!(outcome, SUCCESS | NEUTRAL);
        let unanswered = if is_answer { 0 } else { millis * 1_000 };
        let found = slot.count(Count::UnansweredMicros);
        assert_eq!(found, unanswered, "{outcome:?} after {millis} ms");
    }
}

/// The caller waited for the answer, although the request was no load at the end and stood in no queue.
#[test]
fn an_answer_after_its_request_left_the_count_is_slow_and_no_sample() {
    // (answer, slow answers)
    let table = [(SUCCESS, 1), (NEUTRAL, 0), (BROKEN, 0)];
    for (outcome, slow) in table {
        for until in Until::ALL {
            let mut slot = slot();
            let mut late = slot.admit(Purpose::Normal, false, at(0));
            let mut later = slot.admit(Purpose::Normal, false, at(1_500));
            let _ = slot.answer(&mut later, until, at(1_510));
            assert_eq!(slot.take_unloading(at(1_600)), 1, "{until}");
            let _ = slot.answer(&mut late, until, at(1_700));
            slot.learn_answer(&mut late, outcome, at(1_700));
            slot.record_latency(&late, &policy());
            let found = (slot.count(Count::Slow), slot.count(Count::Answers));
            assert_eq!(found, (slow, 0), "{outcome:?}, until {until}");
            let unanswered = slot.count(Count::UnansweredMicros);
            assert_eq!(unanswered, 0, "{outcome:?}, until {until}");
        }
    }
}

#[test]
fn a_probe_succeeds_with_its_headers() {
    let mut slot = open_slot();
    let mut probe = slot.admit(Purpose::Probe, false, at(10));
    answer(&mut slot, &mut probe, SUCCESS, at(30));
    assert_eq!(
        counted(&slot),
        [(Count::Successes, 1), (Count::ProbeSuccesses, 1)]
    );
    assert!(matches!(slot.gate.state(), BreakerState::Ramp { .. }));
    assert!(slot.write_off, "what hangs since before is written off");
    assert_eq!(slot.count(Count::Answers), 1, "its latency is the first");
    // The fate of its body says nothing about the upstream later.
    for outcome in [SUCCESS, BROKEN] {
        assert_eq!(slot.learn_end(&probe, outcome, &policy(), at(50)), None);
    }
    assert_eq!(
        counted(&slot),
        [(Count::Successes, 1), (Count::ProbeSuccesses, 1)]
    );
}

#[test]
fn an_upgrade_counts_at_once_and_its_end_says_nothing() {
    for end_of_it in [NEUTRAL, SUCCESS, BROKEN, LATE, GONE] {
        let mut slot = slot();
        let mut permit = slot.admit(Purpose::Normal, true, at(0));
        answer(&mut slot, &mut permit, SUCCESS, at(20));
        slot.learn_upgrade(&mut permit);
        assert_eq!(counted(&slot), [(Count::Successes, 1)]);
        assert_eq!(end(&mut slot, &permit, end_of_it, at(600_000)), None);
        assert_eq!(counted(&slot), [(Count::Successes, 1)], "{end_of_it:?}");
        assert_eq!(slot.last_response, at(20), "{end_of_it:?}");
        assert!(slot.is_idle());
    }
}

#[test]
fn a_probe_that_becomes_a_websocket_does_not_wait_for_its_end() {
    let mut slot = open_slot();
    let mut probe = slot.admit(Purpose::Probe, true, at(10));
    answer(&mut slot, &mut probe, SUCCESS, at(30));
    slot.learn_upgrade(&mut probe);
    let heard = [(Count::Successes, 1), (Count::ProbeSuccesses, 1)];
    assert_eq!(counted(&slot), heard);
    end(&mut slot, &probe, BROKEN, at(600_000));
    assert_eq!(counted(&slot), heard);
}

#[test]
fn a_probe_is_judged_by_what_its_outcome_says_about_the_upstream() {
    let patience = 400;
    let table: [Probe; 8] = [
        // A client error is an answer.
        (
            Some(NEUTRAL),
            false,
            NEUTRAL,
            20,
            &[Count::Ignored, Count::ProbeSuccesses],
        ),
        // Envoy's own reply, and no word of the upstream.
        (None, false, NEUTRAL, 20, &[Count::Ignored]),
        (
            None,
            false,
            BROKEN,
            20,
            &[Count::Failures, Count::ProbeFailures],
        ),
        (
            None,
            false,
            LATE,
            patience,
            &[Count::Failures, Count::ProbeFailures],
        ),
        (
            None,
            false,
            BUSY,
            20,
            &[Count::Overloads, Count::ProbeSuccesses],
        ),
        (None, false, GONE, 20, &[Count::Cancelled]),
        (
            None,
            false,
            GONE,
            patience,
            &[Count::Cancelled, Count::ProbeFailures],
        ),
        // The upstream never had all of it.
        (None, true, GONE, patience, &[Count::Cancelled]),
    ];
    for (headers, has_body, at_end, after, expected) in table {
        let mut slot = open_slot();
        let mut probe = slot.admit(Purpose::Probe, has_body, at(0));
        if let Some(outcome) = headers {
            answer(&mut slot, &mut probe, outcome, at(10));
        }
        end(&mut slot, &probe, at_end, at(after));
        let names: Vec<Count> = counted(&slot).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, expected, "{headers:?}, {at_end:?} after {after} ms");
    }
}

/// How far a request got before its caller left.
#[derive(Clone, Copy, Debug)]
enum Got {
    Uploading,
    Waiting,
    Answering,
    Open,
}

#[test]
fn a_departure_counts_against_the_upstream_only_while_latency_runs() {
    let late = u64::try_from(TARGET.as_millis()).unwrap() + 1;
    // Slow ones, and callers that gave up.
    let table = [
        (Got::Uploading, late, (0, 0)),
        (Got::Waiting, 20, (0, 0)),
        (Got::Waiting, late, (1, 1)),
        (Got::Answering, 20, (0, 0)),
        (Got::Answering, late, (1, 0)),
        (Got::Open, late, (0, 0)),
    ];
    for (got, after, expected) in table {
        let mut slot = slot();
        let has_body = matches!(got, Got::Uploading);
        let mut permit = slot.admit(Purpose::Normal, has_body, at(0));
        match got {
            Got::Uploading | Got::Waiting => {}
            Got::Answering => {
                let _ = slot.answer(&mut permit, Until::End, at(10));
            }
            Got::Open => {
                let _ = slot.answer(&mut permit, Until::Headers, at(10));
            }
        }
        assert_eq!(end(&mut slot, &permit, GONE, at(after)), None);
        let given_up = slot.given_up.since(Duration::from_secs(1), at(after));
        let found = (slot.count(Count::Slow), given_up);
        assert_eq!(found, expected, "{got:?} after {after} ms");
        assert_eq!(counted(&slot), [(Count::Cancelled, 1)], "{got:?}");
    }
}

/// Plays requests one after the other until one trips, at most `requests` of them.
fn trips_within(requests: u32, has_body: bool, outcome: Outcome) -> bool {
    let mut slot = slot();
    (0..requests).any(|number| {
        let now = at(u64::from(number) * 10);
        let permit = slot.admit(Purpose::Normal, has_body, now);
        end(&mut slot, &permit, outcome, now + Duration::from_secs(5)).is_some()
    })
}

#[test]
fn a_stalled_upload_trips_nothing_however_it_ends() {
    assert!(trips_within(200, false, LATE));
    assert!(!trips_within(200, true, LATE), "the caller took the time");
    assert!(!trips_within(200, true, GONE));
    assert!(!trips_within(200, true, NEUTRAL));
    // A connection that breaks is the upstream's, also before it has all of the request.
    assert!(trips_within(200, true, BROKEN));
}

#[test]
fn a_stalled_upload_that_a_timeout_ends_is_a_departure() {
    let mut slot = slot();
    let permit = slot.admit(Purpose::Normal, true, at(0));
    assert_eq!(slot.take_unloading(at(2_000)), 1);
    assert_eq!(end(&mut slot, &permit, LATE, at(15_000)), None);
    assert_eq!(counted(&slot), [(Count::Cancelled, 1)]);
    assert_eq!(slot.count(Count::Slow), 0);
    assert!(slot.is_idle());
}

#[test]
fn outcomes_of_an_earlier_epoch_are_stale_unless_they_were_counted_in_it() {
    let table: [Exchange; 4] = [
        (Some(SUCCESS), BROKEN, &[(Count::Successes, 1)]),
        (Some(SUCCESS), SUCCESS, &[(Count::Successes, 1)]),
        (Some(NEUTRAL), BROKEN, &[(Count::Stale, 1)]),
        (None, BROKEN, &[(Count::Stale, 1)]),
    ];
    for (headers, at_end, expected) in table {
        let mut slot = slot();
        let mut permit = slot.admit(Purpose::Normal, false, at(0));
        if let Some(outcome) = headers {
            answer(&mut slot, &mut permit, outcome, at(20));
        }
        slot.gate.adopt(BreakerState::Closed, 5, at(30));
        assert_eq!(end(&mut slot, &permit, at_end, at(40)), None);
        assert_eq!(counted(&slot), expected, "{headers:?}, {at_end:?}");
    }
}

#[test]
fn headers_after_the_epoch_are_stale_at_the_end() {
    let mut slot = slot();
    let mut permit = slot.admit(Purpose::Normal, false, at(0));
    slot.gate.adopt(BreakerState::Closed, 5, at(10));
    answer(&mut slot, &mut permit, SUCCESS, at(20));
    end(&mut slot, &permit, SUCCESS, at(40));
    assert_eq!(counted(&slot), [(Count::Stale, 1)]);
    assert_eq!(slot.count(Count::Answers), 0);
}

/// What the headers say, and whether the answer shows that the upstream is alive.
#[test]
fn stale_answers_that_are_no_failures_are_counted_with_their_wait() {
    for (headers, answers) in [(SUCCESS, 1), (NEUTRAL, 1), (BROKEN, 0), (BUSY, 0)] {
        let mut slot = slot();
        let mut permit = slot.admit(Purpose::Normal, false, at(0));
        slot.gate.adopt(BreakerState::Closed, 5, at(10));
        answer(&mut slot, &mut permit, headers, at(2_000));
        assert_eq!(slot.count(Count::StaleAnswers), answers, "{headers:?}");
        assert_eq!(slot.count(Count::StaleMicros), answers * 2_000_000);
    }
}

#[test]
fn a_health_check_is_never_judged() {
    for outcome in [SUCCESS, NEUTRAL, BROKEN, BUSY, GONE] {
        let mut slot = slot();
        let mut permit = slot.admit(Purpose::Exempt, false, at(0));
        answer(&mut slot, &mut permit, outcome, at(400));
        end(&mut slot, &permit, outcome, at(500));
        assert_eq!(counted(&slot), [], "{outcome:?}");
        assert_eq!(slot.count(Count::Answers), 0, "{outcome:?}");
    }
}

#[test]
fn a_deadline_shorter_than_usual_answers_is_the_callers_fault() {
    for (usual, age_ms, expected) in [
        (0.05, 20, Count::Cancelled),
        (0.05, 60, Count::Failures),
        (0.0, 20, Count::Failures),
    ] {
        let mut slot = slot();
        slot.learned.limit.floor.mean = Seconds::new(usual);
        let permit = slot.admit(Purpose::Normal, false, at(0));
        end(&mut slot, &permit, LATE, at(age_ms));
        assert_eq!(counted(&slot), [(expected, 1)], "{usual} {age_ms}");
    }
}
