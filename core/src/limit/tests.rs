//! The limit as a whole, over several rounds.

use super::testing::{Rig, assert_close, floor, queue, terms, window};
use super::*;
use crate::tally::Count;
use crate::units::{Gain, PerSecond, Requests};

/// A tenth of a second of the calm upstream.
fn calm() -> Sample {
    window(100, 10, 100)
}

#[test]
fn the_limit_starts_at_the_initial_one_for_each_endpoint() {
    for (endpoints, expected) in [(0, 20), (1, 20), (3, 60)] {
        let mut rig = Rig::new();
        let mut sample = window(100, 0, 0);
        sample.endpoints = endpoints;
        assert_eq!(rig.rounds(3, &sample).0, expected, "{endpoints}");
        assert_eq!(rig.limiter.reason(), LimitReason::WarmUp);
    }
}

#[test]
fn rare_traffic_gets_the_initial_limit_at_first_and_a_share_of_it_once_it_is_known() {
    let mut rig = Rig::new();
    let rare = window(1_000, 10, 10);
    assert_eq!(rig.limit(), 20);
    assert_eq!(rig.rounds(1, &rare).0, 4);
    assert_eq!(rig.limiter.reason(), LimitReason::Cruise);
}

#[test]
fn packs_raise_the_limit_to_what_they_need() {
    let mut rig = Rig::calm();
    // Each meets half of the others: 50 are in flight for a tenth of the second.
    let mut pack = window(1_000, 50, 100);
    pack.tally.add(Count::Successes, 50);
    pack.tally.add(Count::SuccessLoad, 50 * 51 / 2);
    let before = rig.limit();
    let (limit, _) = rig.rounds(1, &pack);
    // 245 a second instead of 100, for 285 ms.
    assert!(before < 30 && (60..75).contains(&limit), "{before} {limit}");
}

#[test]
fn uploads_under_way_are_no_pack() {
    let mut rig = Rig::calm();
    let mut busy = calm();
    busy.uploading = 500;
    busy.tally.add(Count::Successes, 10);
    busy.tally.add(Count::SuccessLoad, 10 * 500);
    rig.rounds(30, &busy);
    assert_close(rig.limiter.capacity(), 100.0, "capacity");
}

#[test]
fn requests_without_an_answer_have_their_part_in_the_limit() {
    let mut rig = Rig::calm();
    let before = f64::from(rig.limit());
    // Half as many seconds in flight without an answer as with one.
    let mut sample = calm();
    sample.tally.add(Count::UnansweredMicros, 500_000);
    let (limit, _) = rig.rounds(300, &sample);
    // 10 are in flight with an answer, and 5 without.
    assert_close(f64::from(limit) - before, 5.0, "more");
}

#[test]
fn the_limit_is_what_the_objective_leaves_for_a_burst() {
    let mut rig = Rig::calm();
    // 100 a second for 100 ms, and what is left of 95 % of 300 ms: 28.5, less what a bucket's bounds hide.
    let limit = rig.limit();
    assert!((26..=29).contains(&limit), "{limit}");
    assert_eq!(rig.limiter.reason(), LimitReason::Cruise);
    assert_close(rig.limiter.capacity(), 100.0, "capacity");
}

#[test]
fn a_window_lasts_until_it_has_enough_answers_or_a_second_passed() {
    let mut rig = Rig::new();
    rig.rounds(3, &window(100, 3, 100));
    assert!(!rig.limiter.floor.is_known(), "nine answers");
    rig.rounds(1, &window(100, 1, 100));
    assert!(rig.limiter.floor.is_known(), "ten");
    let mut rare = Rig::new();
    rare.rounds(9, &window(100, 1, 100));
    assert!(!rare.limiter.floor.is_known());
    rare.rounds(1, &window(100, 0, 0));
    assert!(rare.limiter.floor.is_known(), "a second");
}

#[test]
fn the_first_window_lasts_until_slow_answers_are_among_its_own() {
    let mut rig = Rig::new();
    let fast = window(100, 10, 10).holding(13);
    rig.rounds(2, &fast);
    assert!(
        !rig.limiter.floor.is_known(),
        "13 in flight, and 1 accounted for"
    );
    rig.rounds(1, &window(100, 20, 160).holding(20));
    let mean = rig.limiter.floor.mean;
    assert!((mean - 0.085).abs() < 1e-9, "of all answers: {mean}");
    // Later windows are as short as ever.
    rig.rounds(1, &window(100, 20, 160).holding(90));
    assert!(rig.limiter.window.is_none());
}

#[test]
fn the_first_window_lasts_no_longer_than_the_objective_or_a_second() {
    let mut rig = Rig::new();
    let fast = window(100, 10, 10).holding(50);
    rig.rounds(9, &fast);
    assert!(!rig.limiter.floor.is_known(), "the objective is 300 ms");
    rig.rounds(1, &fast);
    assert!(rig.limiter.floor.is_known());
}

/// Of requests of a second or two, the fast ones are answered first.
#[test]
fn the_first_window_lasts_for_the_latency_of_all_requests_while_none_is_refused() {
    // Two answers a second of 0.5 s, with 3 in flight: 1.5 s by Little's law, three times.
    let fast = window(500, 1, 500).holding(3);
    for (round, lasts) in [(fast.clone(), 9), (fast.refusing(1), 3)] {
        let mut rig = Rig::new();
        rig.rounds(lasts - 1, &round);
        assert!(!rig.limiter.floor.is_known(), "{lasts}");
        rig.rounds(1, &round);
        assert!(rig.limiter.floor.is_known(), "{lasts}");
    }
}

/// One answer in 0.3 s, after a wait of `ms` milliseconds, to a request that was the `load`th in flight; 20 are.
fn answer_at(load: u64, ms: u64) -> Sample {
    let mut round = window(300, 1, ms).holding(20).refusing(3);
    round.tally.add(Count::Successes, 1);
    round.tally.add(Count::SuccessLoad, load);
    round
}

/// Twenty requests came at once to an upstream that takes 100 ms for each, one after the other.
#[test]
fn a_queue_from_the_first_request_on_shows_in_the_loads_that_requests_met() {
    let mut rig = Rig::new();
    for load in 1..=3 {
        rig.rounds(1, &answer_at(load, 300 * load));
        assert!(!rig.limiter.floor.is_known(), "{load}");
    }
    let (limit, _) = rig.rounds(1, &answer_at(4, 1_200));
    let mean = rig.limiter.floor.mean;
    assert!((mean - 0.3).abs() < 0.02, "{mean}");
    assert!(limit < 20, "{limit}");
    rig.rounds(1, &answer_at(5, 1_500));
    assert!(rig.limiter.load_trend.is_none(), "it is needed no longer");
}

#[test]
fn a_slow_service_is_as_slow_at_any_load() {
    let mut rig = Rig::new();
    for load in 1..=9 {
        rig.rounds(1, &answer_at(load, 1_000));
        assert!(!rig.limiter.floor.is_known(), "{load}: slow ones may come");
    }
    rig.rounds(1, &answer_at(10, 1_000));
    let mean = rig.limiter.floor.mean;
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
}

#[test]
fn a_queue_with_refusals_is_held_until_it_is_over() {
    let mut rig = Rig::calm();
    let burst = rig.limit();
    rig.rounds(2, &queue());
    assert!(!rig.limiter.is_congested(), "not for long");
    rig.rounds(1, &queue());
    assert!(rig.limiter.is_congested());
    let held = rig.limit();
    assert!(held < burst && held > 10, "{held} of {burst}");
    assert_eq!(rig.limiter.reason(), LimitReason::Hold);
    rig.rounds(2, &calm());
    assert!(rig.limiter.is_congested(), "a moment's lull");
    rig.rounds(1, &calm());
    assert!(!rig.limiter.is_congested());
    assert_eq!(rig.limiter.reason(), LimitReason::Cruise);
}

/// The latency while hold lasts, milliseconds, 250 before, and what the floor is when all callers fit under the limit.
#[test]
fn room_under_the_limit_ends_the_first_test_of_a_slower_service() {
    for (ms, expected) in [(250, 0.25), (100, 0.1)] {
        let mut rig = Rig::calm();
        rig.rounds(4, &window(100, 10, 250).holding(25).refusing(5));
        assert!(rig.limiter.is_congested());
        rig.rounds(8, &window(100, 4, ms).holding(10).refusing(1));
        assert!(rig.limiter.is_congested());
        rig.rounds(3, &window(100, 2, ms).holding(5));
        assert!(!rig.limiter.is_congested());
        assert_close(rig.limiter.floor.mean, expected, "the floor");
    }
}

/// In hold the throughput is the limit's. When demand falls below the limit, that says nothing about the upstream.
#[test]
fn room_under_the_limit_gives_back_the_capacity_from_before_the_queue() {
    let mut rig = Rig::calm();
    let before = rig.limiter.capacity();
    rig.rounds(20, &window(100, 5, 400).refusing(15));
    assert!(rig.limiter.is_congested());
    assert!(rig.limiter.capacity() < before * 0.7);
    rig.rounds(3, &window(100, 1, 400).holding(1));
    assert!(!rig.limiter.is_congested());
    assert_close(rig.limiter.capacity(), before, "from before the queue");
}

#[test]
fn a_burst_without_refusals_is_not_held() {
    let mut rig = Rig::calm();
    rig.rounds(15, &window(100, 10, 400));
    assert!(!rig.limiter.is_congested());
}

#[test]
fn the_reserve_is_what_the_objective_leaves_for_bursts() {
    let mut rig = Rig::held();
    let (limit, reserve) = rig.limits();
    assert!(reserve > limit, "{limit} and {reserve}");
}

#[test]
fn the_throughput_stance_does_not_hold_at_the_knee() {
    let mut rig = Rig::held();
    let held = rig.limit();
    let policy = rig.policy.clone();
    let generous = Terms {
        stance: Stance::Throughput,
        ..terms(&policy)
    };
    let (limit, _) = rig.limiter.limits(generous);
    assert!(limit > held, "{limit} and {held}");
    assert_eq!(rig.limiter.reason(), LimitReason::Cruise);
}

#[test]
fn an_objective_that_no_shedding_meets_sheds_nothing() {
    let mut rig = Rig::new();
    rig.rounds(30, &window(100, 10, 500));
    assert_eq!(rig.limiter.reason(), LimitReason::Unreachable);
    // A throughput of 50 % more, and half a second for each request.
    let mut answers = 10;
    for _ in 0..4 {
        answers += answers / 2;
        let sample = window(100, answers, 500);
        let before = rig.limit();
        assert!(before > sample.in_flight, "{before} at {answers}");
        rig.rounds(10, &sample);
        assert_eq!(rig.limiter.reason(), LimitReason::Unreachable);
    }
}

#[test]
fn a_slow_minority_does_not_make_the_objective_unreachable() {
    let mut rig = Rig::new();
    let mut mixed = window(100, 8, 100);
    mixed.tally.merge(&window(100, 2, 900).tally);
    rig.rounds(30, &mixed);
    assert_eq!(rig.limiter.reason(), LimitReason::Cruise);
}

#[test]
fn uploads_under_way_are_added_to_the_limits() {
    let [mut rig, mut twin] = [Rig::calm(), Rig::calm()];
    let mut uploading = calm();
    uploading.uploading = 10;
    // The mean follows slowly, with an allowance for its variation, and ends when it is very small.
    for (rounds, sample, more) in [(1, &uploading, 7), (40, &uploading, 20), (40, &calm(), 0)] {
        let (limit, reserve) = twin.rounds(rounds, &calm());
        let with_uploads = rig.rounds(rounds, sample);
        assert_eq!(with_uploads, (limit + more, reserve + more), "{more}");
    }
}

const FAILURES: OutageSign = OutageSign::Failures;

#[test]
fn a_recovering_upstream_is_held_at_what_it_carried_before() {
    let mut rig = Rig::calm();
    rig.limiter
        .restart_conservatively(terms(&rig.policy), FAILURES);
    assert!(rig.limiter.is_congested());
    assert_eq!(rig.limit(), 15, "10, and 1.5 deviations");
    let mut held = Rig::held();
    let before = held.limit();
    held.limiter
        .restart_conservatively(terms(&held.policy), FAILURES);
    assert_eq!(held.limit(), before, "it was held already");
}

/// One answer in two seconds needs less than one request in flight. That is too much only for a service that many proxies share.
#[test]
fn after_failures_an_upstream_with_few_requests_is_held_at_one_request_or_more() {
    for (sign, is_below_one) in [(FAILURES, false), (OutageSign::Hang, true)] {
        let mut rig = Rig::new();
        rig.rounds(10, &window(2_000, 1, 100));
        rig.limiter.restart_conservatively(terms(&rig.policy), sign);
        let held = rig.limiter.held_limit();
        assert_eq!(held < 1.0, is_below_one, "{sign:?}: {held}");
    }
}

#[test]
fn after_an_outage_an_upstream_is_held_at_the_initial_limit_or_the_believed_floor() {
    let mut unknown = Rig::new();
    unknown
        .limiter
        .restart_conservatively(terms(&unknown.policy), FAILURES);
    assert!(unknown.limiter.is_congested());
    assert_eq!(unknown.limit(), 20, "nothing is known");
    // All answers so far, 100 a second of 400 ms, may include a queue; the objective is 300 ms.
    let mut doubted = Rig::new();
    doubted.rounds(1, &queue());
    doubted
        .limiter
        .restart_conservatively(terms(&doubted.policy), FAILURES);
    let carried: f64 = 100.0 * 0.21;
    let expected = carried + 1.5 * carried.sqrt();
    assert_close(doubted.limiter.held_limit(), expected, "harmless");
}

#[test]
fn limits_and_learned_state_scale_with_the_endpoints() {
    for (name, mut rig) in [("cruise", Rig::calm()), ("hold", Rig::held())] {
        rig.limiter.follow_endpoints(2);
        let capacity = rig.limiter.capacity();
        let held = rig.limiter.held_limit();
        rig.limiter.follow_endpoints(0);
        assert_close(rig.limiter.capacity(), capacity, "unknown: as before");
        rig.limiter.follow_endpoints(4);
        assert_close(rig.limiter.capacity(), capacity * 2.0, name);
        assert_close(rig.limiter.held_limit(), held * 2.0, name);
        rig.limiter.follow_endpoints(2);
        assert_close(rig.limiter.capacity(), capacity, name);
        assert_close(rig.limiter.held_limit(), held, name);
    }
}

#[test]
fn the_first_number_of_endpoints_changes_nothing() {
    let mut rig = Rig::calm();
    rig.limiter.follow_endpoints(7);
    assert_close(rig.limiter.capacity(), 100.0, "capacity");
    assert_eq!(rig.limiter.endpoints, 7);
}

#[test]
fn the_maximum_is_per_endpoint_and_the_minimum_per_proxy() {
    let mut rig = Rig::resume(&LimitCheckpoint {
        floor: floor(0.1, 0.1),
        capacity: PerSecond::new(1e6),
        endpoints: 3,
        ..LimitCheckpoint::default()
    });
    assert_eq!(rig.limit(), 3_000);
    assert_eq!(rig.limiter.reason(), LimitReason::Bounds);
}

#[test]
fn a_successor_continues_from_learned_state() {
    for (name, mut rig) in [("cruise", Rig::calm()), ("hold", Rig::held())] {
        let known = rig.limiter.checkpoint();
        let mut successor = Rig::resume(&known);
        assert_eq!(successor.limits(), rig.limits(), "{name}");
        assert_eq!(successor.limiter.reason(), rig.limiter.reason(), "{name}");
        assert_eq!(
            successor.limiter.is_congested(),
            rig.limiter.is_congested(),
            "{name}"
        );
        assert_eq!(successor.limiter.checkpoint(), known, "{name}");
    }
}

#[test]
fn an_empty_checkpoint_gives_a_new_limiter() {
    let expected = LimitCheckpoint {
        burst_gain: Gain::new(1.0),
        ..LimitCheckpoint::default()
    };
    assert_eq!(Rig::new().limiter.checkpoint(), expected);
}

#[test]
fn failures_that_load_causes_hold_the_limit() {
    let mut rig = Rig::resume(&LimitCheckpoint {
        floor: floor(0.1, 0.1),
        capacity: PerSecond::new(100.0),
        ceiling: Some(CeilingCheckpoint {
            limit: Requests::new(7.0),
            is_proven: false,
        }),
        ..LimitCheckpoint::default()
    });
    assert_eq!(rig.limits(), (7, 7));
    assert_eq!(rig.limiter.reason(), LimitReason::LoadFailures);
}

/// A tenth of a second of `callers` that wait for each answer before they send again, or for 20 ms if they are refused, in front of
/// sixteen slots of 40 ms. `limit` of them are in flight at most.
fn closed_loop(callers: u64, limit: u64) -> Sample {
    const SLOTS: u64 = 16;
    const SERVICE_MS: u64 = 40;
    let in_flight = callers.min(limit);
    let answers = 100 * in_flight.min(SLOTS) / SERVICE_MS;
    let latency = SERVICE_MS * in_flight.max(SLOTS) / SLOTS;
    let refused = callers.saturating_sub(limit) * 5;
    window(100, answers, latency)
        .holding(in_flight)
        .refusing(refused)
}

/// Within 300 ms, 114 requests in flight are affordable. After an overload, fewer callers that wait for their answers all find room.
#[test]
fn callers_that_wait_and_fit_within_the_objective_are_not_refused_for_long() {
    for (callers, fits) in [
        (20, true),
        (40, true),
        (60, true),
        (100, true),
        (400, false),
    ] {
        let mut rig = Rig::new();
        let mut refused = 0;
        for round in 0..900 {
            let callers = if round < 100 { 400 } else { callers };
            let sample = closed_loop(callers, u64::from(rig.limit()));
            refused = sample.tally.refused_for_load();
            rig.rounds(1, &sample);
            assert!(round != 99 || rig.limiter.is_congested(), "an overload");
        }
        assert_eq!(refused == 0, fits, "{callers} callers");
        assert!(fits || rig.limit() < 40, "held in vain: {}", rig.limit());
    }
}
