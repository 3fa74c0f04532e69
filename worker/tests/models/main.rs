//! Every order in which workers of a proxy can call it, up to a bound, with the filter's own code as the step from state
//! to state: `docs/models.md`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a model that panics fails"
)]

mod breaker;
mod explore;
mod lives;
mod outside;
mod process;
mod rest;
mod vm;
mod watch;
mod way;
mod workers;

use std::cell::{Cell, RefCell};

use breaker::{Breaker, Tenth};
use explore::explore;
use lives::Lives;
use process::Broken;
use rest::Rest;
use tidegate_core::WIRE_VERSION;
use vm::Ask;
use workers::{Bounds, Workers};

/// Each invariant holds in all states of these; the deep ones take minutes.
struct Bound {
    ticks: u8,
    crashes: u8,
    pushes: u8,
}

const QUICK: Bound = Bound {
    ticks: 1,
    crashes: 0,
    pushes: 0,
};
const DEEP: Bound = Bound {
    ticks: 2,
    crashes: 1,
    pushes: 1,
};
/// No model is larger.
const MOST: usize = 4_000_000;
const V: u8 = WIRE_VERSION;
const STARTED: [(u64, usize, Ask); 2] = [(0, 0, Ask::Start), (0, 1, Ask::Start)];
const LED: [(u64, usize, Ask); 4] = [STARTED[0], STARTED[1], (0, 0, Ask::Tick), (0, 1, Ask::Tick)];

/// A model of workers of these versions, after `before`.
fn workers(versions: &[u8], before: &[(u64, usize, Ask)], bounds: Bounds, rounds: u32) -> Workers {
    Workers {
        broken: Broken::Nothing,
        versions: versions.to_vec(),
        before: before.to_vec(),
        bounds,
        merges: true,
        lives: RefCell::new(Lives::new(versions, Broken::Nothing, true)),
        rest: Rest {
            rounds,
            reconciled: 70,
        },
    }
}

/// Two workers of which one leads, and may crash or fall silent for longer than its lease.
fn lease(bound: &Bound) -> Workers {
    let ticks = |more| vec![(Ask::Tick, bound.ticks + more)];
    let bounds = Bounds {
        asks: vec![ticks(0), ticks(1)],
        times: vec![(100, 1), (600, 1)],
        crashes: 1,
    };
    workers(&[V; 2], &LED[..3], bounds, 20)
}

/// Workers that start at the same moment; the first two tick.
fn births(count: usize) -> Workers {
    let asks = (0..count).map(|vm| vec![(Ask::Start, 1), (Ask::Tick, u8::from(vm < 2))]);
    let bounds = Bounds {
        asks: asks.collect(),
        ..Bounds::default()
    };
    workers(&vec![V; count], &[], bounds, 20)
}

/// A worker that is stuck for so long that its place goes to another, which starts meanwhile.
fn places(bound: &Bound) -> Workers {
    let bounds = Bounds {
        asks: vec![
            vec![(Ask::Tick, bound.ticks)],
            vec![(Ask::Tick, bound.ticks)],
            vec![(Ask::Start, 1), (Ask::Tick, bound.crashes)],
        ],
        times: vec![(3_100, 1)],
        crashes: 0,
    };
    let before = [&LED[..], &[(100, 0, Ask::Tick)]].concat();
    workers(&[V; 3], &before, bounds, 40)
}

/// Requests at both workers, one of which may crash in the middle of anything; a push at one.
fn requests(bound: &Bound) -> Workers {
    let bounds = Bounds {
        asks: vec![
            vec![
                (Ask::Arrive, 1),
                (Ask::Answer("200"), 1),
                (Ask::Tick, bound.crashes),
            ],
            vec![
                (Ask::Arrive, 1),
                (Ask::Leave, 1),
                (Ask::Tick, 1),
                (Ask::Push, bound.pushes),
            ],
        ],
        times: Vec::new(),
        crashes: 1,
    };
    workers(&[V; 2], &LED, bounds, 20)
}

/// A worker has seen an outage and has closed its gate; the other, which leads, has not heard of it yet.
fn outage(bound: &Bound) -> Workers {
    let mut before = STARTED.to_vec();
    for tick in 1..=20 {
        before.extend((0..2).map(|vm| (tick * 100, vm, Ask::Tick)));
        for _ in 0..4 {
            before.extend([
                (tick * 100, 1, Ask::Arrive),
                (tick * 100, 1, Ask::Answer("500")),
            ]);
        }
    }
    let probe = vec![
        (Ask::Tick, bound.ticks),
        (Ask::Arrive, 1),
        (Ask::Answer("200"), 1),
        (Ask::Answer("500"), bound.crashes),
        (Ask::Push, bound.pushes),
    ];
    let bounds = Bounds {
        asks: vec![vec![(Ask::Tick, bound.ticks)], probe],
        times: vec![(100, bound.crashes), (400, 1)],
        crashes: bound.crashes,
    };
    workers(&[V; 2], &before, bounds, 20)
}

/// Two versions of the module side by side, each with requests.
fn versions(bound: &Bound) -> Workers {
    let bounds = Bounds {
        asks: vec![
            vec![(Ask::Arrive, 1), (Ask::Tick, 1)],
            vec![
                (Ask::Arrive, bound.pushes),
                (Ask::Answer("200"), bound.pushes),
                (Ask::Tick, 1),
            ],
        ],
        times: vec![(100, bound.pushes)],
        crashes: bound.crashes,
    };
    workers(&[V, V + 1], &LED, bounds, 40)
}

/// Visits all states, and says how many there are.
fn holds(name: &str, model: &Workers) {
    match explore(model, MOST) {
        Ok(visited) => println!("{name}: {visited}"),
        Err(violation) => panic!("{name}: {violation}"),
    }
}

/// What is found when something is broken on purpose.
fn found(broken: Broken, model: Workers) -> String {
    let found = explore(&Workers { broken, ..model }, MOST);
    found.expect_err("must be found").what
}

#[test]
fn a_lease_has_one_holder_and_one_leader_decides() {
    holds("lease", &lease(&QUICK));
    let what = found(Broken::LeaseCompare, lease(&QUICK));
    assert!(what.contains("took a lease that another held"), "{what}");
    let what = found(Broken::LeaseAnswer, lease(&QUICK));
    assert!(what.contains("although another leads"), "{what}");
}

#[test]
fn workers_that_start_together_are_told_apart() {
    holds("births", &births(2));
    let what = found(Broken::SerialCompare, births(2));
    assert!(what.contains("decide in one round"), "{what}");
}

#[test]
fn a_worker_that_was_stuck_gets_another_place() {
    holds("places", &places(&QUICK));
    let what = found(Broken::Places, places(&QUICK));
    assert!(what.contains("have a place of their own"), "{what}");
}

#[test]
fn every_request_is_counted_once_and_in_flight_while_it_is() {
    holds("requests", &requests(&QUICK));
    let what = found(Broken::AtomicGauge, requests(&QUICK));
    assert!(what.contains("are in flight, and the count says"), "{what}");
    let what = found(Broken::OnceCounted, requests(&QUICK));
    assert!(what.contains("requests were counted"), "{what}");
    let what = found(Broken::Correction, requests(&QUICK));
    assert!(what.contains("are in flight, and the count says"), "{what}");
}

#[test]
fn no_gate_stays_closed_without_a_reason() {
    holds("outage", &outage(&QUICK));
    let what = found(Broken::Directives, outage(&QUICK));
    assert!(what.contains("shed a good upstream's requests"), "{what}");
}

#[test]
fn two_versions_leave_each_others_requests_alone() {
    holds("versions", &versions(&QUICK));
    let what = found(Broken::Versions, versions(&QUICK));
    assert!(what.contains("are in flight, and the count says"), "{what}");
}

/// A field that decides what a VM does, and that is not compared, would hide states: it would show here.
#[test]
fn lives_that_are_taken_for_one_do_the_same() {
    let models: [fn() -> Workers; 6] = [
        || lease(&QUICK),
        || births(2),
        || places(&QUICK),
        || requests(&QUICK),
        || outage(&QUICK),
        || versions(&QUICK),
    ];
    let mut taken = 0;
    for model in models {
        let (merged, fewer) = outside::seen(model(), true, MOST);
        let (single, more) = outside::seen(model(), false, MOST);
        assert!(merged == single, "{} and {}", merged.len(), single.len());
        taken += more - fewer;
    }
    assert!(taken > 0, "none were taken for one");
}

/// The breaker after so many tenths of a second of good answers, and then of failures.
fn breaker((good, fails): (usize, usize), events: usize) -> Breaker {
    Breaker {
        before: [vec![Tenth::Good; good], vec![Tenth::Fails; fails]].concat(),
        events,
        bound: CLOSED_AFTER,
        loses_probes: false,
        longest: Cell::default(),
        opened: Cell::default(),
    }
}

/// `maxOpen` is ten ticks; what a probe that hangs is waited for, and the ramp, are some more.
const CLOSED_AFTER: usize = 20;

fn closes(from: (usize, usize), events: usize) {
    let model = breaker(from, events);
    match explore(&model, MOST) {
        Ok(visited) => println!(
            "breaker after {from:?}: {visited}; {} not closed, closed after {} ticks at most",
            model.opened.get(),
            model.longest.get()
        ),
        Err(violation) => panic!("breaker after {from:?}: {violation}"),
    }
}

#[test]
fn every_open_breaker_closes_when_the_upstream_answers() {
    for from in [(0, 0), (30, 0), (30, 12)] {
        closes(from, 4);
    }
    let model = Breaker {
        loses_probes: true,
        ..breaker((30, 12), 1)
    };
    let what = explore(&model, MOST).expect_err("must be found").what;
    assert!(what.contains("not closed after"), "{what}");
}

#[test]
#[ignore = "takes minutes: make models"]
fn deep_breaker() {
    for from in [(0, 0), (30, 0), (30, 6), (30, 12), (30, 100)] {
        closes(from, 6);
    }
}

#[test]
#[ignore = "takes minutes: make models"]
fn deep_lease() {
    holds("lease", &lease(&DEEP));
}

#[test]
#[ignore = "takes minutes: make models"]
fn deep_births() {
    holds("births", &births(3));
}

#[test]
#[ignore = "takes minutes: make models"]
fn deep_places() {
    holds("places", &places(&DEEP));
}

#[test]
#[ignore = "takes minutes: make models"]
fn deep_requests() {
    holds("requests", &requests(&DEEP));
}

#[test]
#[ignore = "takes minutes: make models"]
fn deep_outage() {
    holds("outage", &outage(&DEEP));
}

#[test]
#[ignore = "takes minutes: make models"]
fn deep_versions() {
    holds("versions", &versions(&DEEP));
}
