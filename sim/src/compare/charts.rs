//! One scenario over time: the most important contenders in one chart, and each contender in a small one.

use super::verdict::best;
use super::{Comparison, ContenderRun, OURS};
use crate::charts::{self, Charts, goodput_top, line, oracle};
use crate::number;
use crate::profile::UpstreamMode;
use crate::scenario::Scenario;
use tidegate_report::chart::{Band, Chart, Line, Stroke};
use tidegate_report::color::Color;

/// Size of the charts that are placed side by side, in pixels.
const SMALL: (u32, u32) = (430, 200);

/// Draws the first run of every contender.
pub(super) fn of(comparison: &Comparison, scenario: &Scenario) -> Charts {
    let first = |name: &str| comparison.runs(&scenario.name, name).next().cloned();
    let kinds = comparison.contenders.iter();
    let firsts: Vec<ContenderRun> = kinds.filter_map(|kind| first(kind.name)).collect();
    let best = |is_tuned| best(comparison, &scenario.name, is_tuned);
    let lines = chosen(&firsts, best(false), best(true));
    let Some(any) = firsts.first() else {
        return Charts::default();
    };
    let mut together = vec![goodput(scenario, any, &lines), latency(scenario, &lines)];
    together.extend(limits(scenario, &firsts));
    Charts {
        together,
        each: firsts
            .iter()
            .map(|outcome| alone(scenario, outcome))
            .collect(),
    }
}

/// Tidegate, no protection, the best of each kind, and Envoy's best-known filter; each with its color, Tidegate last.
fn chosen<'a>(
    firsts: &'a [ContenderRun],
    untuned: Option<&str>,
    tuned: Option<&str>,
) -> Vec<(&'a ContenderRun, Color)> {
    let wanted = [
        (Some("none"), Color::Red),
        (tuned, Color::Gold),
        (Some("adaptive-concurrency"), Color::Blue),
        (untuned, Color::Violet),
        (Some(OURS), Color::Teal),
    ];
    let mut lines: Vec<(&ContenderRun, Color)> = Vec::new();
    for (name, color) in wanted {
        let outcome = firsts.iter().find(|o| Some(o.contender) == name);
        let is_new =
            |o: &&ContenderRun| !lines.iter().any(|(line, _)| line.contender == o.contender);
        if let Some(outcome) = outcome.filter(is_new) {
            lines.push((outcome, color));
        }
    }
    lines
}

/// An empty chart with what the scenario does to the upstreams.
fn empty(scenario: &Scenario, title: &str, unit: &str) -> Chart {
    charts::empty(scenario, bands(scenario), title, unit)
}

/// Stretches in which an upstream does not serve.
fn bands(scenario: &Scenario) -> Vec<Band> {
    charts::bands(scenario, |upstream, behaviour| {
        (behaviour.mode != UpstreamMode::Serve).then(|| format!("{} is down", upstream.name))
    })
}

fn goodput(scenario: &Scenario, any: &ContenderRun, lines: &[(&ContenderRun, Color)]) -> Chart {
    let mut chart = charts::goodput(scenario, bands(scenario), &any.windows);
    let windows = &any.windows;
    chart
        .lines
        .extend([charts::offered(windows), oracle(windows)]);
    chart.lines.extend(
        lines
            .iter()
            .map(|(o, color)| line(o.contender, *color, &o.windows, |w| Some(w.good))),
    );
    chart
}

fn latency(scenario: &Scenario, lines: &[(&ContenderRun, Color)]) -> Chart {
    let mut chart = charts::latency(scenario, bands(scenario));
    chart.lines.extend(
        lines
            .iter()
            .map(|(o, color)| line(o.contender, *color, &o.windows, |w| w.p99_ms)),
    );
    chart
}

/// Greatest limit shown: a higher one does not bind.
const LIMIT_TOP: f64 = 150.0;

/// The limits of all contenders whose limit changes.
fn limits(scenario: &Scenario, firsts: &[ContenderRun]) -> Option<Chart> {
    let mut chart = empty(scenario, "Concurrency limits", "requests in flight");
    let mut colors = [
        Color::Blue,
        Color::Violet,
        Color::Orange,
        Color::Green,
        Color::Pink,
        Color::Brown,
        Color::Navy,
    ]
    .into_iter()
    .cycle();
    let limit = |value: u64| number::float(value);
    for outcome in firsts {
        let mut values = outcome.samples.iter().filter_map(|s| s.limit);
        let first = values.next();
        if !values.any(|value| Some(value) != first) {
            continue;
        }
        let points = outcome.samples.iter().map(|s| (s.at_s, s.limit.map(limit)));
        let color = if outcome.contender == OURS {
            Color::Teal
        } else {
            colors.next().unwrap_or(Color::Grey)
        };
        let line = Line::new(outcome.contender, color, points);
        chart.lines.push(line.stroke(Stroke::Steps));
    }
    let greatest = |line: &Line| {
        line.points
            .iter()
            .filter_map(|(_, v)| *v)
            .fold(0.0, f64::max)
    };
    let top = chart.lines.iter().map(greatest).fold(0.0, f64::max);
    chart.top = (top > LIMIT_TOP).then_some(LIMIT_TOP);
    (!chart.lines.is_empty()).then_some(chart)
}

/// Goodput and limit of one contender.
fn alone(scenario: &Scenario, outcome: &ContenderRun) -> Chart {
    let mut chart = empty(scenario, outcome.contender, "requests a second");
    (chart.width, chart.height) = SMALL;
    // The names of marks and bands are in the larger charts.
    chart.marks.clear();
    for band in &mut chart.bands {
        band.label.clear();
    }
    chart.top = Some(goodput_top(&outcome.windows));
    let good = line("good", Color::Teal, &outcome.windows, |w| Some(w.good));
    let shed = line("shed", Color::Gold, &outcome.windows, |w| Some(w.shed));
    let failed = line("failed", Color::Red, &outcome.windows, |w| Some(w.failed));
    // Solid, because each dash is a line of its own and there are many of these charts.
    chart.lines.extend([
        oracle(&outcome.windows).stroke(Stroke::Solid),
        good.stroke(Stroke::Area),
        shed,
        failed,
    ]);
    let p99 = line("p99 ms", Color::Violet, &outcome.windows, |w| w.p99_ms);
    chart.lines.push(p99.right());
    chart.right = Some(charts::latency_axis());
    chart
}
