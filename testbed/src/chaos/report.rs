//! A run as a page and as data.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::conduct::ChaosRun;
use super::fault::FaultKind;
use super::outcome::FaultOutcome;

/// The command that repeats a run.
#[must_use]
pub fn replay(run: &ChaosRun) -> String {
    let mut command = format!("make chaos SEED={} SECONDS={}", run.seed, run.ordered_s);
    if run.kinds != FaultKind::ALL {
        let names: Vec<&str> = run.kinds.iter().map(|kind| kind.name()).collect();
        let _ = write!(command, " FAULTS={}", names.join(","));
    }
    command
}

/// How many faults passed and failed.
#[must_use]
pub fn tally(run: &ChaosRun) -> (usize, usize) {
    let passed = run
        .outcomes
        .iter()
        .filter(|it| it.broken.is_empty())
        .count();
    (passed, run.outcomes.len() - passed)
}

/// Whether every planned fault began, or every kind that this machine can play occurred at least once.
#[must_use]
pub fn is_complete(run: &ChaosRun) -> bool {
    let came = |kind: &FaultKind| run.outcomes.iter().any(|it| it.fault.kind == *kind);
    let is_out = |kind: &FaultKind| run.left_out.iter().any(|(left_out, _)| left_out == kind);
    run.not_begun == 0 || run.kinds.iter().all(|kind| came(kind) || is_out(kind))
}

/// The page: how the run was made, a table of the kinds, and every failure.
#[must_use]
pub fn page(run: &ChaosRun, about: &BTreeMap<String, String>) -> String {
    let (passed, failed) = tally(run);
    let said = |key: &str| about.get(key).map_or("unknown", String::as_str);
    let mut page = format!(
        "`{}`, {} s: **{passed} passed, {failed} failed**. Commit {}, Envoy {}, {} cores, {} build, {}.\n\n",
        replay(run),
        run.took_s,
        said("commit"),
        said("envoy"),
        said("cores"),
        said("build"),
        said("date"),
    );
    let limits = run.undisturbed.limits.iter();
    let limits = limits.map(|(side, (least, most))| format!("{} {least} to {most}", side.name()));
    let held = run.undisturbed.held;
    let _ = writeln!(
        page,
        "Undisturbed: limit {}; Envoy {} descriptors and {} MiB, control service {} and {} MiB.\n",
        limits.collect::<Vec<_>>().join(", "),
        held.envoy.fds,
        held.envoy.resident >> 20,
        held.control.fds,
        held.control.resident >> 20,
    );
    page += "| fault | times | failed | recovered, median (longest) | at rest, longest | sent | shed | harmed | cut | late | most held: Envoy, control |\n";
    page += "|---|---|---|---|---|---|---|---|---|---|---|\n";
    for kind in FaultKind::ALL {
        let outcomes: Vec<&FaultOutcome> = run
            .outcomes
            .iter()
            .filter(|it| it.fault.kind == kind)
            .collect();
        if !outcomes.is_empty() {
            page += &row(kind, &outcomes);
        }
    }
    for (kind, reason) in &run.left_out {
        let _ = writeln!(page, "\nLeft out: `{kind}`: {reason}.");
    }
    if run.not_begun > 0 {
        let _ = writeln!(page, "\nNot begun: {} faults.", run.not_begun);
    }
    for (index, outcome) in run.outcomes.iter().enumerate() {
        for broken in &outcome.broken {
            let (number, fault) = (index + 1, outcome.fault);
            let _ = writeln!(
                page,
                "\n- fault {number}, `{fault}`: {}: {}",
                broken.invariant, broken.found
            );
        }
    }
    page
}

fn row(kind: FaultKind, outcomes: &[&FaultOutcome]) -> String {
    let facts: Vec<_> = outcomes.iter().filter_map(|it| it.facts.as_ref()).collect();
    let failed = outcomes.iter().filter(|it| !it.broken.is_empty()).count();
    let seconds = |ms: u64| format!("{}.{} s", ms / 1_000, ms % 1_000 / 100);
    let mut recovered: Vec<u64> = facts.iter().filter_map(|it| it.recovered_ms).collect();
    recovered.sort_unstable();
    let median = recovered.get(recovered.len() / 2).copied().unwrap_or(0);
    let longest = recovered.last().copied().unwrap_or(0);
    let rested = facts
        .iter()
        .filter_map(|it| it.rested_ms)
        .max()
        .unwrap_or(0);
    let sum = |of: fn(&super::account::Account) -> u64| -> u64 {
        facts.iter().map(|it| of(&it.stretch.account)).sum()
    };
    let most = |of: fn(&super::world::HeldResources) -> u64| -> u64 {
        facts.iter().map(|it| of(&it.held)).max().unwrap_or(0)
    };
    format!(
        "| `{kind}` | {} | {failed} | {} ({}) | {} | {} | {} | {} | {} | {} | {} and {} MiB, {} and {} MiB |\n",
        outcomes.len(),
        seconds(median),
        seconds(longest),
        seconds(rested),
        sum(|it| it.sent),
        sum(|it| it.shed),
        sum(|it| it.harmed),
        sum(|it| it.cut),
        sum(|it| it.late),
        most(|it| it.envoy.fds),
        most(|it| it.envoy.resident >> 20),
        most(|it| it.control.fds),
        most(|it| it.control.resident >> 20),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::fault::{InjectedFault, UpstreamSide};
    use crate::chaos::invariants::{Broken, Undisturbed};

    fn run(kinds: &[FaultKind], failures: &[bool]) -> ChaosRun {
        let outcome = |failed: &bool| FaultOutcome {
            fault: InjectedFault {
                kind: FaultKind::DiskFull,
                side: UpstreamSide::Alpha,
                lasts_ms: 700,
                seed: 0,
            },
            facts: None,
            broken: failed
                .then(|| Broken {
                    invariant: "breakers close".to_owned(),
                    found: "state 2".to_owned(),
                })
                .into_iter()
                .collect(),
        };
        ChaosRun {
            seed: 9,
            ordered_s: 60,
            kinds: kinds.to_vec(),
            took_s: 61,
            undisturbed: Undisturbed::default(),
            outcomes: failures.iter().map(outcome).collect(),
            not_begun: 0,
            left_out: Vec::new(),
        }
    }

    #[test]
    fn a_run_says_how_it_is_replayed() {
        assert_eq!(
            replay(&run(&FaultKind::ALL, &[])),
            "make chaos SEED=9 SECONDS=60"
        );
        assert_eq!(
            replay(&run(&[FaultKind::Pushes, FaultKind::DiskFull], &[])),
            "make chaos SEED=9 SECONDS=60 FAULTS=pushes,disk-full"
        );
    }

    #[test]
    fn a_run_that_was_cut_short_is_complete_only_with_every_kind() {
        let mut run = run(&[FaultKind::DiskFull, FaultKind::Pushes], &[false]);
        assert!(is_complete(&run));
        run.not_begun = 1;
        assert!(!is_complete(&run));
        run.left_out = vec![(FaultKind::Pushes, "no way".to_owned())];
        assert!(is_complete(&run));
    }

    #[test]
    fn failures_are_counted_and_named() {
        let run = run(&FaultKind::ALL, &[false, true, false]);
        assert_eq!(tally(&run), (2, 1));
        let page = page(&run, &BTreeMap::new());
        assert!(
            page.contains("- fault 2, `disk-full for 700 ms`: breakers close: state 2"),
            "{page}"
        );
        assert!(page.contains("| `disk-full` | 3 | 1 |"), "{page}");
        assert!(!page.contains("`pushes` |"), "{page}");
    }
}
