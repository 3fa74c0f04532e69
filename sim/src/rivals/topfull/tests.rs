use tidegate_core::Outcome;

use super::super::trial::{at, done, first_ask};
use super::step::ClusterState;
use super::*;

/// Two entries: `shop` calls `stock`, `blog` calls nothing.
fn topfull(step: RateStep) -> TopFull {
    let text = "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n[slo]\nlatency='100ms'\n\
        [[clients]]\nupstream='shop'\nload=[{at='0s', rps=1.0}]\n\
        [[upstreams]]\nname='shop'\ncalls=[{upstream='stock'}]\n\
        [[upstreams]]\nname='stock'\n[[upstreams]]\nname='blog'\n";
    TopFull::new(&Scenario::parse(text, "test").unwrap(), step)
}

const SHOP: usize = 0;
const STOCK: usize = 1;
const BLOG: usize = 2;

/// A second in which `count` requests come to an entry, each of which ends after `latency_ms`; how many are admitted.
fn second(topfull: &mut TopFull, (upstream, path): (usize, &str), count: u64, end: (u64, bool)) {
    let from = topfull.ticks * 1_000;
    for request in 0..count {
        let now = at(from + request * 1_000 / count);
        let ask = Ask {
            request,
            upstream,
            path,
            ..first_ask()
        };
        if topfull.admit(&ask, now) == Admission::Admit {
            let outcome = if end.1 {
                Outcome::Success
            } else {
                Outcome::Cancelled
            };
            let done = Done {
                request,
                upstream,
                ..done(outcome, end.0)
            };
            topfull.complete(&done, now);
        }
    }
}

fn work(topfull: &mut TopFull, upstream: usize, millis: u64) {
    let begun = WorkBegun {
        upstream,
        waited: Duration::ZERO,
        work: Duration::from_millis(millis),
        slots: 1,
    };
    topfull.begun(&begun, at(0));
}

fn end_second(topfull: &mut TopFull) {
    let next = (topfull.ticks + 1) * 1_000;
    topfull.tick(at(next));
}

#[test]
fn entry_is_limited_to_what_asks_when_a_service_behind_it_is_overloaded() {
    let mut topfull = topfull(RateStep::Mimd);
    for busy_ms in [0, 801] {
        second(&mut topfull, (SHOP, "/"), 200, (50, true));
        work(&mut topfull, STOCK, busy_ms);
        end_second(&mut topfull);
    }
    assert!((topfull.apis[0].rate() - 200.0).abs() < 1e-9);
    let limited = topfull.clusters.iter().map(|one| one.apis.clone());
    assert_eq!(limited.collect::<Vec<_>>(), [BTreeSet::from([0])]);
}

#[test]
fn a_service_at_the_threshold_is_not_overloaded() {
    let mut topfull = topfull(RateStep::Mimd);
    for busy_ms in [800, 800] {
        second(&mut topfull, (SHOP, "/"), 200, (50, true));
        work(&mut topfull, STOCK, busy_ms);
        end_second(&mut topfull);
    }
    assert_eq!(topfull.clusters, []);
}

#[test]
fn requests_between_services_are_never_shed() {
    let mut topfull = topfull(RateStep::Mimd);
    let inner = Ask {
        upstream: STOCK,
        service: Some(SHOP),
        ..first_ask()
    };
    for _ in 0..100 {
        assert_eq!(topfull.admit(&inner, at(0)), Admission::Admit);
    }
    assert!(topfull.apis.is_empty());
}

#[test]
fn steps_are_as_published_and_the_ratio_has_the_bounds_of_the_policy() {
    let objective = Duration::from_millis(100);
    let change = |step: RateStep, goodput, latency_ms| {
        let latency = Duration::from_millis(latency_ms);
        step.change(&ClusterState { goodput, latency }, objective)
    };
    for (latency_ms, expected) in [(0, 0.5), (50, 0.25), (99, 0.01), (100, 0.01)] {
        assert!((change(RateStep::Mimd, 0.3, latency_ms) - 0.01).abs() < 1e-9);
        assert!((change(RateStep::Ratio, 0.3, latency_ms) - expected).abs() < 1e-9);
    }
    for (goodput, expected) in [(0.3, -0.5), (0.8, -0.2), (0.99, -0.05)] {
        assert!((change(RateStep::Mimd, goodput, 101) + 0.05).abs() < 1e-9);
        assert!((change(RateStep::Ratio, goodput, 101) - expected).abs() < 1e-9);
    }
}

#[test]
fn rate_falls_while_the_objective_is_missed_and_then_rises_to_what_asks() {
    let mut topfull = topfull(RateStep::Ratio);
    for _ in 0..2 {
        second(&mut topfull, (SHOP, "/"), 200, (50, true));
        work(&mut topfull, STOCK, 900);
        end_second(&mut topfull);
    }
    second(&mut topfull, (SHOP, "/"), 200, (150, false));
    work(&mut topfull, STOCK, 900);
    end_second(&mut topfull);
    assert!(
        (topfull.apis[0].rate() - 100.0).abs() < 1e-9,
        "no success: half of it goes"
    );
    second(&mut topfull, (SHOP, "/"), 200, (50, true));
    work(&mut topfull, STOCK, 900);
    end_second(&mut topfull);
    assert!((topfull.apis[0].rate() - 125.0).abs() < 1e-9);
    second(&mut topfull, (SHOP, "/"), 90, (50, true));
    end_second(&mut topfull);
    assert_eq!(topfull.clusters, [], "all that ask are served");
    assert!((topfull.apis[0].rate() - 90.0).abs() < 1e-9);
}

#[test]
fn apis_that_share_an_overloaded_service_are_one_cluster_until_they_pass_none() {
    let mut topfull = topfull(RateStep::Mimd);
    for _ in 0..2 {
        second(&mut topfull, (SHOP, "/a"), 100, (150, true));
        second(&mut topfull, (SHOP, "/b"), 100, (150, true));
        second(&mut topfull, (BLOG, "/"), 100, (150, true));
        work(&mut topfull, STOCK, 900);
        end_second(&mut topfull);
    }
    let clusters = topfull.clusters.iter().map(|one| one.apis.len());
    assert_eq!(clusters.collect::<Vec<_>>(), [2], "the blog is free");
    second(&mut topfull, (SHOP, "/a"), 120, (150, true));
    second(&mut topfull, (SHOP, "/b"), 120, (150, true));
    end_second(&mut topfull);
    let clusters = topfull.clusters.iter().map(|one| one.apis.len());
    assert_eq!(clusters.collect::<Vec<_>>(), [1, 1], "each on its own");
}

#[test]
fn what_has_no_room_at_one_api_falls_on_the_next() {
    let api = |asked: u64, services: &[usize]| {
        let mut api = EntryApi::new(services.iter().copied().collect());
        for _ in 0..asked {
            api.admit(at(0));
        }
        api.roll();
        api.begin_limit(at(0));
        api
    };
    // The first one passes a service that two use, the others one that three use.
    let mut apis = vec![api(40, &[0, 1]), api(100, &[0, 1]), api(200, &[1])];
    let chosen = BTreeSet::from([0, 1, 2]);
    let overloaded = BTreeSet::from([0, 1]);
    change_rates(&mut apis, &chosen, &overloaded, (-0.5, at(0)));
    // 70 of 140: 30 of 35 at the first one, which keeps 10, and 40 at the second.
    let rates: Vec<f64> = apis.iter().map(EntryApi::rate).collect();
    for (rate, expected) in rates.iter().zip([10.0, 60.0, 200.0]) {
        assert!((rate - expected).abs() < 1e-9, "{rates:?}");
    }
    // Up, the third one is first: 60 of 60, but it has room for 20 only, and 40 are left for the others.
    change_rates(&mut apis, &chosen, &overloaded, (0.3, at(0)));
    let rates: Vec<f64> = apis.iter().map(EntryApi::rate).collect();
    for (rate, expected) in rates.iter().zip([30.0, 80.0, 220.0]) {
        assert!((rate - expected).abs() < 1e-9, "{rates:?}");
    }
}
