//! Charts of one scenario over time, contender beside contender.

use super::median::Runs;
use crate::run::RunOutcome;
use crate::variant::Variant;
use tidegate_report::chart::{Band, Chart, Line, Stroke};
use tidegate_report::color::Color;
use tidegate_sim::charts::{self, Charts, goodput_top, line, oracle};
use tidegate_sim::profile::{Behaviour, UpstreamMode};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::series::RunWindow;

const fn color(variant: Variant) -> Color {
    match variant {
        Variant::Tidegate => Color::Teal,
        Variant::Native => Color::Navy,
        Variant::None => Color::Red,
        Variant::StaticDefault => Color::Brown,
        Variant::StaticTuned => Color::Gold,
        Variant::Outlier => Color::Green,
        Variant::AdaptiveConcurrency => Color::Blue,
        Variant::AdmissionControl => Color::Pink,
        Variant::Both => Color::Violet,
    }
}

/// Size of the charts that are placed side by side, in pixels.
const SMALL: (u32, u32) = (430, 220);

/// Draws the first run of every contender.
pub(super) fn of(scenario: &Scenario, runs: Runs<'_>) -> Charts {
    let firsts: Vec<&RunOutcome> = runs
        .variants()
        .into_iter()
        .filter_map(|variant| runs.of(&scenario.name, variant).next())
        .collect();
    let Some(any) = firsts.first() else {
        return Charts::default();
    };
    let mut together = vec![goodput(scenario, any, &firsts), latency(scenario, &firsts)];
    if firsts.iter().any(|outcome| outcome.figures.shed > 0) {
        together.push(sheds(scenario, any, &firsts));
    }
    let ours = firsts.iter().find(|outcome| outcome.variant.is_ours());
    together.extend(ours.map(|outcome| inside(scenario, outcome)));
    let each = firsts.iter().map(|outcome| alone(scenario, outcome));
    Charts {
        together,
        each: each.collect(),
    }
}

/// An empty chart with the disturbances of the upstreams.
fn empty(scenario: &Scenario, title: &str, unit: &str) -> Chart {
    charts::empty(scenario, bands(scenario), title, unit)
}

fn goodput(scenario: &Scenario, any: &RunOutcome, firsts: &[&RunOutcome]) -> Chart {
    let mut chart = charts::goodput(scenario, bands(scenario), &any.windows);
    chart.lines.push(oracle(&any.windows));
    chart.lines.extend(of_each(firsts, |w| Some(w.good)));
    chart
}

fn latency(scenario: &Scenario, firsts: &[&RunOutcome]) -> Chart {
    let mut chart = charts::latency(scenario, bands(scenario));
    chart.lines.extend(of_each(firsts, |w| w.p99_ms));
    chart
}

fn sheds(scenario: &Scenario, any: &RunOutcome, firsts: &[&RunOutcome]) -> Chart {
    let mut chart = empty(scenario, "Shed", "requests a second");
    chart.lines.push(charts::offered(&any.windows));
    let shedding: Vec<&RunOutcome> = firsts
        .iter()
        .copied()
        .filter(|outcome| outcome.figures.shed > 0)
        .collect();
    chart.lines.extend(of_each(&shedding, |w| Some(w.shed)));
    chart
}

/// A line for each contender; ours is drawn last, above the others.
fn of_each(outcomes: &[&RunOutcome], value: fn(&RunWindow) -> Option<f64>) -> Vec<Line> {
    let of_one = |outcome: &&RunOutcome| {
        let (name, color) = (outcome.variant.name(), color(outcome.variant));
        line(name, color, &outcome.windows, value)
    };
    outcomes.iter().rev().map(of_one).collect()
}

/// Goodput, sheds and failures of one contender.
fn alone(scenario: &Scenario, outcome: &RunOutcome) -> Chart {
    let mut chart = empty(scenario, outcome.variant.name(), "requests a second");
    (chart.width, chart.height) = SMALL;
    chart.top = Some(goodput_top(&outcome.windows));
    // In a small chart the labels would overlap.
    chart.marks.iter_mut().for_each(|m| m.label.clear());
    chart.bands.iter_mut().for_each(|b| b.label.clear());
    let windows = &outcome.windows;
    let good = line("good", color(outcome.variant), windows, |w| Some(w.good));
    chart.lines.push(oracle(&outcome.windows));
    chart
        .lines
        .push(line("shed", Color::Orange, windows, |w| Some(w.shed)));
    chart
        .lines
        .push(line("failed, late", Color::Plum, windows, |w| {
            Some(w.offered - w.good - w.shed)
        }));
    chart.lines.push(good.stroke(Stroke::Area));
    chart
}

/// Limit, in flight and breaker of the filter.
fn inside(scenario: &Scenario, outcome: &RunOutcome) -> Chart {
    let unit = "requests; shaded while the breaker is not closed";
    let mut chart = empty(scenario, "Inside the filter", unit);
    charts::add_filter(&mut chart, &outcome.samples);
    chart
}

/// Stretches in which an upstream is in trouble.
fn bands(scenario: &Scenario) -> Vec<Band> {
    charts::bands(scenario, |upstream, behaviour| {
        trouble(behaviour, &upstream.behaviour).map(str::to_owned)
    })
}

/// What is wrong with an upstream, compared with its start.
fn trouble(now: &Behaviour, at_start: &Behaviour) -> Option<&'static str> {
    match now.mode {
        UpstreamMode::Serve if now.slots < at_start.slots => Some("fewer slots"),
        UpstreamMode::Serve if now.errors.is_some_and(|e| e.share > 0.0) => Some("partly broken"),
        UpstreamMode::Serve => None,
        UpstreamMode::Fail => Some("fails at once"),
        UpstreamMode::Hang => Some("hangs"),
        UpstreamMode::Refuse => Some("refuses connections"),
        UpstreamMode::Reset => Some("resets connections"),
    }
}
