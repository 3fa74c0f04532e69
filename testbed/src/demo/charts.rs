//! The demo's charts.

use std::time::Duration;

use super::{DemoResult, SideRecord, StoryPhase};
use tidegate_report::chart::{Band, Chart, LevelLine, Line, Stroke};
use tidegate_report::color::Color;
use tidegate_sim::charts::{self, line};
use tidegate_sim::number;
use tidegate_sim::series::{self, RunWindow, SeriesSample};

/// Goodput of both sides over time: the picture of the effect.
#[must_use]
pub fn main_chart(told: &DemoResult) -> Chart {
    let mut chart = with_phases(told, "Goodput", "good answers a second", true);
    chart.height = 330;
    chart.top = Some(told.story.capacity() * 1.35);
    let (with, without) = both(told);
    let oracle = line("what an oracle gets", Color::Slate, &with, |w| {
        Some(w.oracle)
    });
    let good = line(WITH, Color::Teal, &with, |w| Some(w.good));
    chart.lines.extend([
        oracle.stroke(Stroke::Dashed),
        line(WITHOUT, Color::Red, &without, |w| Some(w.good)),
        good.stroke(Stroke::Area),
    ]);
    chart
}

pub(super) fn latency(told: &DemoResult) -> Chart {
    let mut chart = with_phases(told, "99th percentile", "ms, answers 200", false);
    chart.top = Some(1_080.0);
    let story = &told.story;
    let mut points = vec![(0.0, Some(number::millis(story.scenario.slo.latency)))];
    let pushes = story.pushes.iter();
    points.extend(pushes.map(|push| (push.at.as_secs_f64(), Some(number::millis(push.latency)))));
    let last = points.last().and_then(|(_, value)| *value);
    points.push((end(told), last));
    let (with, without) = both(told);
    chart.lines.extend([
        Line::new("objective", Color::Grey, points).stroke(Stroke::Steps),
        line(WITHOUT, Color::Red, &without, |w| w.p99_ms),
        line(WITH, Color::Teal, &with, |w| w.p99_ms),
    ]);
    chart
}

pub(super) fn bad(told: &DemoResult) -> Chart {
    let mut chart = with_phases(told, "Not answered", "requests a second", false);
    let (with, without) = both(told);
    let failed = |name, color, windows| line(name, color, windows, |w| Some(w.failed));
    chart.lines.extend([
        failed("without: errors and given up", Color::Red, &without),
        line("with: shed at once", Color::Gold, &with, |w| Some(w.shed)),
        failed("with: errors and given up", Color::Teal, &with),
    ]);
    chart
}

pub(super) fn reached(told: &DemoResult) -> Chart {
    let mut chart = with_phases(told, "What reaches the service", "requests a second", false);
    let sides = [
        (WITHOUT, Color::Red, &told.without),
        (WITH, Color::Teal, &told.with),
    ];
    for (name, color, side) in sides {
        let rate = |around: &[SeriesSample]| match around {
            [a, .., b] => {
                let rate = number::float(b.received - a.received) / (b.at_s - a.at_s).max(1e-3);
                Some((f64::midpoint(a.at_s, b.at_s), Some(rate)))
            }
            _ => None,
        };
        let points = samples(told, side).windows(5).step_by(2).filter_map(rate);
        chart.lines.push(Line::new(name, color, points));
    }
    chart.levels.push(LevelLine {
        value: told.story.capacity(),
        label: "capacity".to_owned(),
    });
    chart
}

pub(super) fn inside(told: &DemoResult) -> Chart {
    let title = "Inside the filter: limit and requests in flight";
    let unit = "requests; shaded: breaker open or half-open";
    let mut chart = with_phases(told, title, unit, false);
    charts::add_filter(&mut chart, samples(told, &told.with));
    chart
}

/// Names of the two sides' lines.
const WITH: &str = "with Tidegate";
const WITHOUT: &str = "without";

/// The end of the story, in seconds.
fn end(told: &DemoResult) -> f64 {
    told.story.scenario.duration.as_secs_f64()
}

/// A side's samples until the end of the story.
fn samples<'a>(told: &DemoResult, side: &'a SideRecord) -> &'a [SeriesSample] {
    let until = side.samples.iter().take_while(|s| s.at_s <= end(told));
    side.samples.get(..until.count()).unwrap_or_default()
}

/// The windows with the filter and without.
fn both(told: &DemoResult) -> (Vec<RunWindow>, Vec<RunWindow>) {
    (windows(told, &told.with), windows(told, &told.without))
}

fn with_phases(told: &DemoResult, title: &str, unit: &str, is_named: bool) -> Chart {
    let mut chart = Chart::new(title, unit, told.story.scenario.duration.as_secs_f64());
    let band = |(phase, end): (&StoryPhase, Duration)| Band {
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

/// Windows of a sixtieth of the story each; goodput counts by the objective of its time.
fn windows(told: &DemoResult, side: &SideRecord) -> Vec<RunWindow> {
    let story = &told.story;
    let length = (story.scenario.duration / 60).clamp(SHORTEST_WINDOW, LONGEST_WINDOW);
    series::windows_with(&story.scenario, &side.records, length, |at| {
        story.objective_at(at)
    })
}

/// Shorter windows show noise, not goodput.
const SHORTEST_WINDOW: Duration = Duration::from_millis(250);
/// Longer windows hide how fast something settles.
const LONGEST_WINDOW: Duration = Duration::from_secs(1);
