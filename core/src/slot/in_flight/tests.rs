//! Tables of how each step of a request's life changes the counts.

use super::*;
use crate::config::{Config, RuleIndex};
use crate::exchange::Directive;
use crate::slot::testing::{WEB, at, policy, slot};
use crate::units::Seconds;

/// A step in the life of a request.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Its body is complete.
    Start,
    /// The response headers come.
    AnswerClass,
    /// The moment that the objective measures.
    Measure,
    /// A tick after this many milliseconds.
    TickAfter(u64),
    /// The breaker lets go, and a tick comes after this many milliseconds.
    WriteOffAfter(u64),
    Leave,
}
use Step::{AnswerClass, Leave, Measure, Start, TickAfter, WriteOffAfter};

/// What is counted: uploads, requests in flight, open requests.
type Counted = [u32; 3];
const UPLOADING: Counted = [1, 0, 0];
const IN_FLIGHT: Counted = [0, 1, 0];
const OPEN: Counted = [0, 0, 1];
const GONE: Counted = [0, 0, 0];

/// A request at its admission, and how each step changes the proxy-wide count and the counts here.
struct Life {
    name: &'static str,
    until: Until,
    has_body: bool,
    steps: &'static [(Step, Shift, Counted)],
    /// From the complete request to the moment measured, milliseconds.
    latency: Option<u64>,
}

/// The time of a step, milliseconds.
const STEP: u64 = 10;

/// Lives, each for itself.
const LIVES: &[Life] = &[
    Life {
        name: "measured to its headers",
        until: Until::Headers,
        has_body: false,
        steps: &[
            (AnswerClass, Shift::Lower, OPEN),
            (Measure, Shift::Same, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: Some(STEP),
    },
    Life {
        name: "measured to its first byte",
        until: Until::FirstByte,
        has_body: false,
        steps: &[
            (AnswerClass, Shift::Same, IN_FLIGHT),
            (Measure, Shift::Lower, OPEN),
            (Measure, Shift::Same, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: Some(2 * STEP),
    },
    Life {
        name: "measured to its end",
        until: Until::End,
        has_body: false,
        steps: &[
            (AnswerClass, Shift::Same, IN_FLIGHT),
            (AnswerClass, Shift::Same, IN_FLIGHT),
            (Measure, Shift::Lower, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: Some(3 * STEP),
    },
    Life {
        name: "no answer comes",
        until: Until::Headers,
        has_body: false,
        steps: &[
            (TickAfter(60_000), Shift::Same, IN_FLIGHT),
            (Leave, Shift::Lower, GONE),
        ],
        latency: None,
    },
    Life {
        name: "it breaks off before what is measured",
        until: Until::End,
        has_body: false,
        steps: &[
            (AnswerClass, Shift::Same, IN_FLIGHT),
            (Leave, Shift::Lower, GONE),
        ],
        latency: None,
    },
    Life {
        name: "an upload: the clock starts at its end",
        until: Until::Headers,
        has_body: true,
        steps: &[
            (TickAfter(100), Shift::Same, UPLOADING),
            (Start, Shift::Same, IN_FLIGHT),
            (Start, Shift::Same, IN_FLIGHT),
            (AnswerClass, Shift::Lower, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: Some(2 * STEP),
    },
    Life {
        name: "an upload that took longer than answers may comes back",
        until: Until::Headers,
        has_body: true,
        steps: &[
            (TickAfter(2_000), Shift::Lower, OPEN),
            (TickAfter(2_000), Shift::Same, OPEN),
            (Start, Shift::Raise, IN_FLIGHT),
            (AnswerClass, Shift::Lower, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: Some(STEP),
    },
    Life {
        name: "an upload that never ends",
        until: Until::Headers,
        has_body: true,
        steps: &[
            (TickAfter(2_000), Shift::Lower, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: None,
    },
    Life {
        name: "an upload whose caller leaves",
        until: Until::Headers,
        has_body: true,
        steps: &[(Leave, Shift::Lower, GONE)],
        latency: None,
    },
    Life {
        name: "answered before its body is complete: nothing to measure",
        until: Until::Headers,
        has_body: true,
        steps: &[
            (AnswerClass, Shift::Lower, OPEN),
            (Start, Shift::Same, OPEN),
            (Measure, Shift::Same, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: None,
    },
    Life {
        name: "the same, whatever is measured",
        until: Until::End,
        has_body: true,
        steps: &[
            (AnswerClass, Shift::Lower, OPEN),
            (Start, Shift::Same, OPEN),
            (Measure, Shift::Same, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: None,
    },
    Life {
        name: "a stalled upload that is answered",
        until: Until::FirstByte,
        has_body: true,
        steps: &[
            (TickAfter(2_000), Shift::Lower, OPEN),
            (AnswerClass, Shift::Same, OPEN),
            (Start, Shift::Same, OPEN),
            (Measure, Shift::Same, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: None,
    },
    Life {
        name: "written off, and answered after all: it stood in no queue",
        until: Until::Headers,
        has_body: false,
        steps: &[
            (WriteOffAfter(1_000), Shift::Lower, OPEN),
            (AnswerClass, Shift::Same, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: None,
    },
    Life {
        name: "the same where its end is measured",
        until: Until::End,
        has_body: false,
        steps: &[
            (WriteOffAfter(1_000), Shift::Lower, OPEN),
            (AnswerClass, Shift::Same, OPEN),
            (Measure, Shift::Same, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: None,
    },
    Life {
        name: "written off, and its caller leaves",
        until: Until::Headers,
        has_body: false,
        steps: &[
            (WriteOffAfter(1_000), Shift::Lower, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: None,
    },
    Life {
        name: "too young to be written off",
        until: Until::Headers,
        has_body: false,
        steps: &[
            (WriteOffAfter(100), Shift::Same, IN_FLIGHT),
            (Leave, Shift::Lower, GONE),
        ],
        latency: None,
    },
    Life {
        name: "an upload is not written off",
        until: Until::Headers,
        has_body: true,
        steps: &[
            (TickAfter(200), Shift::Same, UPLOADING),
            (WriteOffAfter(20), Shift::Same, UPLOADING),
            (Leave, Shift::Lower, GONE),
        ],
        latency: None,
    },
    Life {
        name: "a body that goes on for long is a stream",
        until: Until::End,
        has_body: false,
        steps: &[
            (AnswerClass, Shift::Same, IN_FLIGHT),
            (TickAfter(4_900), Shift::Same, IN_FLIGHT),
            (TickAfter(3_000), Shift::Lower, OPEN),
            (Measure, Shift::Same, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: None,
    },
    Life {
        name: "the same without a first byte",
        until: Until::FirstByte,
        has_body: false,
        steps: &[
            (AnswerClass, Shift::Same, IN_FLIGHT),
            (TickAfter(8_000), Shift::Lower, OPEN),
            (Measure, Shift::Same, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: None,
    },
    Life {
        name: "the first WebSocket, whose request has no end",
        until: Until::Headers,
        has_body: true,
        steps: &[
            (AnswerClass, Shift::Lower, OPEN),
            (Measure, Shift::Same, OPEN),
            (TickAfter(60_000), Shift::Same, OPEN),
            (Leave, Shift::Same, GONE),
        ],
        latency: None,
    },
];

#[test]
fn each_step_counts_a_request_where_it_belongs() {
    for life in LIVES {
        let (mut slot, mut millis) = (slot(), 1_000);
        let entry = AdmittedRequest {
            load: 1,
            purpose: Purpose::Normal,
            explored: None,
            has_body: life.has_body,
        };
        let mut permit = slot.enter(WEB, entry, at(millis));
        // Counted at its admission.
        let mut gauge = 1_i64;
        for (number, (step, expected, counted)) in life.steps.iter().enumerate() {
            let name = format!("{}: step {number}, {step:?}", life.name);
            millis += match step {
                TickAfter(span) | WriteOffAfter(span) => *span,
                Start | AnswerClass | Measure | Leave => STEP,
            };
            let now = at(millis);
            let shift = match step {
                Start => slot.start(&mut permit, now),
                AnswerClass => slot.answer(&mut permit, life.until, now),
                Measure => slot.measure(&mut permit, now),
                Leave => slot.leave(&permit, now),
                TickAfter(_) | WriteOffAfter(_) => {
                    slot.write_off = matches!(step, WriteOffAfter(_));
                    match slot.take_unloading(now) {
                        0 => Shift::Same,
                        1 => Shift::Lower,
                        taken => panic!("{name}: took {taken}"),
                    }
                }
            };
            assert_eq!(shift, *expected, "{name}");
            assert_eq!(
                [slot.uploading, slot.in_flight, slot.open],
                *counted,
                "{name}"
            );
            gauge += match shift {
                Shift::Same => 0,
                Shift::Raise => 1,
                Shift::Lower => -1,
            };
            assert_eq!(gauge, i64::from(slot.held()), "{name}");
        }
        assert!(slot.is_idle(), "{}", life.name);
        let expected = life.latency.map(Duration::from_millis);
        assert_eq!(permit.latency.sample(), expected, "{}", life.name);
    }
}

#[test]
fn only_what_is_in_flight_adds_to_the_time_in_flight() {
    let mut slot = slot();
    let mut permit = slot.admit(Purpose::Normal, true, at(0));
    let micros = |slot: &mut Slot, millis| {
        slot.integrate(at(millis));
        slot.count(Count::InFlightMicros)
    };
    assert_eq!(micros(&mut slot, 200), 0, "the upload is its caller's time");
    let _ = slot.start(&mut permit, at(200));
    assert_eq!(micros(&mut slot, 250), 50_000);
    let _ = slot.answer(&mut permit, Until::End, at(300));
    assert_eq!(micros(&mut slot, 350), 150_000);
    let _ = slot.measure(&mut permit, at(400));
    assert_eq!(
        micros(&mut slot, 900),
        200_000,
        "an open request is no load"
    );
    let _ = slot.leave(&permit, at(900));
    assert_eq!(micros(&mut slot, 1_000), 200_000);
}

/// What happens to a request before it leaves.
type Steps = fn(&mut Slot, &mut Permit);

/// What happened to a request that leaves after 4 s, and the milliseconds in flight that count as those of one without an answer.
#[test]
fn the_time_in_flight_of_a_request_without_an_answer_is_counted() {
    let none: Steps = |_, _| {};
    let answered: Steps = |slot, permit| {
        let _ = slot.answer(permit, Until::End, at(100));
    };
    let measured: Steps = |slot, permit| {
        let _ = slot.answer(permit, Until::Headers, at(100));
    };
    let written_off: Steps = |slot, _| {
        slot.write_off = true;
        let _ = slot.take_unloading(at(3_000));
    };
    let table: [(&str, bool, Steps, u64); 5] = [
        ("its caller left", false, none, 4_000),
        ("its caller left during the upload", true, none, 0),
        ("it broke off before its end", false, answered, 4_000),
        ("it was measured", false, measured, 0),
        ("it was taken out of the count", false, written_off, 0),
    ];
    for (name, has_body, steps, expected) in table {
        let mut slot = slot();
        let mut permit = slot.admit(Purpose::Normal, has_body, at(0));
        steps(&mut slot, &mut permit);
        let _ = slot.leave(&permit, at(4_000));
        let found = slot.count(Count::UnansweredMicros);
        assert_eq!(found, expected * 1_000, "{name}");
    }
}

/// What happens to a request, and for how many milliseconds it was in flight without a latency.
#[test]
fn the_time_of_requests_that_stop_counting_is_kept_for_the_limit() {
    type Steps = fn(&mut Slot, &mut Permit);
    let overtaken: Steps = |slot, _| {
        let mut later = slot.admit(Purpose::Normal, false, at(600));
        let _ = slot.answer(&mut later, Until::Headers, at(700));
        let _ = slot.leave(&later, at(700));
        let _ = slot.take_unloading(at(700));
    };
    let stream: Steps = |slot, permit| {
        let _ = slot.answer(permit, Until::End, at(100));
        let _ = slot.take_unloading(at(7_000));
    };
    let measured: Steps = |slot, permit| {
        let _ = slot.answer(permit, Until::Headers, at(100));
        let _ = slot.take_unloading(at(7_000));
    };
    let written_off: Steps = |slot, _| {
        slot.write_off = true;
        let _ = slot.take_unloading(at(3_000));
    };
    let table: [(&str, Steps, u64); 4] = [
        ("a later one overtook it", overtaken, 600),
        ("its body goes on", stream, 5_000),
        ("it was measured", measured, 0),
        ("it hung before the breaker opened", written_off, 0),
    ];
    for (name, steps, expected) in table {
        let mut slot = slot();
        let mut permit = slot.admit(Purpose::Normal, false, at(0));
        steps(&mut slot, &mut permit);
        let found = slot.count(Count::UnmeasuredMicros);
        assert_eq!(found, expected * 1_000, "{name}");
    }
}

/// Each request leaves the ledger for itself, not in the place of another.
#[test]
fn of_two_uploads_the_younger_keeps_its_place() {
    let mut slot = slot();
    let mut stalled = slot.admit(Purpose::Normal, true, at(0));
    let mut young = slot.admit(Purpose::Normal, true, at(2_000));
    assert_eq!(slot.take_unloading(at(2_010)), 1);
    assert_eq!((slot.uploading, slot.open), (1, 1));
    assert_eq!(slot.start(&mut young, at(2_020)), Shift::Same);
    assert_eq!(slot.start(&mut stalled, at(2_030)), Shift::Raise);
    assert_eq!((slot.uploading, slot.in_flight, slot.open), (0, 2, 0));
    assert_eq!(slot.leave(&stalled, at(2_040)), Shift::Lower);
    assert_eq!(slot.leave(&young, at(2_040)), Shift::Lower);
    assert!(slot.is_idle());
}

/// The same result for another reason: a later request is answered.
#[test]
fn a_request_that_a_later_one_overtook_is_open() {
    for until in Until::ALL {
        let mut slot = slot();
        slot.follow_policy(&policy(), at(0));
        let mut late = slot.admit(Purpose::Normal, false, at(0));
        let mut later = slot.admit(Purpose::Normal, false, at(1_500));
        let _ = slot.answer(&mut later, until, at(1_510));
        let _ = slot.measure(&mut later, at(1_510));
        assert_eq!(slot.take_unloading(at(1_600)), 1, "{until}");
        assert_eq!((slot.in_flight, slot.open), (0, 2), "{until}");
        let _ = slot.answer(&mut late, until, at(1_700));
        let _ = slot.measure(&mut late, at(1_700));
        let waited = Duration::from_millis(1_700);
        let expected = Latency::Uncounted(waited);
        assert_eq!(late.latency, expected, "{until}: it stood in no queue");
        let _ = slot.leave(&late, at(1_700));
        let _ = slot.leave(&later, at(1_700));
        assert!(slot.is_idle(), "{until}");
    }
}

/// The latest admission that any worker saw answered, and how many of the requests of 0 and 500 ms are overtaken at 1,300 ms.
#[test]
fn an_answer_that_another_worker_saw_overtakes_too() {
    for (answered, expected) in [(0, 0), (200, 1), (600, 2), (1_200, 2), (1_301, 0)] {
        let mut slot = slot();
        slot.follow_policy(&policy(), at(0));
        let waiting = [0, 500].map(|admitted| slot.admit(Purpose::Normal, false, at(admitted)));
        let directive = Directive {
            answered_up_to: at(answered),
            ..slot.directive()
        };
        slot.adopt(&directive, &policy(), at(1_300));
        assert_eq!(slot.take_unloading(at(1_300)), expected, "{answered}");
        for permit in waiting {
            let _ = slot.leave(&permit, at(1_300));
        }
        assert!(slot.is_idle(), "{answered}");
    }
}

/// Requests that are admitted with the one that is answered, to the precision of the ledger, are no hang when no more come.
#[test]
fn an_answer_overtakes_the_requests_that_were_admitted_with_it() {
    let mut slot = slot();
    slot.follow_policy(&policy(), at(0));
    let slow = [1_000, 1_001].map(|ms| slot.admit(Purpose::Normal, false, at(ms)));
    let mut fast = slot.admit(Purpose::Normal, false, at(1_002));
    let _ = slot.answer(&mut fast, Until::Headers, at(1_010));
    assert_eq!(slot.take_unloading(at(1_800)), 2);
    assert_eq!((slot.in_flight, slot.open), (0, 3));
    for permit in slow.iter().chain([&fast]) {
        let _ = slot.leave(permit, at(4_000));
    }
    assert!(slot.is_idle());
}

/// The mean latency without a queue in seconds, the latest admission that was answered, and how many of the requests of 0, 2 and 5 s leave the
/// count at 7 s when the breaker lets go. In a queue a request may wait for sixteen.
#[test]
fn requests_from_before_one_that_was_answered_hang_after_some_latencies() {
    let text = r#"{"slo":{"latency":{"quantile":0.99,"target":"8s"}}}"#;
    let config = Config::from_json(text.as_bytes()).unwrap();
    let policy = config.policy(RuleIndex::TopLevel);
    for (mean, answered, expected) in [
        (0.1, 6_000, 3),
        (0.1, 3_000, 2),
        (0.1, 0, 0),
        (0.1, 8_000, 0),
        (0.6, 6_000, 2),
        (0.9, 6_000, 1),
        (1.5, 6_000, 0),
        (0.0, 6_000, 0),
    ] {
        let mut slot = slot();
        let mut directive = slot.directive();
        directive.learned.limit.floor.mean = Seconds::new(mean);
        slot.adopt(&directive, policy, at(0));
        let waiting = [0, 2_000, 5_000].map(|ms| slot.admit(Purpose::Normal, false, at(ms)));
        slot.answered_up_to = at(answered);
        slot.write_off = true;
        let taken = slot.take_unloading(at(7_000));
        assert_eq!(taken, expected, "{mean} {answered}");
        for permit in waiting {
            let _ = slot.leave(&permit, at(7_000));
        }
        assert!(slot.is_idle(), "{mean} {answered}");
    }
}

/// An upload was admitted before the waiting requests, whenever it is answered.
#[test]
fn an_answered_upload_overtakes_no_later_request() {
    let mut slot = slot();
    let mut upload = slot.admit(Purpose::Normal, true, at(0));
    let waiting = slot.admit(Purpose::Normal, false, at(1_000));
    let _ = slot.answer(&mut upload, Until::Headers, at(5_000));
    assert_eq!(slot.take_unloading(at(5_000)), 0);
    assert_eq!(slot.in_flight, 1);
    let _ = slot.leave(&upload, at(5_000));
    let _ = slot.leave(&waiting, at(5_000));
    assert!(slot.is_idle());
}
