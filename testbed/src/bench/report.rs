//! The benchmark's output: tables of medians, the targets, and a page with every contender over time.

mod charts;
pub mod median;
pub mod targets;

use std::fmt::Write as _;

use super::journal::Metadata;
use crate::run::RunOutcome;
use crate::variant::Variant;
use median::{Runs, Spread, shown};
use tidegate_report::page::Page;
use tidegate_report::table::Table;
use tidegate_sim::scenario::{Measure, Scenario};
use tidegate_sim::targets::TargetVerdict;

/// Columns of the table of a scenario.
const COLUMNS: [(&str, Measure); 11] = [
    ("score", Measure::Score),
    ("p99 ms", Measure::AdmittedP99Ms),
    ("shed %", Measure::ShedRatio),
    ("false shed %", Measure::FalseShedRatio),
    ("settle s", Measure::SettleS),
    ("calm s", Measure::CalmS),
    ("recovery s", Measure::RecoveryS),
    ("reached dead %", Measure::ReachedWhileDownRatio),
    ("reached x", Measure::ReachedOverCapacity),
    ("critical", Measure::CriticalSuccess),
    ("wasted %", Measure::WastedWork),
];

/// One run in one line.
#[must_use]
pub fn summary(outcome: &RunOutcome) -> String {
    let of = |measure| {
        let value = outcome.figures.measure(measure);
        value.map_or_else(|| "-".to_owned(), |value| shown(measure, value))
    };
    let (score, p99, shed) = (
        of(Measure::Score),
        of(Measure::AdmittedP99Ms),
        of(Measure::ShedRatio),
    );
    format!("score {score}  p99 {p99:>4} ms  shed {shed:>4} %")
}

/// The table of a scenario, without the columns in which no contender has a figure.
fn contenders(scenario: &Scenario, runs: Runs<'_>) -> Table {
    let of = |variant, measure| runs.spread(&scenario.name, variant, measure);
    let variants = runs.variants();
    let has_figure = |measure| {
        variants
            .iter()
            .any(|variant| of(*variant, measure).is_some())
    };
    let kept: Vec<_> = COLUMNS
        .into_iter()
        .filter(|(_, measure)| has_figure(*measure))
        .collect();
    let row = |variant: &Variant| -> Option<Vec<String>> {
        // A contender that did not play this scenario has no row.
        of(*variant, Measure::Score)?;
        let cell = |(_, measure): &(&str, Measure)| {
            let spread = of(*variant, *measure);
            spread.map_or_else(|| "-".to_owned(), |spread| spread.with_range(*measure))
        };
        let name = std::iter::once(variant.name().to_owned());
        Some(name.chain(kept.iter().map(cell)).collect())
    };
    let head = std::iter::once("variant").chain(kept.iter().map(|(name, _)| *name));
    let head: Vec<&str> = head.collect();
    Table::new(&head, variants.iter().filter_map(row).collect())
}

/// The table of a chain: the wasted share of each service's work, in percent; `None` if no run has this figure.
fn wasted_by_hop(scenario: &Scenario, runs: Runs<'_>) -> Option<Table> {
    let mut head = vec!["wasted % of the work of"];
    let of = |variant: Variant, service: &str| {
        let outcomes = runs.of(&scenario.name, variant);
        let shares = outcomes.map(|outcome| outcome.figures.wasted_by_upstream.get(service));
        Spread::of(shares.flatten().copied())
    };
    head.extend(scenario.upstreams.iter().map(|one| one.name.as_str()));
    let row = |variant: Variant| -> Option<Vec<String>> {
        let services = scenario.upstreams.iter();
        let shares: Vec<_> = services.map(|one| of(variant, &one.name)).collect();
        shares.iter().any(Option::is_some).then(|| {
            let cell = |spread: &Option<Spread>| {
                spread.map_or_else(
                    || "-".to_owned(),
                    |spread| spread.with_range(Measure::WastedWork),
                )
            };
            let name = std::iter::once(variant.name().to_owned());
            name.chain(shares.iter().map(cell)).collect()
        })
    };
    let rows: Vec<_> = runs.variants().into_iter().filter_map(row).collect();
    (!rows.is_empty()).then(|| Table::new(&head, rows))
}

/// The tables of medians for a terminal.
#[must_use]
pub fn tables(scenarios: &[Scenario], outcomes: &[RunOutcome]) -> String {
    let mut text = String::new();
    for scenario in scenarios {
        let table = contenders(scenario, Runs(outcomes));
        if table.rows.is_empty() {
            continue;
        }
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "\n{} ({})\n{}",
            scenario.title,
            scenario.name,
            table.text()
        );
        if let Some(hops) = wasted_by_hop(scenario, Runs(outcomes)) {
            let _ = writeln!(text, "{}", hops.text());
        }
    }
    text
}

/// The table of targets for a terminal.
#[must_use]
pub fn targets_table(verdicts: &[TargetVerdict]) -> String {
    let rows = verdicts.iter().map(targets::row).collect();
    let met = verdicts.iter().filter(|verdict| verdict.is_met).count();
    let sum = format!("{met} of {} targets met", verdicts.len());
    let table = Table::of_words(&targets::HEAD, rows);
    format!("{}\n{sum}\n", table.text())
}

/// The page: scores of all, the targets, then each scenario with its charts.
#[must_use]
pub fn page(
    scenarios: &[Scenario],
    outcomes: &[RunOutcome],
    verdicts: &[TargetVerdict],
    metadata: &Metadata,
) -> Page {
    let mut page = Page::new("Tidegate on real sockets");
    page.paragraph(
        "Each scenario is run on a real Envoy with each contender, one after the other, with the same arrivals. \
         The score is the number of good answers (200, within the objective's latency, as the caller sees it) \
         divided by what an oracle that knows the capacity would have got out of the same arrivals. \
         Where a scenario was repeated, a figure is the median, with the least and the greatest behind it.",
    );
    scores(&mut page, scenarios, Runs(outcomes));
    let facts: Vec<String> = metadata
        .iter()
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    page.note(&facts.join(" · "));
    if !verdicts.is_empty() {
        page.heading("Targets");
        let rows = verdicts.iter().map(stressed_row).collect();
        page.table(Table::of_words(&targets::HEAD, rows));
    }
    for scenario in scenarios {
        let table = contenders(scenario, Runs(outcomes));
        if table.rows.is_empty() {
            continue;
        }
        let charts = charts::of(scenario, Runs(outcomes));
        page.heading(&scenario.title)
            .paragraph(scenario.prose.trim())
            .table(table);
        if let Some(hops) = wasted_by_hop(scenario, Runs(outcomes)) {
            page.table(hops);
        }
        page.charts(charts.together).charts(charts.each);
    }
    page
}

/// The table of scores, scenario by contender.
fn scores(page: &mut Page, scenarios: &[Scenario], runs: Runs<'_>) {
    let variants = runs.variants();
    let head: Vec<&str> = std::iter::once("scenario")
        .chain(variants.iter().map(|variant| variant.name()))
        .collect();
    let row = |scenario: &Scenario| -> Vec<String> {
        let cell = |variant: &Variant| {
            let spread = runs.spread(&scenario.name, *variant, Measure::Score);
            let score = spread.map(|spread| shown(Measure::Score, spread.median));
            let score = score.unwrap_or_else(|| "-".to_owned());
            match variant {
                Variant::Tidegate => format!("*{score}"),
                _ => score,
            }
        };
        let title = std::iter::once(scenario.title.clone());
        title.chain(variants.iter().map(cell)).collect()
    };
    page.table(Table::new(&head, scenarios.iter().map(row).collect()));
}

/// The row of a target on the page; a missed one is highlighted.
fn stressed_row(verdict: &TargetVerdict) -> Vec<String> {
    let mut row = targets::row(verdict);
    if let Some(word) = row.last_mut().filter(|_| !verdict.is_met) {
        word.insert(0, '!');
    }
    row
}
