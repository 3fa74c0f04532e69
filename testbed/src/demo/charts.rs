//! The demo's charts.

use std::time::Duration;

use super::{Phase, SideRecord, Told};
use tidegate_report::chart::{Band, Chart, Level, Line, Stroke};
use tidegate_report::color::Color;
use tidegate_sim::charts;
use tidegate_sim::number;
use tidegate_sim::series::{self, Window};

/// Goodput of both sides over time: the picture of the effect.
#[must_use]
pub fn main_chart(told: &Told) -> Chart {
    let mut chart = with_phases(told, "Goodput", "good answers a second", true);
    chart.height = 330;
    chart.top = Some(told.story.capacity() * 1.35);
    let windows = windows(told, &told.with);
    chart.lines.push(line(
        "what an oracle gets",
        Color::Slate,
        Stroke::Dashed,
        &windows,
        |w| Some(w.oracle),
    ));
    chart.lines.push(line(
        "without",
        Color::Red,
        Stroke::Solid,
        &self::windows(told, &told.without),
        |w| Some(w.good),
    ));
    chart.lines.push(line(
        "with Tidegate",
        Color::Teal,
        Stroke::Area,
        &windows,
        |w| Some(w.good),
    ));
    chart
}

pub(super) fn latency(told: &Told) -> Chart {
    let mut chart = with_phases(told, "99th percentile", "ms, answers 200", false);
    chart.top = Some(1_080.0);
    let end = told.story.scenario.duration.as_secs_f64();
    let mut points = vec![(0.0, Some(number::millis(told.story.scenario.slo.latency)))];
    points.extend(
        told.story
            .pushes
            .iter()
            .map(|push| (push.at.as_secs_f64(), Some(number::millis(push.latency)))),
    );
    points.push((end, points.last().and_then(|(_, value)| *value)));
    chart
        .lines
        .push(Line::new("objective", Color::Grey, points).stroke(Stroke::Steps));
    chart.lines.push(line(
        "without",
        Color::Red,
        Stroke::Solid,
        &windows(told, &told.without),
        |w| w.p99_ms,
    ));
    chart.lines.push(line(
        "with Tidegate",
        Color::Teal,
        Stroke::Solid,
        &windows(told, &told.with),
        |w| w.p99_ms,
    ));
    chart
}

pub(super) fn bad(told: &Told) -> Chart {
    let mut chart = with_phases(told, "Not answered", "requests a second", false);
    let (with, without) = (windows(told, &told.with), windows(told, &told.without));
    chart.lines.push(line(
        "without: errors and given up",
        Color::Red,
        Stroke::Solid,
        &without,
        |w| Some(w.failed),
    ));
    chart.lines.push(line(
        "with: shed, told at once",
        Color::Gold,
        Stroke::Solid,
        &with,
        |w| Some(w.shed),
    ));
    chart.lines.push(line(
        "with: errors and given up",
        Color::Teal,
        Stroke::Solid,
        &with,
        |w| Some(w.failed),
    ));
    chart
}

pub(super) fn reached(told: &Told) -> Chart {
    let mut chart = with_phases(told, "What reaches the service", "requests a second", false);
    let lines = [
        ("without", Color::Red, &told.without.samples),
        ("with Tidegate", Color::Teal, &told.with.samples),
    ];
    let end = told.story.scenario.duration.as_secs_f64();
    for (name, color, samples) in lines {
        let told = samples
            .iter()
            .take_while(|sample| sample.at_s <= end)
            .count();
        let points = samples
            .get(..told)
            .unwrap_or_default()
            .windows(5)
            .step_by(2)
            .filter_map(|around| match around {
                [a, .., b] => {
                    let rate = number::float(b.received - a.received) / (b.at_s - a.at_s).max(1e-3);
                    Some((f64::midpoint(a.at_s, b.at_s), Some(rate)))
                }
                _ => None,
            });
        chart.lines.push(Line::new(name, color, points));
    }
    chart.levels.push(Level {
        value: told.story.capacity(),
        label: "capacity".to_owned(),
    });
    chart
}

pub(super) fn inside(told: &Told) -> Chart {
    let unit = "requests; shaded: breaker open or half-open";
    let mut chart = with_phases(
        told,
        "Inside the filter: limit and requests in flight",
        unit,
        false,
    );
    let end = told.story.scenario.duration.as_secs_f64();
    let before_end = told
        .with
        .samples
        .iter()
        .take_while(|sample| sample.at_s <= end)
        .count();
    let samples = told.with.samples.get(..before_end).unwrap_or_default();
    charts::add_filter(&mut chart, samples);
    chart
}

fn with_phases(told: &Told, title: &str, unit: &str, is_named: bool) -> Chart {
    let mut chart = Chart::new(title, unit, told.story.scenario.duration.as_secs_f64());
    let band = |(phase, end): (&Phase, Duration)| Band {
        from: phase.at.as_secs_f64(),
        to: end.as_secs_f64(),
        label: if is_named {
            phase.name.clone()
        } else {
            String::new()
        },
        is_trouble: ["overload", "errors", "hang", "spike", "tighter"]
            .contains(&phase.name.as_str()),
    };
    chart.bands = told.story.stretches().map(band).collect();
    chart
}

/// Windows with goodput by the objective of their time; a sixtieth of the story each.
fn windows(told: &Told, side: &SideRecord) -> Vec<Window> {
    let story = &told.story;
    let length = (story.scenario.duration / 60).clamp(SHORTEST_WINDOW, LONGEST_WINDOW);
    series::windows_with(&story.scenario, &side.records, length, |at| {
        story.objective_at(at)
    })
}

/// Shorter windows show chance, not goodput.
const SHORTEST_WINDOW: Duration = Duration::from_millis(250);
/// Longer windows hide how fast something settles.
const LONGEST_WINDOW: Duration = Duration::from_secs(1);

fn line(
    name: &str,
    color: Color,
    stroke: Stroke,
    windows: &[Window],
    value: fn(&Window) -> Option<f64>,
) -> Line {
    let points = windows.iter().map(|window| (window.at_s, value(window)));
    Line::new(name, color, points).stroke(stroke)
}
