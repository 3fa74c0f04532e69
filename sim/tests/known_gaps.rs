//! The list of known gaps and the page that explains them agree with each other and with the scenarios. Only a run of all
//! scenarios can check their figures: `make sim-limits`.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics fails"
)]

use std::collections::BTreeSet;

use tidegate_sim::known_gaps::{GapsPage, KnownGaps};
use tidegate_sim::scenario::{Scenario, folder};
use tidegate_sim::targets::Targets;

fn read() -> (KnownGaps, GapsPage) {
    let scenarios = Scenario::read_folder(&folder()).unwrap();
    let names: BTreeSet<&str> = scenarios.iter().map(|s| s.name.as_str()).collect();
    let rule = Targets::read().unwrap().comparison;
    KnownGaps::read(&names, rule).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_limit_has_its_row_and_every_row_its_limit() {
    let (limits, page) = read();
    let faults = page.faults(&limits);
    assert!(
        faults.is_empty(),
        "{}\n`make sim-limits ARGS=--write` writes the table anew",
        faults.join("\n")
    );
    let rows: Vec<String> = page.rows().into_iter().map(|row| row.scenario).collect();
    let listed: Vec<String> = limits.scenarios.into_keys().collect();
    assert_eq!(rows, listed);
}
