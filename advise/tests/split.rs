//! One objective end to end, as targets for each call.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::common::{CALL, Call, built, of};
use proptest::prelude::*;
use tidegate_advise::split::{
    EndToEnd, ObjectiveSplit, ParallelCalls, SplitError, SplitPart, split,
};
use tidegate_core::config::parse_duration;

fn call(caller: &'static str, upstream: &'static str, requests: u32, scale: f64) -> Call {
    Call {
        caller,
        upstream,
        requests,
        mean: 2.0 * scale,
        p50: 1.5 * scale,
        p95: 4.0 * scale,
        p99: 8.0 * scale,
        ..CALL
    }
}

fn objective(millis: u64) -> EndToEnd {
    EndToEnd {
        entry: "shop/web".to_owned(),
        quantile: 0.99,
        target: Duration::from_millis(millis),
        parallel: Vec::new(),
    }
}

fn part<'a>(found: &'a ObjectiveSplit, upstream: &str) -> &'a SplitPart {
    let of = |part: &&SplitPart| part.upstream == format!("shop/{upstream}");
    found.parts.iter().find(of).unwrap()
}

fn seconds(part: &SplitPart) -> f64 {
    parse_duration(&part.target).unwrap().as_secs_f64()
}

/// A gateway, a service, and two that it calls.
fn shop() -> [Call; 3] {
    [
        call("gateway", "web", 36_000, 20.0),
        call("web", "cart", 36_000, 5.0),
        call("web", "prices", 36_000, 5.0),
    ]
}

#[test]
fn calls_in_sequence_share_the_objective() {
    let built = of(&shop());

    let found = split(&built.graph, &objective(800)).unwrap();

    let (web, cart, prices) = (
        part(&found, "web"),
        part(&found, "cart"),
        part(&found, "prices"),
    );
    assert!(found.used_seconds <= 0.8 + 1e-9, "{}", found.used_seconds);
    assert!(found.used_seconds > 0.79, "all of it is given away");
    assert!(
        web.own_seconds + seconds(cart) + seconds(prices) <= 0.8 + 1e-9,
        "{found:?}"
    );
    assert!(
        (seconds(cart) - seconds(prices)).abs() < 0.002,
        "alike, but for one unit"
    );
    assert!(
        web.own_seconds > seconds(cart),
        "the slower one gets more: {found:?}"
    );
    assert_eq!(web.caller, None);
    assert!(found.expected_late.unwrap() < 0.01);
}

#[test]
fn calls_at_the_same_time_do_not_add_up() {
    let built = of(&shop());
    let mut both = objective(100);
    let upstreams = BTreeSet::from(["shop/cart".to_owned(), "shop/prices".to_owned()]);
    both.parallel = vec![ParallelCalls {
        caller: "shop/web".to_owned(),
        upstreams,
    }];

    let sequence = split(&built.graph, &objective(100)).unwrap();
    let parallel = split(&built.graph, &both).unwrap();

    let (cart, prices) = (part(&parallel, "cart"), part(&parallel, "prices"));
    assert!(
        seconds(cart) > 0.02 && seconds(prices) > 0.02,
        "{parallel:?}"
    );
    let longest = seconds(cart).max(seconds(prices));
    assert!(part(&parallel, "web").own_seconds + longest <= 0.1 + 1e-9);
    assert!(
        parallel.expected_late.unwrap() < sequence.expected_late.unwrap(),
        "{parallel:?} {sequence:?}"
    );
}

#[test]
fn calls_at_the_same_time_may_be_named_by_service() {
    let built = built(include_str!("recordings/shop.json"));
    let late = |names: [&str; 3]| {
        let mut objective = objective(400);
        names[0].clone_into(&mut objective.entry);
        objective.parallel = vec![ParallelCalls {
            caller: names[0].to_owned(),
            upstreams: names[1..].iter().map(|name| (*name).to_owned()).collect(),
        }];
        let found = split(&built.graph, &objective).unwrap();
        format!("{found:?}")
    };

    assert_eq!(
        late(["shop/web", "shop/cart", "shop/prices"]),
        late(["shop/web-v1", "shop/cart-v1", "shop/prices-v1"])
    );
}

#[test]
fn a_service_that_is_called_three_times_counts_three_times() {
    let built = of(&[
        call("gateway", "web", 36_000, 20.0),
        call("web", "cart", 108_000, 2.0),
    ]);

    let found = split(&built.graph, &objective(300)).unwrap();

    let (web, cart) = (part(&found, "web"), part(&found, "cart"));
    assert!((cart.calls - 3.0).abs() < 1e-9);
    assert!(web.own_seconds + 3.0 * seconds(cart) <= 0.3 + 1e-9);
}

/// Before, the caller with the highest known level won, even if the service was faster for it at every level.
#[test]
fn a_slower_call_without_a_known_p99_is_not_hidden_by_a_faster_one_with_it() {
    let found = |calls: &[Call]| split(&of(calls).graph, &objective(800)).unwrap();
    let fast = || call("gateway", "web", 36_000, 1.0);
    let other = |scale| Call {
        p99: f64::NAN,
        ..call("batch", "web", 36_000, scale)
    };

    let least = found(&[fast(), other(20.0)]).least_seconds;
    assert!((least - 0.03).abs() < 1e-9, "the slower median: {least}");
    let same = found(&[other(20.0), fast()]).least_seconds;
    assert!((least - same).abs() < 1e-9, "in any order: {same}");

    assert_eq!(
        found(&[fast(), other(1.0)]).expected_late,
        found(&[fast()]).expected_late,
        "equally slow: the one of which more is known"
    );
}

#[test]
fn a_rare_call_gets_less_than_one_that_every_request_makes() {
    let built = of(&[
        call("gateway", "web", 36_000, 20.0),
        call("web", "cart", 36_000, 5.0),
        call("web", "gift", 720, 5.0),
    ]);

    let found = split(&built.graph, &objective(150)).unwrap();

    let (cart, gift) = (part(&found, "cart"), part(&found, "gift"));
    assert!(seconds(gift) < seconds(cart), "{found:?}");
    assert!(
        part(&found, "web").own_seconds + seconds(cart) + seconds(gift) <= 0.15 + 1e-9,
        "a request that makes both calls keeps the objective"
    );
}

#[test]
fn an_objective_below_the_medians_gets_no_split_but_a_reason() {
    let built = of(&shop());

    let found = split(&built.graph, &objective(20)).unwrap();

    assert!(found.parts.is_empty());
    assert!((found.least_seconds - 0.030).abs() < 1e-9, "{found:?}");
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("no split can keep it")),
        "{:?}",
        found.notes
    );
}

#[test]
fn an_objective_that_is_expected_to_be_missed_says_so() {
    let built = of(&shop());

    let found = split(&built.graph, &objective(60)).unwrap();

    assert!(found.expected_late.unwrap() > 0.01);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("expected to be late")),
        "{:?}",
        found.notes
    );
}

#[test]
fn a_cycle_is_reported_and_not_followed() {
    let mut calls = shop().to_vec();
    calls.push(call("cart", "web", 100, 5.0));
    calls.push(call("prices", "prices", 100, 5.0));
    let built = of(&calls);

    let found = split(&built.graph, &objective(800)).unwrap();

    assert_eq!(
        found.cycles,
        [
            vec!["shop/web".to_owned(), "shop/cart".to_owned()],
            vec!["shop/prices".to_owned()]
        ]
    );
    assert_eq!(found.parts.len(), 3);
}

#[test]
fn a_name_that_is_not_in_the_graph_is_an_error() {
    let built = of(&shop());
    let wrong = EndToEnd {
        entry: "shop/weB".to_owned(),
        ..objective(800)
    };

    let error = split(&built.graph, &wrong).unwrap_err();

    assert_eq!(
        error,
        SplitError::Service {
            name: "shop/weB".to_owned(),
            found: Vec::new()
        }
    );
    assert_eq!(
        error.to_string(),
        r#"found "shop/weB", expected the name of a service in the graph"#
    );
}

#[test]
fn a_recorded_chain_is_split() {
    let built = built(include_str!(
        "../../graph/tests/recordings/istio-sidecar.json"
    ));
    let objective = EndToEnd {
        entry: "bookinfo/productpage-v1".to_owned(),
        ..objective(800)
    };

    let found = split(&built.graph, &objective).unwrap();

    let reviews = found
        .parts
        .iter()
        .find(|part| part.upstream == "bookinfo/reviews-v1")
        .unwrap();
    assert!((reviews.calls - 0.5).abs() < 1e-9, "10 of 20 a second");
    assert_eq!(found.parts.len(), 5, "details-v0 has ended: {found:?}");
}

#[expect(
    clippy::indexing_slicing,
    reason = "the strategy stays below the length"
)]
fn named(number: usize) -> &'static str {
    NAMES[number]
}

const NAMES: [&str; 7] = ["web", "a", "b", "c", "d", "e", "f"];

fn graphs() -> impl Strategy<Value = (Vec<Call>, Vec<(usize, Vec<usize>)>)> {
    let edge = (0..7_usize, 0..7_usize, 1..200_000_u32, 0.1..50.0_f64);
    let edges = prop::collection::vec(edge, 1..14).prop_map(|edges| {
        let unique: BTreeMap<(usize, usize), (u32, f64)> = edges
            .into_iter()
            .map(|(from, to, requests, scale)| ((from, to), (requests, scale)))
            .collect();
        let mut calls = vec![call("gateway", "web", 36_000, 10.0)];
        for ((from, to), (requests, scale)) in unique {
            calls.push(call(named(from), named(to), requests, scale));
        }
        calls
    });
    let groups = prop::collection::vec((0..7_usize, prop::collection::vec(0..7_usize, 1..4)), 0..3);
    (edges, groups)
}

/// The time of a service as the targets have it: its own, and what it calls one after the other, or at the same time.
fn sum(found: &ObjectiveSplit, groups: &[ParallelCalls], upstream: &str) -> f64 {
    let own = found.parts.iter().find(|part| part.upstream == upstream);
    let mut seconds = own.map_or(0.0, |part| part.own_seconds);
    let mut longest: BTreeMap<usize, f64> = BTreeMap::new();
    for part in &found.parts {
        if part.caller.as_deref() != Some(upstream) {
            continue;
        }
        let here = (part.calls - 0.05).ceil().max(1.0) * sum(found, groups, &part.upstream);
        let group = groups
            .iter()
            .position(|group| group.caller == upstream && group.upstreams.contains(&part.upstream));
        match group {
            Some(group) => {
                let most = longest.entry(group).or_default();
                *most = most.max(here);
            }
            None => seconds += here,
        }
    }
    seconds + longest.values().sum::<f64>()
}

proptest! {
    #[test]
    fn the_parts_of_every_path_sum_to_at_most_the_objective(
        (calls, groups) in graphs(),
        millis in 10..20_000_u64,
    ) {
        let built = of(&calls);
        let known: BTreeSet<&str> = calls.iter().flat_map(|call| [call.caller, call.upstream]).collect();
        let mut objective = objective(millis);
        objective.parallel = groups
            .into_iter()
            .filter(|(caller, upstreams)| known.contains(NAMES[*caller]) && upstreams.iter().all(|name| known.contains(NAMES[*name])))
            .map(|(caller, upstreams)| ParallelCalls {
                caller: format!("shop/{}", NAMES[caller]),
                upstreams: upstreams.into_iter().map(|name| format!("shop/{}", NAMES[name])).collect(),
            })
            .collect();
        let found = split(&built.graph, &objective).unwrap();
        let target = objective.target.as_secs_f64();
        if found.parts.is_empty() {
            prop_assert!(found.least_seconds > target);
        } else {
            prop_assert!(found.used_seconds <= target * (1.0 + 1e-6), "{found:?}");
            let summed = sum(&found, &objective.parallel, "shop/web");
            prop_assert!(summed <= target * (1.0 + 1e-6), "{summed} {found:?}");
            for part in &found.parts {
                prop_assert!(part.own_seconds >= 0.0 && (0.5..=0.999).contains(&part.quantile), "{part:?}");
            }
        }
    }
}
