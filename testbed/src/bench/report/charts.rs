//! One scenario over time, contender beside contender.

use super::median::Runs;
use crate::run::Outcome;
use crate::variant::Variant;
use tidegate_report::chart::{Band, Chart, Level, Line, Stroke};
use tidegate_report::color::Color;
use tidegate_sim::charts::{self, LATENCY_TOP_MS, goodput_top, line, oracle};
use tidegate_sim::number;
use tidegate_sim::profile::{Behaviour, Mode};
use tidegate_sim::scenario::Scenario;
use tidegate_sim::series::{Sample, Window};

const fn color(variant: Variant) -> Color {
    match variant {
        Variant::Tidegate => Color::Teal,
        Variant::None => Color::Red,
        Variant::StaticDefault => Color::Brown,
        Variant::StaticTuned => Color::Gold,
        Variant::Outlier => Color::Green,
        Variant::AdaptiveConcurrency => Color::Blue,
        Variant::AdmissionControl => Color::Pink,
        Variant::Both => Color::Violet,
    }
}

/// Size of the charts that stand beside each other, in pixels.
const SMALL: (u32, u32) = (430, 220);

/// The charts of one scenario.
pub(super) struct Charts {
    /// All contenders in one picture each.
    pub(super) together: Vec<Chart>,
    /// One small picture of each contender.
    pub(super) each: Vec<Chart>,
}

/// Draws the first run of every contender.
pub(super) fn charts(scenario: &Scenario, runs: Runs<'_>) -> Charts {
    let firsts: Vec<&Outcome> = runs
        .variants()
        .into_iter()
        .filter_map(|variant| runs.of(&scenario.name, variant).next())
        .collect();
    let Some(any) = firsts.first() else {
        return Charts {
            together: Vec::new(),
            each: Vec::new(),
        };
    };
    let mut together = vec![goodput(scenario, any, &firsts), latency(scenario, &firsts)];
    if firsts.iter().any(|outcome| outcome.figures.shed > 0) {
        together.push(sheds(scenario, any, &firsts));
    }
    let ours = firsts.iter().find(|o| o.variant == Variant::Tidegate);
    together.extend(ours.map(|outcome| inside(scenario, outcome)));
    let each = firsts.iter().map(|outcome| alone(scenario, outcome));
    Charts {
        together,
        each: each.collect(),
    }
}

/// An empty chart with what the scenario does to the upstreams.
fn empty(scenario: &Scenario, title: &str, unit: &str) -> Chart {
    charts::empty(scenario, bands(scenario), title, unit)
}

fn goodput(scenario: &Scenario, any: &Outcome, firsts: &[&Outcome]) -> Chart {
    let mut chart = empty(
        scenario,
        "Goodput",
        "good answers a second, by time of arrival",
    );
    chart.top = Some(goodput_top(&any.windows));
    chart.lines.push(oracle(&any.windows));
    chart.lines.extend(of_each(firsts, |w| Some(w.good)));
    chart
}

fn latency(scenario: &Scenario, firsts: &[&Outcome]) -> Chart {
    let mut chart = empty(scenario, "99th percentile of answers 200", "ms");
    chart.top = Some(LATENCY_TOP_MS);
    chart.levels.push(Level {
        value: number::millis(scenario.slo.latency),
        label: "objective".to_owned(),
    });
    chart.lines.extend(of_each(firsts, |w| w.p99_ms));
    chart
}

fn sheds(scenario: &Scenario, any: &Outcome, firsts: &[&Outcome]) -> Chart {
    let mut chart = empty(scenario, "Shed", "requests a second");
    let offered = line("offered", Color::Grey, &any.windows, |w| Some(w.offered));
    chart.lines.push(offered.stroke(Stroke::Dashed));
    let shedding: Vec<&Outcome> = firsts
        .iter()
        .copied()
        .filter(|outcome| outcome.figures.shed > 0)
        .collect();
    chart.lines.extend(of_each(&shedding, |w| Some(w.shed)));
    chart
}

/// A line for each contender; ours is drawn last, above the others.
fn of_each(outcomes: &[&Outcome], value: fn(&Window) -> Option<f64>) -> Vec<Line> {
    let of_one = |outcome: &&Outcome| {
        let (name, color) = (outcome.variant.name(), color(outcome.variant));
        line(name, color, &outcome.windows, value)
    };
    outcomes.iter().rev().map(of_one).collect()
}

/// Goodput, sheds and failures of one contender.
fn alone(scenario: &Scenario, outcome: &Outcome) -> Chart {
    let mut chart = empty(scenario, outcome.variant.name(), "requests a second");
    (chart.width, chart.height) = SMALL;
    chart.top = Some(goodput_top(&outcome.windows));
    // In a small picture the names would stand upon each other.
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
fn inside(scenario: &Scenario, outcome: &Outcome) -> Chart {
    let unit = "requests; shaded while the breaker is not closed";
    let mut chart = empty(scenario, "Inside the filter", unit);
    let mut push = |name: &str, color, stroke, value: fn(&Sample) -> Option<u64>| {
        let samples = outcome.samples.iter();
        let points = samples.map(|s| (s.at_s, value(s).map(number::float)));
        let line = Line::new(name, color, points).stroke(stroke);
        chart.lines.push(line);
    };
    push("in flight", Color::Blue, Stroke::Solid, |s| s.in_flight);
    push("limit", Color::Teal, Stroke::Steps, |s| s.limit);
    let pairs = outcome.samples.windows(2).filter_map(|pair| match pair {
        [a, b] if a.breaker.is_some_and(|state| state > 0) => Some((a.at_s, b.at_s)),
        _ => None,
    });
    let band = |(from, to)| Band {
        from,
        to,
        label: String::new(),
        is_trouble: true,
    };
    chart.bands = pairs.map(band).collect();
    chart
}

/// Stretches in which an upstream is not itself.
fn bands(scenario: &Scenario) -> Vec<Band> {
    let mut bands = Vec::new();
    for profile in &scenario.upstreams {
        let stages = profile.stages();
        let ends = stages
            .iter()
            .skip(1)
            .map(|(at, _)| *at)
            .chain(std::iter::once(scenario.duration));
        for ((from, behaviour), to) in stages.iter().zip(ends) {
            let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
            bands.extend(trouble(behaviour, &profile.behaviour).map(|label| Band {
                from,
                to,
                label: label.to_owned(),
                is_trouble: true,
            }));
        }
    }
    bands
}

/// What is wrong with an upstream, beside how it was at the start.
fn trouble(now: &Behaviour, at_start: &Behaviour) -> Option<&'static str> {
    match now.mode {
        Mode::Serve if now.slots < at_start.slots => Some("fewer slots"),
        Mode::Serve if now.errors.is_some_and(|e| e.share > 0.0) => Some("partly broken"),
        Mode::Serve => None,
        Mode::Fail => Some("fails at once"),
        Mode::Hang => Some("hangs"),
        Mode::Refuse => Some("refuses connections"),
        Mode::Reset => Some("resets connections"),
    }
}
