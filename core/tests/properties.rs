//! What holds whatever happens: any order of requests, ticks, leaders and configurations, by any clock.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

mod counters;
mod envelope;
mod proxy;

use std::time::Duration;

use proptest::prelude::*;
use tidegate_core::config::Until;
use tidegate_core::units::{Gain, PerSecond, Requests, Seconds, Share};
use tidegate_core::{
    BreakerCheckpoint, BreakerPhase, BreakerState, CeilingCheckpoint, Counter, Criticality,
    Decision, Directive, Directives, Engine, Failure, FloorCheckpoint, GivenRequest, Instant,
    Learned, LimitCheckpoint, Margin, Outcome, Permit, Quantiles, RatesCheckpoint, Request,
    ShedReason, Slice, Unshared,
};

use counters::Shared;
use envelope::{PREFIX, seal};
use proxy::{
    Alone, CONFIGS, OBSERVING, OFF, Proxy, STRICT, Traffic, any_steps, check_numbers, config,
};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLI;
/// Numbers with a fraction in what is learned of an upstream.
const NUMBERS: usize = 12;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

fn admitted(decision: Decision) -> Option<Permit> {
    match decision {
        Decision::Admit(permit) => Some(permit),
        Decision::Shed(_) => None,
    }
}

/// An ordinary request that has a body or not.
struct Sent {
    has_body: bool,
}

impl Request for Sent {
    fn criticality(&mut self) -> Criticality {
        Criticality::Critical
    }

    fn is_retry(&mut self) -> bool {
        false
    }

    fn is_health_check(&mut self) -> bool {
        false
    }

    fn has_body(&self) -> bool {
        self.has_body
    }

    fn cohort(&mut self) -> Option<u32> {
        None
    }
}

/// Any bits, often those of ordinary shares, so that some records are valid.
fn any_float() -> impl Strategy<Value = f32> {
    prop_oneof![
        30 => 0.0_f32..=1.0,
        1 => any::<u32>().prop_map(f32::from_bits),
        1 => prop::sample::select(vec![f32::NAN, f32::INFINITY, -0.001, -f32::MAX, f32::MAX]),
    ]
}

/// What is learned, each number another one, and these as they are written.
fn numbered() -> (Learned, [f32; NUMBERS]) {
    let numbers = core::array::from_fn(|index| {
        // Bytes that stand nowhere else in a payload.
        f32::from_bits(0x3f12_3450 + u32::try_from(index).unwrap())
    });
    let mut rest = numbers.iter().map(|number| f64::from(*number));
    let mut next = || rest.next().unwrap();
    let learned = Learned {
        limit: LimitCheckpoint {
            floor: FloorCheckpoint {
                low: Seconds::new(next()),
                mean: Seconds::new(next()),
                tail: Seconds::new(next()),
            },
            latest: Quantiles {
                low: Seconds::new(next()),
                tail: Seconds::new(next()),
            },
            capacity: PerSecond::new(next()),
            hold: Some(Requests::new(next())),
            ceiling: Some(CeilingCheckpoint {
                limit: Requests::new(next()),
                is_proven: true,
            }),
            burst_gain: Gain::new(next()),
            endpoints: 1,
        },
        breaker: BreakerCheckpoint {
            rates: RatesCheckpoint {
                failures: Share::new(next()),
                outcomes: PerSecond::new(next()),
            },
            latency: Seconds::new(next()),
            outage: None,
        },
    };
    (learned, numbers)
}

/// The payload with other bits where this number stands, under a true checksum.
fn replaced(payload: &[u8], number: f32, bits: f32) -> Vec<u8> {
    let mut content = payload[PREFIX..].to_vec();
    let is_it = |place: &usize| content[*place..].starts_with(&number.to_le_bytes());
    let places: Vec<usize> = (0..content.len()).filter(is_it).collect();
    let [place] = places[..] else {
        panic!("{number} stands at {places:?}");
    };
    content[place..place + 4].copy_from_slice(&bits.to_le_bytes());
    seal(&content)
}

/// A payload cut off at every place, one byte longer, and with every byte changed, one at a time.
fn damages(payload: &[u8], tail: u8, flip: u8) -> impl Iterator<Item = Vec<u8>> {
    let cut = (0..payload.len()).map(|end| payload[..end].to_vec());
    let longer = [payload, &[tail]].concat();
    let changed = (0..payload.len()).map(move |place| {
        let mut bytes = payload.to_vec();
        bytes[place] ^= flip;
        bytes
    });
    cut.chain([longer]).chain(changed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// In flight is what is held, limits are within bounds, numbers are numbers, the breaker keeps to its diagram.
    #[test]
    fn nothing_is_lost_whatever_happens(steps in any_steps(), start in any::<u64>()) {
        let mut proxy = Proxy::new(3, CONFIGS[0], start);
        for step in &steps {
            proxy.take(step);
            proxy.check();
        }
        proxy.end_all();
        proxy.check();
        prop_assert_eq!(proxy.held(), 0);
        for snapshot in proxy.snapshots() {
            for upstream in snapshot.upstreams {
                prop_assert_eq!([upstream.in_flight, upstream.uploading, upstream.open], [0; 3]);
            }
        }
    }

    /// Whatever went before, an upstream that is well is used again.
    #[test]
    fn an_open_breaker_always_ends(steps in any_steps(), start in 0..u64::MAX) {
        let mut proxy = Proxy::new(3, CONFIGS[0], start);
        for step in &steps {
            proxy.take(step);
        }
        proxy.end_all();
        // Where requests are rare, probes are up to 30 s apart, and up to 15 % more by chance.
        proxy.recover(40);
        for snapshot in proxy.snapshots() {
            for upstream in snapshot.upstreams.iter().skip(1) {
                prop_assert_eq!(upstream.breaker, BreakerPhase::Closed);
            }
        }
    }

    /// Observing, or switched off, the proxy sheds nothing.
    #[test]
    fn observe_mode_sheds_nothing(steps in any_steps(), off in any::<bool>()) {
        let mut proxy = Proxy::new(2, if off { OFF } else { OBSERVING }, SECOND);
        for step in steps.iter().filter(|step| !step.is_push()) {
            proxy.take(step);
        }
        prop_assert_eq!(proxy.sheds, 0);
    }

    /// A slice counts once, in whatever order slices come.
    #[test]
    fn merging_does_not_depend_on_order_or_repetition(
        rounds in prop::collection::vec(any_steps(), 1..4),
        order in Just(vec![0_usize, 1, 2, 0, 1, 2]).prop_shuffle(),
    ) {
        let mut proxy = Proxy::new(3, CONFIGS[0], SECOND);
        let leader = || Engine::of_many(config(CONFIGS[0]), at(SECOND), 77);
        let (mut once, mut often) = (leader(), leader());
        let mut counters = Shared::default();
        for (round, steps) in rounds.iter().enumerate() {
            for step in steps.iter().filter(|step| step.is_traffic()) {
                proxy.take(step);
            }
            proxy.now = (round as u64 + 2) * SECOND;
            let slices: Vec<Slice<'_>> = proxy.engines.iter_mut().map(|engine| engine.slice(at(proxy.now))).collect();
            let shuffled: Vec<Slice<'_>> = order.iter().map(|index| slices[*index].clone()).collect();
            let now = at(proxy.now + 1);
            prop_assert_eq!(
                once.decide(&slices, &mut counters, now),
                often.decide(&shuffled, &mut counters, now)
            );
        }
    }

    /// What is written can be read, and is the same.
    #[test]
    fn payloads_survive_the_wire(steps in any_steps()) {
        let mut proxy = Proxy::new(2, CONFIGS[0], SECOND);
        for step in &steps {
            proxy.take(step);
        }
        let slice = proxy.engines[0].slice(at(proxy.now));
        prop_assert_eq!(Slice::decode(slice.clone().encode()), Ok(slice));
        let directives = proxy.directives;
        prop_assert_eq!(Directives::decode(directives.clone().encode()), Ok(directives));
    }

    /// Whatever bits a neighbour leaves where floats were: a directive is adopted with plausible numbers only, or not at all.
    #[test]
    fn no_directive_with_an_implausible_number_is_adopted(
        bits in prop::collection::vec(any_float(), NUMBERS),
        (share, limit, more, workers) in (any_float(), 0_u32..9, -1_i32..3, 0_u16..3),
    ) {
        let mut alone = Alone::new(CONFIGS[0]);
        let ordinary = alone.directive();
        let (learned, numbers) = numbered();
        let margin = Margin { share, ..Margin::NONE };
        let reserve = limit.saturating_add_signed(more);
        let odd = Directive { limit, reserve, margin, workers, learned, ..ordinary };
        let now = alone.now();
        let mut sent = Directives::new(9, now, [ordinary, odd]).encode();
        for (number, bits) in numbers.into_iter().zip(&bits) {
            sent = replaced(&sent, number, *bits);
        }
        let are_counts = limit >= 1 && reserve >= limit && workers >= 1;
        match Directives::decode(sent.clone()) {
            Ok(read) => {
                prop_assert_eq!(read.clone().encode(), sent);
                let read_odd = read.entries().last().unwrap();
                check_numbers(&read_odd.learned);
                prop_assert!(are_counts && (0.0..=1.0).contains(&read_odd.margin.share));
                alone.engine.adopt(&read, now);
                check_numbers(&alone.snapshot().learned);
                prop_assert_eq!(alone.snapshot().learned, read_odd.learned);
            }
            Err(error) => {
                let mut all = bits.iter().chain([&share]);
                let are_shares = all.all(|value| (0.0..=1.0).contains(value));
                prop_assert!(!are_shares || !are_counts, "{}", error);
            }
        }
    }

    /// What is cut off or longer than it was written, or differs in any byte, is rejected as a whole.
    #[test]
    fn a_damaged_payload_is_rejected_as_a_whole(steps in any_steps(), tail in any::<u8>(), flip in 1_u8..) {
        let mut proxy = Proxy::new(2, CONFIGS[0], SECOND);
        for step in &steps {
            proxy.take(step);
        }
        let slice = proxy.engines[0].slice(at(proxy.now)).encode();
        let directives = proxy.directives.clone().encode();
        prop_assert!(Slice::decode(&slice[..]).is_ok() && Directives::decode(&directives[..]).is_ok());
        for damaged in damages(&slice, tail, flip) {
            prop_assert!(Slice::decode(damaged).is_err());
        }
        for damaged in damages(&directives, tail, flip) {
            prop_assert!(Directives::decode(damaged).is_err());
        }
    }

    /// Names come and go beyond the cap; handles are used again, and no request is lost.
    #[test]
    fn a_handle_passes_on_only_when_nobody_holds_it(
        calls in prop::collection::vec((0_u8..12, 0_u64..90, any::<prop::sample::Index>()), 1..200),
    ) {
        let mut engine = Engine::new(config(r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms"}},"maxUpstreams":3}"#), at(0), 1);
        let mut counters = Shared::default();
        let mut held = Vec::new();
        let mut now = 0;
        for (name, seconds, index) in calls {
            now += seconds * SECOND / 4;
            let upstream = engine.upstream(&format!("service-{name}"), None, at(now));
            prop_assert!(upstream.index() <= 3);
            held.extend(admitted(engine.admit(upstream, &mut GivenRequest::default(), &mut counters, at(now))));
            if seconds % 3 > 0 && !held.is_empty() {
                let permit = held.swap_remove(index.index(held.len()));
                engine.complete(permit, Outcome::Success, &mut counters, at(now));
            }
            engine.tick(&mut counters, at(now));
            let snapshot = engine.snapshot(at(now));
            for upstream in &snapshot.upstreams {
                let own = held.iter().filter(|permit| permit.upstream() == upstream.id).count();
                prop_assert_eq!(upstream.in_flight as usize + upstream.open as usize, own);
                prop_assert_eq!(counters.read(upstream.id, Counter::InFlight), i64::from(upstream.in_flight));
            }
        }
    }

    /// One worker alone has no more requests that have not ended than the policy allows, whatever they are doing.
    #[test]
    fn no_more_requests_are_open_than_the_policy_allows(
        calls in prop::collection::vec((0_u8..8, any::<prop::sample::Index>(), 0_u64..3_000), 1..300),
        until in prop::sample::select(Until::ALL.to_vec()),
        (max_open, endpoints) in (1_u32..6, 0_u32..4),
    ) {
        let mut alone = Alone::new(&format!(
            r#"{{"slo":{{"latency":{{"quantile":0.9,"target":"100ms","until":"{until}"}}}},"limit":{{"maxOpen":{max_open}}},"breaker":{{"enabled":false}}}}"#
        ));
        let upstream = alone.upstream;
        alone.engine.set_endpoints(upstream, endpoints);
        let most = (max_open * endpoints.max(1)) as usize;
        let mut counters = Shared::default();
        let (mut held, mut now) = (Vec::new(), 0);
        for (call, index, millis) in calls {
            now += millis * MILLI;
            let engine = &mut alone.engine;
            match call {
                0..=3 => {
                    let mut request = Sent { has_body: call > 1 };
                    let decision = engine.admit(upstream, &mut request, &mut counters, at(now));
                    let is_full = held.len() >= most;
                    prop_assert!(!is_full || matches!(decision, Decision::Shed(shed) if shed.reason == ShedReason::MaxOpen));
                    held.extend(admitted(decision));
                }
                _ if held.is_empty() => {}
                4 => {
                    let permit = held.swap_remove(index.index(held.len()));
                    engine.complete(permit, Outcome::Success, &mut counters, at(now));
                }
                _ => {
                    let place = index.index(held.len());
                    let permit = &mut held[place];
                    match call {
                        5 => engine.start(permit, &mut counters, at(now)),
                        6 => engine.first_byte(permit, &mut counters, at(now)),
                        _ => engine.respond(permit, Outcome::Success, &mut counters, at(now)),
                    }
                }
            }
            if millis % 3 == 0 {
                alone.engine.tick(&mut counters, at(now));
            }
            prop_assert!(held.len() <= most);
            let in_flight = counters.read(upstream, Counter::InFlight);
            prop_assert!((0..=i64::try_from(held.len()).unwrap()).contains(&in_flight), "{in_flight}");
        }
        for permit in held {
            alone.engine.complete(permit, Outcome::Cancelled, &mut counters, at(now));
        }
        prop_assert_eq!(counters.read(upstream, Counter::InFlight), 0);
    }

    /// Of few and of many requests, the share is shed that the policy allows.
    #[test]
    fn no_more_is_shed_than_the_policy_allows(max_share in 0_u32..=100, arrivals in 1_u32..400) {
        let share = f64::from(max_share) / 100.0;
        let mut alone = Alone::new(&format!(
            r#"{{"slo":{{"latency":{{"quantile":0.9,"target":"100ms"}}}},"limit":{{"max":1,"initial":1}},"shed":{{"maxShare":{share}}}}}"#
        ));
        let mut held = Vec::new();
        for ticks in 1..5 {
            held.extend((0..arrivals).filter_map(|_| alone.admit()));
            let all = arrivals * ticks;
            let shed = f64::from(all - u32::try_from(held.len()).unwrap());
            let allowed = share * f64::from(all);
            prop_assert!(shed <= allowed + 1e-3, "{shed} of {all}");
            // The first request has room, and a part of one cannot be shed.
            prop_assert!(shed >= allowed - 2.0, "{shed} of {all}");
            alone.tick();
        }
    }

    /// A leader's successor continues where it stopped.
    #[test]
    fn a_successor_goes_on_where_the_leader_stopped(
        latency in 2_u64..200, gap in 1_u64..20, dead in any::<bool>(),
    ) {
        let mut alone = Alone::new(STRICT);
        alone.drive(Traffic { latency, gap, span: 3_000 });
        if dead {
            alone.fail();
        }
        let (now, before) = (alone.now(), alone.snapshot());
        prop_assert_eq!(before.breaker == BreakerPhase::Closed, !dead);

        let learned = Directives::decode(alone.engine.learned(now).encode()).unwrap();
        let mut successor = Engine::of_many(config(STRICT), now, 2);
        successor.adopt(&learned, now);
        let upstream = successor.upstream("backend", None, now);
        // All that the old worker ever counted is history to it.
        let mut slices = [alone.engine.slice(now)];
        prop_assert_eq!(successor.decide(&slices, &mut Unshared, now), None);
        let later = now + Duration::from_millis(50);
        slices[0].at = later;
        let (directives, events) = successor.decide(&slices, &mut Unshared, later).unwrap();
        successor.adopt(&directives, later);

        prop_assert_eq!(events, []);
        let after = successor.snapshot(later).upstreams[upstream.index()].clone();
        prop_assert_eq!(after.breaker, before.breaker);
        let (after_limit, before_limit) = (after.learned.limit, before.learned.limit);
        prop_assert_eq!(after_limit.floor.mean, before_limit.floor.mean);
        prop_assert_eq!(after_limit.capacity, before_limit.capacity);
        prop_assert_eq!(after.open_interval, before.open_interval);
        // Learned state is written with six digits, and a limit may lie between two whole numbers.
        prop_assert!(after.limit.abs_diff(before.limit) <= 1, "{} after {}", after.limit, before.limit);
    }
}

#[test]
fn another_configuration_keeps_what_was_learned_and_its_bounds_hold_at_once() {
    let mut alone = Alone::new(CONFIGS[0]);
    alone.drive(Traffic {
        latency: 20,
        gap: 2,
        span: 3_000,
    });
    let before = alone.snapshot();
    let held: Vec<_> = (0..5).filter_map(|_| alone.admit()).collect();
    let narrow =
        r#"{"slo":{"latency":{"quantile":0.99,"target":"200ms"}},"limit":{"max":4,"initial":4}}"#;
    let now = alone.now();
    alone.engine.reconfigure(config(narrow), now);
    let after = alone.snapshot();
    assert_eq!(after.learned, before.learned);
    assert_eq!(after.breaker, before.breaker);
    assert_eq!((after.in_flight, after.limit), (5, 4));
    for permit in held {
        alone.complete(permit, Outcome::Success);
    }
    assert_eq!(alone.snapshot().in_flight, 0);
}

#[test]
fn an_open_breaker_stays_open_over_another_configuration_and_waits_no_longer_than_that_allows() {
    let mut alone = Alone::new(
        r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"breaker":{"minOpen":"10m","maxOpen":"1h"}}"#,
    );
    alone.fail();
    assert_eq!(alone.snapshot().breaker, BreakerPhase::Open);
    let now = alone.now();
    alone.engine.reconfigure(config(STRICT), now);
    alone.tick();
    assert_eq!(alone.snapshot().breaker, BreakerPhase::Open);
    // maxOpen is 2 s now.
    let probes = alone.drive(Traffic {
        latency: 1,
        gap: 100,
        span: 4_000,
    });
    assert!((10..30).contains(&probes), "{probes} shed");
    assert_eq!(alone.snapshot().breaker, BreakerPhase::Closed);
}

#[test]
fn the_share_enforced_is_the_share_shed() {
    let mut alone = Alone::new(
        r#"{"slo":{"latency":{"quantile":0.9,"target":"100ms"}},"limit":{"max":1,"initial":1},"enforcement":0.3}"#,
    );
    let first = alone.admit();
    let mut shed = 0;
    for _ in 0..10_000 {
        match alone.admit() {
            Some(permit) => alone.complete(permit, Outcome::Ignored),
            None => shed += 1,
        }
    }
    assert!((2_800..3_200).contains(&shed), "{shed}");
    assert!(first.is_some());
}

#[test]
fn outcomes_of_an_earlier_epoch_say_nothing_about_this_one() {
    let ordinary = |span| Traffic {
        latency: 10,
        gap: 5,
        span,
    };
    let mut alone = Alone::new(STRICT);
    alone.drive(ordinary(1_000));
    let old: Vec<_> = (0..30).filter_map(|_| alone.admit()).collect();
    assert!(old.len() >= 20);
    alone.fail();
    alone.drive(ordinary(4_000));
    assert_eq!(alone.snapshot().breaker, BreakerPhase::Closed);

    for permit in old {
        alone.complete(permit, Outcome::Failure(Failure::Timeout));
    }

    let shed = alone.drive(ordinary(500));
    assert_eq!((alone.snapshot().breaker, shed), (BreakerPhase::Closed, 0));
}

#[test]
fn without_a_leader_an_open_breaker_lets_one_probe_through_and_a_later_leader_ends_it() {
    let mut counters = Shared::default();
    let mut workers = [1, 2].map(|worker| Engine::of_many(config(STRICT), at(0), worker));
    let [upstream, _] = workers
        .each_mut()
        .map(|engine| engine.upstream("backend", None, at(0)));
    // There is no leader: each worker trips on its own evidence.
    let mut tripped_at = 0;
    for engine in &mut workers {
        for i in 0..200 {
            tripped_at = i * 10 * MILLI;
            if let Some(permit) = admitted(engine.admit(
                upstream,
                &mut GivenRequest::default(),
                &mut counters,
                at(tripped_at),
            )) {
                engine.complete(
                    permit,
                    Outcome::Failure(Failure::Connection),
                    &mut counters,
                    at(tripped_at),
                );
            }
        }
    }
    let later = at(tripped_at + 2 * SECOND);
    let mut probes = Vec::new();
    for (index, engine) in workers.iter_mut().enumerate() {
        for _ in 0..50 {
            let decision =
                engine.admit(upstream, &mut GivenRequest::default(), &mut counters, later);
            probes.extend(admitted(decision).map(|permit| (index, permit)));
        }
    }
    assert_eq!(probes.len(), 1, "one for the whole proxy");
    // The worker that holds the probe is gone with it; its fellow takes the lead.
    let [_, mut left] = workers;
    let mut closed_after = None;
    for tick in 1..100_u64 {
        let now = later + Duration::from_millis(100 * tick);
        for _ in 0..10 {
            if let Some(permit) =
                admitted(left.admit(upstream, &mut GivenRequest::default(), &mut counters, now))
            {
                left.complete(permit, Outcome::Success, &mut counters, now);
            }
        }
        left.tick(&mut counters, now);
        let slices = [left.slice(now)];
        if let Some((directives, _)) = left.decide(&slices, &mut counters, now) {
            left.adopt(&directives, now);
            let is_closed = directives
                .entries()
                .all(|entry| entry.breaker == BreakerState::Closed);
            if is_closed && closed_after.is_none() {
                closed_after = Some(tick);
            }
        }
    }
    assert!(
        closed_after.is_some_and(|ticks| ticks < 50),
        "{closed_after:?}"
    );
}

/// Four places, of which requests that others overtake occupy three for a minute.
#[test]
fn requests_that_later_ones_overtook_take_nobodys_place() {
    let mut alone = Alone::new(
        r#"{"slo":{"latency":{"quantile":0.99,"target":"100ms"}},"limit":{"min":1,"initial":4,"max":4}}"#,
    );
    let traffic = Traffic {
        latency: 10,
        gap: 20,
        span: 200,
    };
    alone.drive(traffic);
    let mut late: Vec<_> = (0..3).map(|_| alone.admit().unwrap()).collect();
    alone.drive(traffic);
    assert_eq!(alone.snapshot().in_flight, 3, "they may stand in a queue");
    alone.drive(Traffic {
        span: 1_000,
        ..traffic
    });
    assert_eq!((alone.snapshot().in_flight, alone.snapshot().open), (0, 3));

    let before = alone.directive().learned.limit.latest.tail;
    for permit in &mut late {
        alone.respond(permit);
    }
    for permit in late {
        alone.complete(permit, Outcome::Success);
    }
    alone.tick();
    assert_eq!((alone.snapshot().in_flight, alone.snapshot().open), (0, 0));
    let after = alone.directive().learned.limit.latest.tail;
    assert!(
        after.get() <= before.get() * 2.0,
        "what they waited says nothing about a queue"
    );
}

/// No request is answered, so it is unknown whether there is a queue.
#[test]
fn requests_that_nobody_overtook_keep_their_places() {
    let mut alone = Alone::new(
        r#"{"slo":{"latency":{"quantile":0.99,"target":"100ms"}},"limit":{"min":1,"initial":4,"max":4},"breaker":{"enabled":false}}"#,
    );
    let late: Vec<_> = (0..3).map(|_| alone.admit().unwrap()).collect();
    for _ in 0..40 {
        alone.tick();
    }
    assert_eq!((alone.snapshot().in_flight, alone.snapshot().open), (3, 0));
    for permit in late {
        alone.complete(permit, Outcome::Cancelled);
    }
}
