//! Small fleets: they are deterministic, lose nothing, and agree with runs that keep every request.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use tidegate_sim::fleet::{
    self, Fleet, FleetFigures, FleetRun, FleetSize, FleetStory, FleetTopology,
};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::world;

const SMALL: FleetSize = FleetSize {
    callers: 20,
    rps: 2_000.0,
    endpoints: 4,
    seconds: 24,
    seed: 7,
};

fn play(fleet: &Fleet) -> FleetRun {
    fleet::play(fleet).unwrap()
}

fn figures(story: FleetStory, topology: FleetTopology) -> FleetFigures {
    play(&story.fleet(&SMALL, topology)).figures
}

#[test]
fn the_digest_is_the_same_again_and_differs_by_seed() {
    let digest = |seed| {
        let size = FleetSize {
            seconds: 12,
            seed,
            ..SMALL
        };
        let run = play(&FleetStory::Overload.fleet(&size, FleetTopology::Sidecars));
        (run.digest, run.events)
    };
    assert_eq!(digest(7), digest(7));
    assert_ne!(digest(7).0, digest(8).0);
}

#[test]
fn a_fleet_is_a_scenario_that_a_file_can_hold() {
    for story in FleetStory::ALL {
        let fleet = story.fleet(&SMALL, FleetTopology::Waypoints(3));
        let text = fleet.scenario.text().unwrap();
        let read = Scenario::parse(&text, story.name()).unwrap();
        assert_eq!(read, fleet.scenario, "{text}");
    }
}

/// Kept requests are drawn beforehand, and workers exchange at other instants, so figures agree only as closely as those of
/// two seeds.
#[test]
fn a_tally_agrees_with_a_run_that_keeps_every_request() {
    for story in [
        FleetStory::Steady,
        FleetStory::Overload,
        FleetStory::HalfLost,
        FleetStory::Outage,
    ] {
        let fleet = story.fleet(&SMALL, FleetTopology::Sidecars);
        let mine = play(&fleet).figures;
        let exact = world::play(&fleet.scenario, &tidegate_sim::tidegate::KIND)
            .unwrap()
            .figures;
        let of_offered = |count: u64| tidegate_sim::number::ratio(count, exact.offered);
        let series = || mine.series.iter();
        let sum = |value: fn(&fleet::FleetPoint) -> u64| -> f64 {
            let total: u64 = series().map(value).sum();
            tidegate_sim::number::ratio(total, mine.offered)
        };
        let name = story.name();
        let near = |what: &str, fleet: f64, world: f64, within: f64| {
            assert!(
                (fleet - world).abs() <= within,
                "{name}, {what}: {fleet:.4} in the fleet, {world:.4} with every request kept"
            );
        };
        let sent = tidegate_sim::number::ratio(mine.offered, exact.offered);
        near("offered", sent, 1.0, 0.02);
        near("good", sum(|p| p.good), of_offered(exact.good), 0.02);
        let shed = |p: &fleet::FleetPoint| p.shed_by_limit + p.shed_by_breaker;
        near("shed", sum(shed), of_offered(exact.shed), 0.02);
        near("failed", sum(|p| p.failed), of_offered(exact.failed), 0.005);
        near(
            "gave up",
            sum(|p| p.gave_up),
            of_offered(exact.gave_up),
            0.005,
        );
    }
}

#[test]
fn nothing_leaks_whatever_happens() {
    for story in FleetStory::ALL {
        for topology in [FleetTopology::Sidecars, FleetTopology::Waypoints(3)] {
            let figures = figures(story, topology);
            assert_eq!(figures.leaked, 0, "{} {topology}", story.name());
        }
    }
}

#[test]
fn callers_have_their_fair_share_of_what_one_waypoint_lets_in() {
    let figures = figures(FleetStory::Overload, FleetTopology::Waypoints(1));
    let overload = figures.phase("overload").unwrap();
    assert!(overload.served_fairness.unwrap() > 0.99, "{overload:?}");
    assert!(overload.score > 0.95, "{overload:?}");
}

#[test]
fn sidecars_shed_nothing_while_all_is_well_and_stop_a_dead_service() {
    let steady = figures(FleetStory::Steady, FleetTopology::Sidecars);
    let shed: u64 = steady
        .series
        .iter()
        .map(|p| p.shed_by_limit + p.shed_by_breaker)
        .sum();
    assert_eq!(shed, 0);
    let outage = figures(FleetStory::Outage, FleetTopology::Sidecars);
    let dead = outage.phase("outage").unwrap();
    assert!(dead.shed_by_breaker > 0.95, "{dead:?}");
    let after = outage.phase("after").unwrap();
    assert!(
        after.score > 0.99 && after.settle_s.unwrap() <= 2.0,
        "{after:?}"
    );
}

/// What keeps the service alive in the stories is the engines, not the load.
#[test]
fn without_protection_overload_leaves_hardly_any_good_answer() {
    let mut fleet = FleetStory::Overload.fleet(&SMALL, FleetTopology::Sidecars);
    fleet.is_protected = false;
    let overload = play(&fleet).figures;
    let overload = overload.phase("overload").unwrap().clone();
    assert!(overload.score < 0.1, "{overload:?}");
}

/// Once, a proxy that cut its limit alone mistook the others' gain for a slower service, and one with few requests deviated
/// by chance.
#[test]
fn sidecars_come_to_shares_that_are_alike_and_light_callers_are_not_put_off() {
    let size = FleetSize {
        callers: 300,
        rps: 30_000.0,
        endpoints: 30,
        ..SMALL
    };
    let overload = |story: FleetStory, seed| {
        let size = FleetSize { seed, ..size };
        let figures = play(&story.fleet(&size, FleetTopology::Sidecars)).figures;
        figures.phase("overload").unwrap().clone()
    };
    let equal = overload(FleetStory::Overload, size.seed);
    assert!(equal.served_fairness.unwrap() > 0.95, "{equal:?}");
    assert!(equal.score > 0.98, "{equal:?}");
    // There are 30 heavy callers: what they have is a matter of chance. Over 24 seeds light callers had 1.01 times as much of what
    // they asked for, with a standard deviation of 0.11. The bound for four seeds is two standard errors below that.
    let (mut light, mut heavy) = (0.0, 0.0);
    for seed in 11..15 {
        let unequal = overload(FleetStory::Unequal, seed);
        light += unequal.served_light.unwrap();
        heavy += unequal.served_heavy.unwrap();
    }
    assert!(light > heavy * 0.9, "{light} of light, {heavy} of heavy");
}
