//! Every scenario file, played by Tidegate: the same each time, within its ranges, and up to its targets.
//!
//! Ranges and targets are those of the median over three seeds, as on real sockets; the file's own seed is the first.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

use std::collections::BTreeSet;

use tidegate_sim::scenario::{Measure, Range, Scenario, folder};
use tidegate_sim::targets::Targets;
use tidegate_sim::tidegate;
use tidegate_sim::world::{Run, play};

/// Runs of each scenario; the median is judged.
const SEEDS: u64 = 3;

macro_rules! scenarios {
    ($($test:ident: $name:literal,)*) => {
        $(
            #[test]
            fn $test() {
                plays_as_expected($name);
            }
        )*

        /// The scenarios that have a test.
        const TESTED: &[&str] = &[$($name),*];
    };
}

scenarios! {
    back_with_errors: "back-with-errors",
    backlog_2x: "backlog-2x",
    bodies_free_07x: "bodies-free-07x",
    bodies_free_2x: "bodies-free-2x",
    brownout: "brownout",
    bursts: "bursts",
    capacity_halves: "capacity-halves",
    cold_cache: "cold-cache",
    config_push: "config-push",
    contention_2x: "contention-2x",
    correlated_outage: "correlated-outage",
    crashes_in_outage: "crashes-in-outage",
    crashing_path: "crashing-path",
    critical_5x: "critical-5x",
    critical_from_the_start: "critical-from-the-start",
    criticality_retries: "criticality-retries",
    dead_endpoint: "dead-endpoint",
    diurnal: "diurnal",
    early_headers_2x: "early-headers-2x",
    endpoints_1: "endpoints-1",
    endpoints_4: "endpoints-4",
    endpoints_8: "endpoints-8",
    endpoints_scale: "endpoints-scale",
    errors_by_load: "errors-by-load",
    event_streams: "event-streams",
    far_network: "far-network",
    flapping: "flapping",
    fleet_few_long: "fleet-few-long",
    fleet_outage: "fleet-outage",
    fleet_overload: "fleet-overload",
    fleet_small_shares: "fleet-small-shares",
    fleet_steady: "fleet-steady",
    floor_moves: "floor-moves",
    hang_impatient: "hang-impatient",
    hang_patient: "hang-patient",
    hang: "hang",
    leader_changed_errors: "leader-changed-errors",
    late_answers: "late-answers",
    leader_changed: "leader-changed",
    leader_lost_outage: "leader-lost-outage",
    leader_lost: "leader-lost",
    lockstep: "lockstep",
    lockstep_cold: "lockstep-cold",
    lockstep_over: "lockstep-over",
    long_tail: "long-tail",
    memory_leak: "memory-leak",
    mix_shift: "mix-shift",
    mostly_late: "mostly-late",
    mostly_late_start: "mostly-late-start",
    noisy_neighbour: "noisy-neighbour",
    one_dead: "one-dead",
    outage: "outage",
    overload_10x: "overload-10x",
    overload_then_outage: "overload-then-outage",
    overload_2x: "overload-2x",
    overload_5x: "overload-5x",
    pauses: "pauses",
    quota: "quota",
    ramp: "ramp",
    refused: "refused",
    retry_storm: "retry-storm",
    rolling_restarts: "rolling-restarts",
    slow_endpoint: "slow-endpoint",
    slow_long_tailed: "slow-long-tailed",
    slower_for_good: "slower-for-good",
    slower_while_overloaded: "slower-while-overloaded",
    slower_without_queue: "slower-without-queue",
    steady: "steady",
    step: "step",
    streams_held_07x: "streams-held-07x",
    streams_held_2x: "streams-held-2x",
    stubborn_retries: "stubborn-retries",
    trickle: "trickle",
    tight_objective: "tight-objective",
    two_slots: "two-slots",
    two_speeds: "two-speeds",
    unreachable: "unreachable",
    unshared_1: "unshared-1",
    unshared_4: "unshared-4",
    unshared_outage: "unshared-outage",
    uploads: "uploads",
    uploads_stalled: "uploads-stalled",
    worker_crash: "worker-crash",
    workers_1: "workers-1",
    workers_2: "workers-2",
    workers_4: "workers-4",
    workers_8: "workers-8",
}

#[test]
fn every_file_has_its_test() {
    let scenarios = Scenario::read_folder(&folder()).unwrap();
    let files: BTreeSet<&str> = scenarios.iter().map(|s| s.name.as_str()).collect();
    let tested: BTreeSet<&str> = TESTED.iter().copied().collect();
    assert_eq!(files, tested);
}

fn plays_as_expected(name: &str) {
    let scenario = Scenario::read(&folder().join(format!("{name}.toml"))).unwrap();
    let runs: Vec<Run> = (0..SEEDS)
        .map(|more| {
            let seed = scenario.seed + more;
            let scenario = Scenario {
                seed,
                ..scenario.clone()
            };
            play(&scenario, &tidegate::KIND).unwrap()
        })
        .collect();
    let again = play(&scenario, &tidegate::KIND).unwrap();
    assert_eq!(again.digest, runs[0].digest, "the same seed, another run");
    for run in &runs {
        assert_eq!(run.leaked, Some(0), "requests in flight after the end");
    }

    let targets = Targets::read().unwrap();
    let expected = scenario.expected_in_sim();
    let ranges = expected
        .iter()
        .map(|(measure, range)| ("expected", measure, range));
    let targets = targets.scenarios.get(name).into_iter().flatten();
    let targets = targets.map(|(measure, range)| ("target", measure, range));
    let missed: Vec<String> = ranges
        .chain(targets)
        .filter_map(|(what, measure, range)| miss(what, *measure, *range, &runs))
        .collect();
    assert!(missed.is_empty(), "{name}:\n{}", missed.join("\n"));
}

fn miss(what: &str, measure: Measure, range: Range, runs: &[Run]) -> Option<String> {
    let values: Vec<f64> = runs
        .iter()
        .map(|run| run.figures.measure(measure).unwrap_or(f64::NAN))
        .collect();
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    (!range.contains(median)).then(|| format!("{what} {measure} {range}, found {values:.4?}"))
}
