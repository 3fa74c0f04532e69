//! What the limiter learns from windows: the floor, a queue, and what looks like one.

use crate::limit::testing::{Rig, assert_close, floor, queue, window};
use crate::limit::{LEAST_USED, LimitCheckpoint, LimitReason, LimiterState};
use crate::sample::Sample;
use crate::tally::Count;
use crate::units::{PerSecond, Requests};

/// A queue of 40 stands before an upstream that was seen to give 200 a second, 50 ms each.
fn held_at_40() -> Rig {
    Rig::resume(&LimitCheckpoint {
        floor: floor(0.05, 0.05),
        capacity: PerSecond::new(200.0),
        hold: Some(Requests::new(40.0)),
        ..LimitCheckpoint::default()
    })
}

/// Windows of an upstream under more demand than the limit, with as many in flight as the limit; `answers` gives the
/// answers a second at a limit.
fn saturate(rig: &mut Rig, windows: u32, answers: impl Fn(u64) -> u64) {
    for _ in 0..windows {
        let limit = u64::from(rig.limit());
        let answers = answers(limit);
        let sample = window(1_000, answers, limit * 1_000 / answers);
        rig.rounds(1, &sample.holding(limit).refusing(50));
    }
}

#[test]
fn a_slower_service_is_believed_if_that_is_harmless() {
    let mut rig = held_at_40();
    saturate(&mut rig, 20, |limit| limit * 1_000 / 150);
    let mean = rig.limiter.floor.mean;
    assert!((mean - 0.15).abs() < 0.01, "{mean}");
    assert!(rig.limit() >= 38, "{}", rig.limit());
}

/// The latency of a queue that refuses nothing for ten seconds, milliseconds, and the mean that is then the floor's. The objective is 300 ms.
#[test]
fn silence_teaches_a_slower_service_only_where_its_latency_does_no_harm() {
    for (latency, expected) in [(200, 0.2), (250, 0.1)] {
        let mut rig = Rig::calm();
        rig.rounds(100, &window(100, 10, latency).holding(20));
        let mean = rig.limiter.floor.mean;
        assert!((mean - expected).abs() < 0.02, "{latency} ms: {mean}");
    }
}

#[test]
fn a_slower_service_that_could_cost_the_objective_is_believed_after_three_trials() {
    let mut rig = held_at_40();
    saturate(&mut rig, 6, |limit| limit * 4);
    assert_close(rig.limiter.floor.mean, 0.05, "not at once");
    saturate(&mut rig, 40, |limit| limit * 4);
    let mean = rig.limiter.floor.mean;
    assert!((mean - 0.25).abs() < 0.02, "{mean}");
}

#[test]
fn a_queue_is_cut_to_what_keeps_the_upstream_busy_and_never_becomes_normal() {
    let mut rig = held_at_40();
    saturate(&mut rig, 60, |_| 200);
    assert_close(rig.limiter.floor.mean, 0.05, "the floor");
    let limit = rig.limit();
    assert!((10..=20).contains(&limit), "{limit}");
    assert!(rig.limiter.is_congested());
}

#[test]
fn a_queue_from_the_first_answer_on_is_cut_until_the_objective_is_met() {
    let mut rig = Rig::new();
    // 50 a second of 100 ms each, with the initial limit of 20 full from the start.
    saturate(&mut rig, 2, |_| 50);
    assert!(rig.limiter.floor.mean > 0.35 && rig.is_in_doubt());
    saturate(&mut rig, 30, |limit| (limit * 10).min(50));
    let tail = rig.limiter.latest.tail.get();
    assert!(tail < 0.285, "{tail}");
}

#[test]
fn a_slow_service_without_a_queue_is_held_only_until_the_first_trial() {
    let mut rig = Rig::new();
    // 250 ms each, however many are in flight.
    saturate(&mut rig, 1, |limit| limit * 4);
    assert!(rig.is_in_doubt(), "more than 70 % of the objective");
    let mut held = 0;
    for _ in 0..12 {
        saturate(&mut rig, 1, |limit| limit * 4);
        held += u32::from(rig.limiter.is_congested());
    }
    assert!((1..=4).contains(&held), "{held} s");
    assert!(!rig.is_in_doubt() && !rig.limiter.is_congested());
    assert!(!rig.limiter.has_held, "no queue has shown the capacity");
    assert!(rig.limit() > 100, "{}", rig.limit());
}

#[test]
fn a_trial_removes_the_queue_from_a_floor_in_doubt() {
    let mut rig = Rig::new();
    for _ in 0..12 {
        // 100 a second whatever is in flight; one in five takes twice as long, so that the tail is never harmless.
        let limit = u64::from(rig.limit());
        let ms = limit * 10 * 5 / 6;
        let mut sample = window(1_000, 80, ms);
        sample.extend(&window(1, 20, ms * 2));
        sample.span = window(1_000, 0, 0).span;
        rig.rounds(1, &sample.holding(limit).refusing(50));
    }
    let mean = rig.limiter.floor.mean;
    assert!(!rig.is_in_doubt() && mean <= 0.21, "{mean}");
}

#[test]
fn nothing_is_learned_from_a_queue_and_the_floor_falls_with_faster_answers() {
    let mut rig = Rig::calm();
    rig.rounds(5, &queue());
    assert_close(rig.limiter.floor.mean, 0.1, "a queue");
    rig.rounds(30, &window(100, 10, 20).refusing(5));
    assert!(rig.limiter.is_congested(), "requests are still refused");
    assert!(rig.limiter.floor.low < 0.03 && rig.limiter.floor.mean < 0.1);
}

#[test]
fn a_queue_without_refusals_for_two_seconds_becomes_normal() {
    let mut rig = Rig::calm();
    rig.rounds(20, &window(100, 10, 200));
    assert_close(rig.limiter.floor.mean, 0.1, "not yet");
    rig.rounds(60, &window(100, 10, 200));
    assert!(rig.limiter.floor.mean > 0.12);
    assert!(!rig.limiter.is_congested());
}

#[test]
fn an_idle_upstream_has_no_queue() {
    let mut rig = Rig::calm();
    rig.rounds(2, &queue());
    // A second without an answer and nothing in flight.
    rig.rounds(10, &window(100, 0, 0));
    rig.rounds(2, &queue());
    assert!(!rig.limiter.is_congested(), "the queue began anew");
    rig.rounds(1, &queue());
    assert!(rig.limiter.is_congested());
}

#[test]
fn a_hang_does_not_end_a_queue() {
    let mut rig = Rig::calm();
    rig.rounds(2, &queue());
    rig.rounds(10, &window(100, 0, 0).holding(20));
    rig.rounds(1, &queue());
    assert!(rig.limiter.is_congested());
}

/// First answers that come while requests are refused: latency, refused of ten more, in flight, whether the floor is in doubt
/// after half a second, and whether the limiter then holds.
#[test]
fn a_floor_in_doubt_holds_while_many_are_refused_unless_there_is_room() {
    for (name, ms, refused, in_flight, doubted, held) in [
        ("nothing refused", 280, 0, 80, true, false),
        ("many refused", 280, 5, 200, true, true),
        ("few refused", 280, 1, 80, true, false),
        ("many, with room", 280, 5, 10, true, false),
        ("many, far within the objective", 100, 5, 80, false, false),
    ] {
        let mut rig = Rig::new();
        let first = window(100, 10, ms);
        let sample = first.clone().holding(in_flight).refusing(refused);
        rig.limits();
        rig.rounds(1, &first);
        rig.rounds(3, &sample);
        assert!(!rig.limiter.is_congested(), "{name}: not at once");
        rig.rounds(1, &sample);
        assert_eq!(rig.is_in_doubt(), doubted, "{name}");
        assert_eq!(rig.limiter.is_congested(), held, "{name}");
    }
}

/// The seconds in which a request is refused (`x`), and whether the floor is in doubt after them.
#[test]
fn a_floor_is_trusted_after_five_seconds_without_a_refusal() {
    for (seconds, doubted) in [
        ("....", true),
        (".....", false),
        ("xx....", true),
        ("xx.....", false),
        ("...x...", true),
        ("....x...", false),
        ("..x..x..x..x..x..x", true),
        ("...x...x...x...x..", false),
    ] {
        let mut rig = Rig::new();
        for second in seconds.chars() {
            let refused = u64::from(second == 'x');
            rig.rounds(1, &window(1_000, 20, 280).refusing(refused));
        }
        assert_eq!(rig.is_in_doubt(), doubted, "{seconds}");
    }
}

#[test]
fn a_test_that_finds_a_queue_corrects_a_floor_that_was_trusted() {
    let mut rig = Rig::new();
    rig.rounds(6, &window(1_000, 20, 280));
    assert!(!rig.is_in_doubt());
    let slo = rig.policy.slo().clone();
    for (ms, expected) in [(250, 0.28), (100, 0.1)] {
        rig.limiter.unlearn_queue(&window(1_000, 100, ms), &slo);
        assert_close(rig.limiter.floor.mean, expected, "the floor");
    }
}

/// Answers of 280 ms came first: the latency of the next ones, and the mean that is believed then.
#[test]
fn a_window_without_its_queue_replaces_a_floor_in_doubt() {
    for (ms, expected) in [(240, 0.28), (150, 0.15)] {
        let mut rig = Rig::new();
        rig.rounds(1, &window(1_000, 200, 280));
        rig.rounds(1, &window(100, 10, ms));
        let mean = rig.limiter.floor.mean;
        assert!((mean - expected).abs() < 0.01, "{ms}: {mean}");
    }
}

#[test]
fn late_answers_shorten_the_wait_of_bursts_unless_the_objective_is_unreachable() {
    let mut rig = Rig::calm();
    rig.rounds(60, &window(100, 10, 400));
    let gain = rig.limiter.burst_feedback.gain();
    assert!(gain <= 1.0, "{gain}");
    let mut unreachable = Rig::new();
    unreachable.rounds(100, &window(100, 10, 500));
    assert_close(unreachable.limiter.burst_feedback.gain(), 1.0, "as ever");
}

#[test]
fn the_published_latency_is_the_present_one() {
    let mut rig = Rig::calm();
    rig.rounds(1, &queue());
    let latest = rig.limiter.latest;
    assert!(latest.low.get() > 0.3 && latest.tail.get() > 0.3);
    assert!(rig.limiter.floor.tail < 0.15);
}

/// The latency of answers in milliseconds however many are in flight, and the limit at which the floor is tested first.
#[test]
fn a_floor_in_doubt_is_tested_where_answers_are_not_too_rare() {
    for (millis, expected) in [(1_000, 8), (2_000, 16)] {
        let mut rig = Rig::new();
        while !rig.limiter.is_congested() {
            assert!(
                rig.limit() < 1_000,
                "{millis}: it is in doubt and never held"
            );
            saturate(&mut rig, 1, |limit| (limit * 1_000 / millis).max(1));
        }
        assert!(rig.is_in_doubt());
        assert_eq!(rig.limit(), expected, "{millis}");
    }
}

/// Two in flight, five seconds each: most seconds have no answer.
#[test]
fn a_window_waits_for_the_answer_of_a_slow_service_but_not_through_a_pause() {
    let mut rig = Rig::resume(&LimitCheckpoint {
        floor: floor(5.0, 5.0),
        capacity: PerSecond::new(0.4),
        ..LimitCheckpoint::default()
    });
    let none = window(1_000, 0, 0).holding(2);
    rig.rounds(4, &none);
    rig.rounds(1, &window(1_000, 2, 5_000).holding(2));
    let found = rig.limiter.capacity();
    assert!((found - 0.4).abs() < 0.05, "{found}");
    rig.rounds(10, &none);
    assert!(rig.limiter.window.is_none(), "longer than two latencies");
}

/// 200 a second of 50 ms before, of 500 ms now: as many answers need ten times as many requests in flight.
#[test]
fn a_service_that_became_too_slow_for_the_objective_gets_what_it_carried() {
    let mut rig = held_at_40();
    saturate(&mut rig, 80, |limit| limit * 2);
    assert!((rig.limiter.floor.mean - 0.5).abs() < 0.05);
    assert!(rig.limit() >= 100, "{}", rig.limit());
}

/// 100 ms before, and this many now, more than the objective: whether the queue is over once the slower service is proven.
#[test]
fn hold_ends_where_a_service_became_many_times_slower_than_its_limit_is_for() {
    for (millis, is_over) in [(350, false), (500, true)] {
        let mut rig = Rig::resume(&LimitCheckpoint {
            floor: floor(0.1, 0.1),
            capacity: PerSecond::new(100.0),
            hold: Some(Requests::new(20.0)),
            ..LimitCheckpoint::default()
        });
        let before = rig.limiter.floor.mean;
        for second in 0.. {
            assert!(second < 60, "{millis}: never proven");
            saturate(&mut rig, 1, |limit| (limit * 1_000 / millis).max(1));
            if rig.limiter.floor.mean > before * 2.0 {
                break;
            }
        }
        assert_eq!(rig.limiter.is_congested(), !is_over, "{millis}");
    }
}

/// One of many proxies: two requests a second of 50 ms, and one of them now and then in flight.
fn one_of_many() -> Rig {
    let mut rig = Rig::resume(&LimitCheckpoint {
        floor: floor(0.05, 0.05),
        capacity: PerSecond::new(2.0),
        ..LimitCheckpoint::default()
    });
    rig.limit();
    rig
}

/// A second with as many answers of so many milliseconds as one request at a time gets, and requests that are refused.
fn second_of(rig: &mut Rig, answers: u64, millis: u64) {
    let mut sample = window(1_000, answers, millis).refusing(1);
    if millis > 300 {
        sample.tally.add(Count::Slow, answers);
    }
    let in_flight = answers * millis * 1_000;
    let counted = sample.tally.get(Count::InFlightMicros);
    sample
        .tally
        .add(Count::InFlightMicros, in_flight.wrapping_sub(counted));
    rig.rounds(1, &sample);
}

#[test]
fn late_requests_of_one_of_many_proxies_show_a_queue_that_is_held_below_one_request() {
    let mut rig = one_of_many();
    for second in 0.. {
        assert!(second < 9, "not held");
        assert_eq!(rig.limiter.pace(rig.policy.slo()), None, "before the beat");
        second_of(&mut rig, 2, 450);
        if rig.limiter.is_congested() {
            break;
        }
    }
    assert!(
        rig.limiter.floor.mean < 0.06,
        "late requests teach no floor"
    );
    assert_eq!(rig.limit(), 1, "a place at times");
    assert_eq!(rig.limiter.reason(), LimitReason::BelowOne);
    let pace = rig.limiter.pace(rig.policy.slo()).unwrap();
    assert!(pace < 10.0, "{pace} a second");
    // The others hold as well, so the queue is gone.
    for _ in 0..8 {
        second_of(&mut rig, 2, 60);
    }
    assert!(rig.limiter.is_congested() && rig.limiter.has_held);
    let limit = rig.limiter.held_limit();
    assert!(limit < 1.0, "{limit}");
    let slo = rig.policy.slo();
    let capacity = rig.limiter.capacity.value();
    let by_formula =
        limit / (rig.limiter.believed_floor(slo) + rig.limiter.held_wait(capacity, slo));
    let before = rig.limiter.capacity.before_the_queue();
    let pace = rig.limiter.pace(slo).unwrap();
    assert!(pace < limit / 0.06, "as fast as answers are: {pace}");
    assert_close(pace, by_formula.max(before), "pace");
}

/// Answers of 15 s, and then one of 50 ms: nobody would see that the upstream is well again if requests went on to be granted as rarely as
/// answers of 15 s require.
#[test]
fn below_one_the_longest_queue_leaves_a_tenth_of_the_capacity_until_an_answer_is_faster() {
    let mut rig = Rig::resume(&LimitCheckpoint {
        floor: floor(0.05, 0.05),
        capacity: PerSecond::new(2.0),
        hold: Some(Requests::new(0.5)),
        ..LimitCheckpoint::default()
    });
    let by_formula = 0.5 / (0.05 + rig.limiter.held_wait(2.0, rig.policy.slo()));
    assert!(by_formula > 2.0, "more than the capacity: {by_formula}");
    for (name, millis, expected) in [
        ("before an answer, by the formula", None, by_formula),
        ("a tenth of the capacity", Some(15_000), 2.0 * LEAST_USED),
        ("as before", Some(50), by_formula),
        ("a slower one counts half", Some(350), 0.5 / 0.2),
    ] {
        if let Some(millis) = millis {
            let LimiterState::Hold(hold) = &mut rig.limiter.state else {
                panic!("{name}: no hold");
            };
            hold.learn_latency(&window(2_000, 1, millis));
        }
        rig.limits();
        let pace = rig.limiter.pace(rig.policy.slo()).unwrap();
        assert_close(pace, expected, name);
    }
}

#[test]
fn late_requests_of_a_slower_service_are_refused_only_until_a_test_shows_no_queue() {
    let mut rig = one_of_many();
    let mut held = 0;
    for _ in 0..200 {
        second_of(&mut rig, 2, 450);
        held += u32::from(rig.limiter.is_congested());
    }
    assert!((1..=16).contains(&held), "{held} s");
    assert!((rig.limiter.floor.mean - 0.45).abs() < 0.01);
    assert!(!rig.limiter.has_held, "no queue has shown the capacity");
}

/// A second with answers of two kinds, each with its number and milliseconds. All places of the limit are in use, and more requests come.
fn mixed((fast, ms): (u64, u64), (slow, slow_ms): (u64, u64), limit: u32) -> Sample {
    let mut mixed = window(1_000, fast, ms);
    mixed.tally.merge(&window(1_000, slow, slow_ms).tally);
    mixed.refusing(20).holding(u64::from(limit))
}

/// One of two endpoints takes two seconds.
fn one_slow_endpoint(limit: u32) -> Sample {
    let answers = u64::from(limit).div_ceil(2).max(2);
    mixed((answers, 100), (answers, 2_000), limit)
}

/// By Little's law the answers above take a second on average. The throughput falls with the limit, and the latency stays.
#[test]
fn a_slow_endpoint_of_two_is_no_queue_and_its_latency_becomes_normal() {
    let mut rig = Rig::calm();
    rig.rounds(30, &window(1_000, 100, 100));
    let before = rig.limit();
    let limits: Vec<u32> = (0..20)
        .map(|_| {
            let limit = rig.limit();
            rig.rounds(1, &one_slow_endpoint(limit)).0
        })
        .collect();
    assert!(
        limits.iter().any(|limit| *limit < before),
        "a test: {limits:?}"
    );
    assert!(!rig.limiter.is_congested(), "{limits:?}");
    assert!(rig.limit() >= before, "{limits:?}");
    assert!(rig.limiter.floor.mean > 0.8, "{}", rig.limiter.floor.mean);
}

#[test]
fn hold_ends_where_most_requests_are_slow_and_the_fast_ones_meet_no_queue() {
    let mut rig = held_at_40();
    let mut held = 0;
    while rig.limiter.is_congested() {
        let limit = rig.limit();
        // Requests that wait ten seconds for news take the places, and a fast request finds one at times.
        rig.rounds(1, &mixed((1, 50), (4, 10_000), limit));
        held += 1;
        assert!(held < 30, "{held} s at {limit}");
    }
    assert!(rig.limiter.floor.mean > 5.0, "{}", rig.limiter.floor.mean);
}

/// How many are in flight when the first answers come, and the limit then.
#[test]
fn the_limit_begins_with_room_for_what_is_in_flight_when_the_latency_becomes_known() {
    for (in_flight, expected) in [(1, 4), (15, 15)] {
        let mut rig = Rig::new();
        let first = window(1_000, 10, 10).holding(in_flight);
        assert_eq!(rig.rounds(1, &first).0, expected, "{in_flight}");
    }
}

#[test]
fn a_policy_with_a_greater_minimum_is_never_held_below_it() {
    let text = r#"{
        "slo":{"latency":{"quantile":0.99,"target":"300ms"}},
        "limit":{"min":2,"max":1000,"initial":20}
    }"#;
    let config = crate::config::Config::from_json(text.as_bytes()).unwrap();
    let mut rig = one_of_many();
    rig.policy = config.default_policy().clone();
    for _ in 0..60 {
        second_of(&mut rig, 2, 450);
        assert!(!rig.limiter.is_congested());
        assert_eq!(rig.limiter.pace(rig.policy.slo()), None);
    }
}

/// A floor of 280 ms in doubt, from ten answers: the latency of two more, and the mean that is believed then.
#[test]
fn a_few_answers_replace_a_floor_in_doubt_if_they_are_faster_by_more_than_chance() {
    for (ms, expected) in [(60, 0.06), (200, 0.28)] {
        let mut rig = Rig::new();
        rig.rounds(1, &window(1_000, 10, 280));
        assert!(rig.is_in_doubt());
        rig.rounds(1, &window(1_000, 2, ms));
        let mean = rig.limiter.floor.mean;
        assert!((mean - expected).abs() < 0.01, "{ms}: {mean}");
    }
}

/// A second in which callers leave after the objective, and no request is answered.
fn callers_leave(refused: u64) -> Sample {
    let mut second = window(1_000, 0, 0).holding(20).refusing(refused);
    second.tally.add(Count::Slow, 30);
    second
}

#[test]
fn a_full_limit_at_which_all_callers_leave_falls_by_half_to_one() {
    let mut rig = Rig::calm();
    rig.rounds(1, &callers_leave(20));
    assert!(rig.limiter.is_congested());
    assert_eq!(rig.limit(), 15, "what the upstream carried");
    let limits = [(); 5].map(|()| rig.rounds(1, &callers_leave(20)).0);
    assert_eq!(limits, [7, 4, 2, 1, 1]);
}

#[test]
fn callers_that_leave_change_no_limit_with_room_and_none_with_an_objective_out_of_reach() {
    let mut rig = Rig::calm();
    let limit = rig.limit();
    rig.rounds(5, &callers_leave(0));
    assert_eq!((rig.limit(), rig.limiter.is_congested()), (limit, false));

    let mut late = Rig::new();
    late.rounds(100, &window(100, 10, 400));
    late.rounds(5, &callers_leave(20));
    assert!(!late.limiter.is_congested());
}

/// Answers that take longer than the objective of 300 ms, while a queue drains to the limit of hold, and then at that limit.
#[test]
fn late_answers_to_requests_from_before_hold_shorten_the_wait_of_bursts_only() {
    let mut rig = Rig::calm();
    rig.rounds(65, &queue().holding(650));
    assert!(rig.limiter.is_congested());
    assert!(rig.limiter.hold_feedback.is_none(), "not yet of hold");
    assert_close(rig.limiter.burst_feedback.gain(), 0.8, "of cruise");
    rig.rounds(10, &queue().holding(5));
    let of_hold = rig.limiter.hold_feedback.as_deref().unwrap();
    assert_close(of_hold.gain(), 0.8, "of hold");
    assert_close(rig.limiter.burst_feedback.gain(), 0.8, "not of cruise");
}
