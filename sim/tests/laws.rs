//! Checks of the control laws that ranges of figures cannot express: reasons, moments, and equal results.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

use std::time::Duration;

use tidegate_core::{BreakerPhase, TripReason};
use tidegate_sim::roster;
use tidegate_sim::run::{Noted, Run};
use tidegate_sim::scenario::{Scenario, folder};
use tidegate_sim::targets::Targets;
use tidegate_sim::tidegate;
use tidegate_sim::world::{START, play};

fn scenario(name: &str) -> Scenario {
    Scenario::read(&folder().join(format!("{name}.toml"))).unwrap()
}

fn run(name: &str) -> Run {
    play(&scenario(name), &tidegate::KIND).unwrap()
}

/// The median score over three seeds.
fn score(name: &str) -> f64 {
    let scenario = scenario(name);
    let mut scores: Vec<f64> = (0..3)
        .map(|more| {
            let seed = scenario.seed + more;
            let scenario = Scenario {
                seed,
                ..scenario.clone()
            };
            play(&scenario, &tidegate::KIND).unwrap().figures.score
        })
        .collect();
    scores.sort_by(f64::total_cmp);
    scores[1]
}

fn spread(names: &[&str]) -> f64 {
    let scores: Vec<f64> = names.iter().map(|name| score(name)).collect();
    println!("{names:?}: {scores:.3?}");
    let most = scores.iter().copied().fold(0.0, f64::max);
    most - scores.iter().copied().fold(f64::MAX, f64::min)
}

fn seconds(noted: &Noted) -> f64 {
    noted.note.at.saturating_since(START).as_secs_f64()
}

/// The first time that a breaker opened, in seconds, and why.
fn first_trip(run: &Run) -> (f64, &'static str) {
    let open = |noted: &&Noted| noted.note.breaker == BreakerPhase::Open;
    let first = run.notes.iter().find(open).unwrap();
    (seconds(first), first.note.reason)
}

#[test]
fn scenarios_that_must_come_out_alike_do() {
    for alike in Targets::read().unwrap().alike {
        let names: Vec<&str> = alike.scenarios.iter().map(String::as_str).collect();
        assert!(spread(&names) <= alike.within, "{}", alike.what);
    }
}

#[test]
fn any_number_of_endpoints_comes_out_alike() {
    // With 8 endpoints of 2 slots each, some wait at one endpoint while another is idle.
    let spread = spread(&["endpoints-1", "endpoints-4", "endpoints-8"]);
    assert!(spread <= 0.03, "{spread}");
}

#[test]
fn a_dead_upstream_trips_by_its_failures_and_one_that_hangs_by_its_silence() {
    let (at, reason) = first_trip(&run("outage"));
    assert_eq!(reason, TripReason::ConsecutiveFailures.as_str());
    assert!((10.0..10.4).contains(&at), "{at}");

    let (at, reason) = first_trip(&run("hang"));
    assert_eq!(reason, TripReason::Hang.as_str());
    assert!((10.0..11.0).contains(&at), "{at}");
}

#[test]
fn a_breaker_that_closes_again_was_half_open_before() {
    for name in ["outage", "hang", "refused", "flapping", "correlated-outage"] {
        let run = run(name);
        for upstream in 0..scenario(name).upstreams.len() {
            let of_this = run.notes.iter().filter(|n| n.note.upstream == upstream);
            let phases: Vec<BreakerPhase> = of_this.map(|noted| noted.note.breaker).collect();
            assert_eq!(phases[0], BreakerPhase::Open, "{name}");
            assert_eq!(phases.last(), Some(&BreakerPhase::Closed), "{name}");
            for pair in phases.windows(2) {
                let is_step = match pair[1] {
                    BreakerPhase::Closed => pair[0] == BreakerPhase::HalfOpen,
                    BreakerPhase::HalfOpen => pair[0] == BreakerPhase::Open,
                    BreakerPhase::Open => true,
                };
                assert!(is_step, "{name}: {phases:?}");
            }
        }
    }
}

#[test]
fn one_dead_upstream_leaves_the_other_untouched() {
    let scenario = scenario("one-dead");
    let run = play(&scenario, &tidegate::KIND).unwrap();
    let healthy = scenario.upstreams.iter().position(|u| u.name == "healthy");
    assert!(run.notes.iter().all(|n| Some(n.note.upstream) != healthy));
    let is_healthys = |client: usize| scenario.clients[client].upstream == "healthy";
    let mut sheds = run.records.iter().filter(|record| record.is_shed());
    assert!(sheds.all(|record| !is_healthys(record.arrival.client)));
}

#[test]
fn retries_go_before_first_attempts() {
    let run = run("stubborn-retries");
    assert!(run.sheds["retry"] > run.sheds["limit"], "{:?}", run.sheds);
}

#[test]
fn who_matters_less_than_what_can_be_carried_goes_for_its_criticality() {
    // The two upper classes and a part of the third fill the capacity: the fourth goes as a whole.
    let run = run("criticality-retries");
    assert!(
        run.sheds["criticality"] > run.sheds["limit"],
        "{:?}",
        run.sheds
    );
}

#[test]
fn endpoints_scale_the_limit_at_once() {
    let run = run("endpoints-scale");
    let limit = |at: f64| {
        let sample = run.samples.iter().find(|s| s.at_s >= at).unwrap();
        sample.limit.unwrap()
    };
    let (before, after) = (limit(9.85), limit(10.25));
    assert!(after >= 3 * before, "{before} to {after}");
}

#[test]
fn a_crashed_worker_goes_on_with_what_was_learned() {
    let run = run("worker-crash");
    let limit = |from: f64| {
        let samples = run.samples.iter().filter(|s| s.at_s >= from).take(10);
        samples.map(|s| s.limit.unwrap()).sum::<u64>()
    };
    let (before, after) = (limit(9.0), limit(10.1));
    assert!(
        after * 10 > before * 7 && after * 10 < before * 14,
        "{before} to {after}"
    );
    let good_from = |from: f64| {
        let window = from..from + 2.0;
        let slo = Duration::from_millis(300);
        let records = run.records.iter().filter(|record| record.is_good(slo));
        let ended = records.map(|record| (record.arrival.at + record.latency).as_secs_f64());
        ended.filter(|at| window.contains(at)).count()
    };
    let (before, after) = (good_from(7.0), good_from(10.1));
    assert!(after * 10 >= before * 9, "{before} to {after}");
}

#[test]
fn every_contender_plays_the_same_each_time() {
    for kind in roster::all() {
        let scenario = scenario("critical-5x").scaled(0.25);
        let digest = |scenario: &Scenario| play(scenario, &kind).unwrap().digest;
        assert_eq!(digest(&scenario), digest(&scenario), "{}", kind.name);
        let other = Scenario {
            seed: scenario.seed + 1,
            ..scenario.clone()
        };
        assert_ne!(digest(&scenario), digest(&other), "{}", kind.name);
    }
}

/// Before, requests were read by the policy of the scenario, whichever one ran.
#[test]
fn health_checks_are_exempt_only_while_the_policy_that_runs_exempts_them() {
    let text = "name='t'\ntitle='t'\nprose='p'\nseed=3\nduration='20s'\n\
         [[clients]]\nload=[{at='0s', x=3.0}]\n\
         [[clients]]\nagent='kube-probe/1.30'\narrivals='constant'\nload=[{at='0s', rps=2.0}]\n\
         [[incidents]]\nat='10s'\nkind='push-other'";
    let scenario = Scenario::parse(text, "test").unwrap();
    let run = play(&scenario, &tidegate::KIND).unwrap();
    let shed = |from: u64, to: u64| {
        let within = Duration::from_secs(from)..Duration::from_secs(to);
        let probes = run.records.iter().filter(|one| one.arrival.client == 1);
        let probes = probes.filter(|one| within.contains(&one.arrival.at));
        probes.filter(|one| one.is_shed()).count()
    };
    assert_eq!(shed(0, 10), 0);
    assert!(shed(11, 20) > 5, "{}", shed(11, 20));
}
