//! Fleet runs for people: a table, and a page with charts.

use super::FleetRun;
use super::checks::RunCost;
use super::figures::{FleetFigures, FleetPhaseFigures};
use super::series::FleetPoint;
use super::swing::Swing;
use crate::number::float;
use tidegate_report::chart::{Band, Chart, Line, Stroke};
use tidegate_report::color::Color;
use tidegate_report::page::Page;
use tidegate_report::table::Table;

/// Tables show the period of a swing that is stronger than this.
const TOLD_STRENGTH: f64 = 0.4;

const HEAD: [&str; 15] = [
    "story, topology, phase",
    "offered/s",
    "good/s",
    "score",
    "p50 ms",
    "p99 ms",
    "shed",
    "wasted",
    "at endpoints/slots",
    "Jain rate",
    "Jain share",
    "share p01..p99",
    "swing of load",
    "swing of goodput",
    "settled s",
];

/// All phases of all runs as a table.
#[must_use]
pub fn table(runs: &[(FleetRun, RunCost)]) -> Table {
    let rows = runs.iter().flat_map(|(run, _)| {
        let figures = &run.figures;
        figures.phases.iter().map(move |phase| row(figures, phase))
    });
    Table::new(&HEAD, rows.collect())
}

fn row(figures: &FleetFigures, phase: &FleetPhaseFigures) -> Vec<String> {
    let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.0}"));
    let index =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
    let swing = |swing: &Swing| {
        let period = swing.period_s.filter(|_| swing.strength > TOLD_STRENGTH);
        let rhythm = period.map_or_else(String::new, |s| format!(" every {s:.1} s"));
        format!(
            "{:.1} %, {:.2}{rhythm}",
            swing.variation * 100.0,
            swing.strength
        )
    };
    let share = match (phase.served_light, phase.served_heavy) {
        (Some(light), Some(heavy)) => format!(
            "{:.2}..{:.2} ({light:.2}, {heavy:.2})",
            phase.served_p01, phase.served_p99
        ),
        _ => format!("{:.3}..{:.3}", phase.served_p01, phase.served_p99),
    };
    vec![
        format!(
            "{}, {}, {}",
            figures.story, figures.topology, phase.phase.name
        ),
        format!("{:.0}", phase.offered),
        format!("{:.0}", phase.goodput),
        format!("{:.4}", phase.score),
        ms(phase.p50_ms),
        ms(phase.p99_ms),
        format!("{:.4}", phase.shed_by_limit + phase.shed_by_breaker),
        format!("{:.4}", phase.wasted),
        format!("{:.2}", phase.at_endpoints / phase.slots.max(1.0)),
        index(phase.fairness),
        index(phase.served_fairness),
        share,
        swing(&phase.load_swing),
        swing(&phase.goodput_swing),
        phase
            .settle_s
            .map_or_else(|| "never".to_owned(), |s| format!("{s:.1}")),
    ]
}

/// A page with a table and charts that set the topologies of each story beside each other.
#[must_use]
pub fn page(runs: &[(FleetRun, RunCost)]) -> Page {
    let mut page = Page::new("A fleet in front of one service");
    page.paragraph(
        "Sidecars adapt each for itself, and know nothing of each other; a waypoint sees all requests. Same service, \
         same callers, same load. Fairness is the index of Jain over callers: 1 when all have the same. A swing \
         is told by the coefficient of variation and by how high the autocorrelation comes back.",
    );
    page.table(table(runs));
    let mut stories: Vec<&str> = runs
        .iter()
        .map(|(run, _)| run.figures.story.as_str())
        .collect();
    stories.dedup();
    for story in stories {
        page.heading(story);
        let of_story: Vec<&FleetFigures> = runs
            .iter()
            .map(|(run, _)| &run.figures)
            .filter(|figures| figures.story == story)
            .collect();
        page.charts(charts(&of_story));
    }
    for (run, cost) in runs {
        page.note(&format!(
            "{} {}: {} proxies, {} requests, {} events, {:.1} s, digest {}",
            run.figures.story,
            run.figures.topology,
            run.figures.proxies,
            run.figures.offered,
            run.events,
            cost.took.as_secs_f64(),
            run.digest
        ));
    }
    page
}

/// What a chart shows of a second.
type Value = fn(&FleetPoint) -> Option<f64>;

const CHARTS: [(&str, &str, Value); 6] = [
    ("Good answers", "a second", |p| Some(float(p.good))),
    ("Latency of answers, 99th percentile", "ms", |p| p.p99_ms),
    ("Requests at the endpoints", "requests", |p| {
        Some(float(p.in_service + p.waiting))
    }),
    (
        "Fairness of admitted rates",
        "index of Jain, by the second",
        |p| p.fairness,
    ),
    ("Sum of the limits", "requests", |p| Some(float(p.limit))),
    ("Proxies whose breaker is not closed", "proxies", |p| {
        Some(float(p.not_closed))
    }),
];

fn charts(runs: &[&FleetFigures]) -> Vec<Chart> {
    let chart = |(title, unit, value): &(&str, &str, Value)| {
        let seconds = runs.first().map_or(0.0, |figures| {
            figures.series.last().map_or(0.0, |point| point.at_s)
        });
        let mut chart = Chart::new(title, unit, seconds);
        if let (true, Some(first)) = (title.starts_with("Good"), runs.first()) {
            let possible = first.series.iter().map(|p| (p.at_s, Some(p.possible)));
            let line = Line::new("what can be", Color::Slate, possible);
            chart.lines.push(line.stroke(Stroke::Dashed));
        }
        let colors = [Color::Teal].into_iter().chain(Color::FREE);
        for (figures, color) in runs.iter().zip(colors) {
            let points = figures
                .series
                .iter()
                .map(|point| (point.at_s, value(point)));
            chart
                .lines
                .push(Line::new(&figures.topology, color, points));
        }
        let phases = runs.first().map(|figures| figures.phases.as_slice());
        for phase in phases.unwrap_or_default() {
            chart.bands.push(Band {
                from: f64::from(phase.phase.from_s),
                to: f64::from(phase.phase.to_s),
                label: phase.phase.name.to_owned(),
                is_trouble: !matches!(phase.phase.name, "before" | "after" | "steady"),
            });
        }
        chart
    };
    CHARTS.iter().map(chart).collect()
}
