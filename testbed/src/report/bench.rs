//! What `bench` writes: a table of medians and a page with every run over time.

mod charts;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::run::Outcome;
use crate::variant::Variant;
use tidegate_sim::number;
use tidegate_sim::report::page::Page;
use tidegate_sim::report::table;
use tidegate_sim::scenario::{Measure, Scenario};

/// Columns of the table.
const COLUMNS: [(&str, Measure); 7] = [
    ("score", Measure::Score),
    ("p99 ms", Measure::AdmittedP99Ms),
    ("shed %", Measure::ShedRatio),
    ("false shed %", Measure::FalseShedRatio),
    ("settle s", Measure::SettleS),
    ("recovery s", Measure::RecoveryS),
    ("reached dead %", Measure::ReachedWhileDownRatio),
];

/// A missed expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct Miss {
    /// Scenario.
    pub scenario: String,
    /// Figure.
    pub measure: Measure,
    /// Found, and expected.
    pub text: String,
}

/// The median of a figure over the repetitions of one scenario with one contender.
#[must_use]
pub fn median(outcomes: &[&Outcome], measure: Measure) -> Option<f64> {
    let mut values: Vec<f64> = outcomes
        .iter()
        .filter_map(|outcome| outcome.figures.measure(measure))
        .collect();
    values.sort_by(f64::total_cmp);
    number::quantile(&values, 0.5)
}

/// The expectations that the Tidegate runs of `scenario` miss, by the median.
#[must_use]
pub fn misses(scenario: &Scenario, outcomes: &[Outcome]) -> Vec<Miss> {
    let ours = of(outcomes, &scenario.name, Variant::Tidegate);
    if ours.is_empty() {
        return Vec::new();
    }
    let check = |(measure, range): (&Measure, &tidegate_sim::scenario::Range)| {
        let found = median(&ours, *measure);
        let is_met = found.is_some_and(|value| range.contains(value));
        let found = found.map_or_else(|| "nothing".to_owned(), |value| format!("{value:.4}"));
        (!is_met).then(|| Miss {
            scenario: scenario.name.clone(),
            measure: *measure,
            text: format!(
                "{}: {measure}: found {found}, expected {range}",
                scenario.name
            ),
        })
    };
    scenario.expect.iter().filter_map(check).collect()
}

/// All outcomes of one scenario with one contender.
fn of<'a>(outcomes: &'a [Outcome], scenario: &str, variant: Variant) -> Vec<&'a Outcome> {
    outcomes
        .iter()
        .filter(|outcome| outcome.scenario == scenario && outcome.variant == variant)
        .collect()
}

fn variants_of(outcomes: &[Outcome]) -> Vec<Variant> {
    Variant::ALL
        .into_iter()
        .filter(|variant| outcomes.iter().any(|o| o.variant == *variant))
        .collect()
}

fn shown(measure: Measure, value: Option<f64>) -> String {
    let Some(value) = value else {
        return "-".to_owned();
    };
    match measure {
        _ if value.is_infinite() => "never".to_owned(),
        Measure::AdmittedP99Ms => format!("{value:.0}"),
        Measure::SettleS | Measure::RecoveryS => format!("{value:.2}"),
        Measure::ShedRatio | Measure::FalseShedRatio | Measure::ReachedWhileDownRatio => {
            format!("{:.1}", value * 100.0)
        }
        _ => format!("{value:.3}"),
    }
}

fn rows(scenario: &Scenario, outcomes: &[Outcome]) -> Vec<Vec<String>> {
    variants_of(outcomes)
        .into_iter()
        .filter_map(|variant| {
            let runs = of(outcomes, &scenario.name, variant);
            if runs.is_empty() {
                return None;
            }
            let figures = COLUMNS
                .iter()
                .map(|(_, measure)| shown(*measure, median(&runs, *measure)));
            let critical = shown(
                Measure::CriticalSuccess,
                median(&runs, Measure::CriticalSuccess),
            );
            let name = std::iter::once(variant.name().to_owned());
            Some(
                name.chain(figures)
                    .chain(std::iter::once(critical))
                    .collect(),
            )
        })
        .collect()
}

fn head() -> Vec<&'static str> {
    let figures = COLUMNS.iter().map(|(name, _)| *name);
    std::iter::once("variant")
        .chain(figures)
        .chain(std::iter::once("critical"))
        .collect()
}

/// One run in one line.
#[must_use]
pub fn summary(outcome: &Outcome) -> String {
    let of = |measure| shown(measure, outcome.figures.measure(measure));
    let (score, p99, shed) = (
        of(Measure::Score),
        of(Measure::AdmittedP99Ms),
        of(Measure::ShedRatio),
    );
    format!("score {score}  p99 {p99} ms  shed {shed} %")
}

/// Head and rows without the columns in which no contender has a figure.
fn columns(scenario: &Scenario, outcomes: &[Outcome]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let (head, rows) = (head(), rows(scenario, outcomes));
    let is_kept = |column: usize| {
        rows.iter()
            .any(|row| row.get(column).is_some_and(|cell| cell != "-"))
    };
    let kept: Vec<usize> = (0..head.len()).filter(|column| is_kept(*column)).collect();
    let rows = rows.iter().map(|row| {
        kept.iter()
            .filter_map(|column| row.get(*column).cloned())
            .collect()
    });
    (
        kept.iter()
            .filter_map(|column| head.get(*column).copied())
            .collect(),
        rows.collect(),
    )
}

/// The tables of medians for a terminal.
#[must_use]
pub fn tables(scenarios: &[Scenario], outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for scenario in scenarios {
        let (head, rows) = columns(scenario, outcomes);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "\n{} ({})\n{}",
            scenario.title,
            scenario.name,
            table::text(&head, &rows)
        );
    }
    text
}

/// The page: scores of all, then each scenario with its charts.
#[must_use]
pub fn page(
    scenarios: &[Scenario],
    outcomes: &[Outcome],
    metadata: &BTreeMap<String, String>,
) -> String {
    let variants = variants_of(outcomes);
    let mut page = Page::new("Tidegate on real sockets");
    page.paragraph(
        "Each scenario is run on a real Envoy with each contender, one after the other, with the same arrivals. \
         The score is the number of good answers (200, within the objective's latency, as the caller sees it) \
         divided by what an oracle that knows the capacity would have got out of the same arrivals.",
    );
    let head: Vec<&str> = std::iter::once("scenario")
        .chain(variants.iter().map(|variant| variant.name()))
        .collect();
    let scores: Vec<Vec<String>> = scenarios
        .iter()
        .map(|scenario| {
            let cells = variants.iter().map(|variant| {
                let runs = of(outcomes, &scenario.name, *variant);
                let score = shown(Measure::Score, median(&runs, Measure::Score));
                if *variant == Variant::Tidegate {
                    format!("*{score}")
                } else {
                    score
                }
            });
            std::iter::once(scenario.title.clone())
                .chain(cells)
                .collect()
        })
        .collect();
    page.table(&head, &scores);
    let facts: Vec<String> = metadata
        .iter()
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    page.note(&facts.join(" · "));
    for scenario in scenarios {
        page.heading(&scenario.title)
            .paragraph(scenario.prose.trim());
        let (head, rows) = columns(scenario, outcomes);
        page.table(&head, &rows);
        let charts = charts::charts(scenario, outcomes);
        for chart in &charts.together {
            page.chart(chart);
        }
        page.charts(&charts.each);
    }
    page.html()
}
