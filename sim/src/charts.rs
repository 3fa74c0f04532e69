//! What charts of a scenario have in common, in the simulator and on real sockets.

use tidegate_report::chart::{Band, Chart, LevelLine, Line, Mark, RightAxis, Stroke};
use tidegate_report::color::Color;

use crate::number;
use crate::profile::Behaviour;
use crate::scenario::{self, MarkKind, Scenario, UpstreamProfile};
use crate::series::{RunWindow, SeriesSample};

/// Highest latency shown, in milliseconds: callers give up after a second.
const LATENCY_TOP_MS: f64 = 1_050.0;

/// The charts of one scenario.
#[derive(Debug, Clone, Default)]
pub struct Charts {
    /// Several contenders in one chart.
    pub together: Vec<Chart>,
    /// One small chart of each contender.
    pub each: Vec<Chart>,
}

/// A chart without lines: `bands` show what the scenario does to the upstreams; values are in `unit`.
#[must_use]
pub fn empty(scenario: &Scenario, bands: Vec<Band>, title: &str, unit: &str) -> Chart {
    let mark = |mark: &scenario::ScenarioMark| Mark {
        at: mark.at.as_secs_f64(),
        label: match mark.kind {
            MarkKind::Step => "step".to_owned(),
            MarkKind::Fall => "fall".to_owned(),
            MarkKind::Recovery => "well again".to_owned(),
        },
    };
    Chart {
        bands,
        marks: scenario.marks.iter().map(mark).collect(),
        ..Chart::new(title, unit, scenario.duration.as_secs_f64())
    }
}

/// One band for each stage of an upstream for which `trouble` has a name.
pub fn bands(
    scenario: &Scenario,
    trouble: impl Fn(&UpstreamProfile, &Behaviour) -> Option<String>,
) -> Vec<Band> {
    let mut bands = Vec::new();
    for upstream in &scenario.upstreams {
        let stages = upstream.stages();
        let ends = stages.iter().skip(1).map(|(at, _)| *at);
        for ((from, behaviour), to) in stages.iter().zip(ends.chain([scenario.duration])) {
            bands.extend(trouble(upstream, behaviour).map(|label| Band {
                from: from.as_secs_f64(),
                to: to.as_secs_f64(),
                label,
                is_trouble: true,
            }));
        }
    }
    bands
}

/// A chart of goodput without lines, with room for what the oracle gets in `windows`.
#[must_use]
pub fn goodput(scenario: &Scenario, bands: Vec<Band>, windows: &[RunWindow]) -> Chart {
    Chart {
        top: Some(goodput_top(windows)),
        ..empty(
            scenario,
            bands,
            "Goodput",
            "good answers a second, by time of arrival",
        )
    }
}

/// A chart of latency without lines, with the scenario's objective.
#[must_use]
pub fn latency(scenario: &Scenario, bands: Vec<Band>) -> Chart {
    let objective = LevelLine {
        value: number::millis(scenario.slo.latency),
        label: "objective".to_owned(),
    };
    Chart {
        top: Some(LATENCY_TOP_MS),
        levels: vec![objective],
        ..empty(scenario, bands, "99th percentile of answers 200", "ms")
    }
}

/// Adds limit and requests in flight of the filter to a chart. Replaces the chart's bands by the time in which the breaker is
/// not closed.
pub fn add_filter(chart: &mut Chart, samples: &[SeriesSample]) {
    let mut push = |name: &str, color, stroke, value: fn(&SeriesSample) -> Option<u64>| {
        let points = samples
            .iter()
            .map(|s| (s.at_s, value(s).map(number::float)));
        chart
            .lines
            .push(Line::new(name, color, points).stroke(stroke));
    };
    push("in flight", Color::Blue, Stroke::Solid, |s| s.in_flight);
    push("limit", Color::Teal, Stroke::Steps, |s| s.limit);
    let not_closed = samples.windows(2).filter_map(|pair| match pair {
        [a, b] if a.breaker.is_some_and(|state| state > 0) => Some((a.at_s, b.at_s)),
        _ => None,
    });
    let band = |(from, to)| Band {
        from,
        to,
        label: String::new(),
        is_trouble: true,
    };
    chart.bands = not_closed.map(band).collect();
}

/// A value of each window over time.
pub fn line(
    name: &str,
    color: Color,
    windows: &[RunWindow],
    value: impl Fn(&RunWindow) -> Option<f64>,
) -> Line {
    Line::new(name, color, windows.iter().map(|w| (w.at_s, value(w))))
}

/// Latency in milliseconds on the right axis of a chart.
#[must_use]
pub fn latency_axis() -> RightAxis {
    RightAxis {
        unit: "ms".to_owned(),
        top: Some(LATENCY_TOP_MS),
    }
}

/// What callers offer, as a dashed line.
#[must_use]
pub fn offered(windows: &[RunWindow]) -> Line {
    line("offered", Color::Grey, windows, |w| Some(w.offered)).stroke(Stroke::Dashed)
}

/// The oracle's goodput.
#[must_use]
pub fn oracle(windows: &[RunWindow]) -> Line {
    line("oracle", Color::Slate, windows, |w| Some(w.oracle)).stroke(Stroke::Dashed)
}

/// Top of a goodput chart: the oracle's greatest goodput and 25 % more; requests a second.
#[must_use]
pub fn goodput_top(windows: &[RunWindow]) -> f64 {
    windows.iter().map(|w| w.oracle).fold(1.0, f64::max) * 1.25
}
