//! Charts of cells over time: response time and rates, second by second.

use tidegate_report::chart::{Chart, LevelLine, Line, Stroke, WIDTH};
use tidegate_report::color::Color;
use tidegate_report::page::Page;
use tidegate_sim::number;

use super::groups::{CellGroup, entrants};
use crate::result::{CellResult, Point};

/// Width and height of charts side by side, in pixels.
const SMALL: (u32, u32) = (430, 220);

/// Response times beyond this many objectives are drawn at the end of the axis, so that shorter ones remain readable.
const OBJECTIVES: f64 = 6.0;

/// Adds the charts of one point: response time and goodput of all entrants together, then the rates of each.
pub(super) fn write(page: &mut Page, groups: &[CellGroup<'_>]) {
    let painted: Vec<(&CellResult, String, Color)> = entrants(groups)
        .into_iter()
        .filter_map(|(entrant, name, color)| {
            let group = groups.iter().find(|group| group.entrant() == entrant)?;
            let first = group.ended.iter().find(|cell| !cell.series.is_empty())?;
            Some((*first, name, color))
        })
        .collect();
    if painted.is_empty() {
        return;
    }
    let seconds = painted
        .iter()
        .map(|(cell, ..)| length(cell))
        .fold(0.0, f64::max);
    let mut p95 = Chart::new("p95 of the answers with success", "ms", seconds);
    let mut good = Chart::new("Good answers", "a second", seconds);
    for (cell, name, color) in painted.iter().rev() {
        p95.lines
            .push(line(name, *color, cell, |point| point.p95_ms));
        good.lines
            .push(line(name, *color, cell, |point| Some(point.good_rps)));
    }
    if let Some(objective) = painted
        .iter()
        .find_map(|(cell, ..)| cell.number("objective_ms"))
    {
        p95.levels.push(LevelLine {
            value: objective,
            label: "objective".to_owned(),
        });
        p95.top = Some(objective * OBJECTIVES).filter(|top| greatest(&p95) > *top);
    }
    let is_alone = painted.len() == 1;
    let has_p95 = painted
        .iter()
        .any(|(cell, ..)| cell.series.iter().any(|point| point.p95_ms.is_some()));
    if has_p95 {
        page.charts([p95]);
    }
    if !is_alone {
        page.charts([good]);
    }
    let rates = painted.iter().map(|(cell, name, color)| {
        let chart = rates(cell, name, *color, seconds);
        let (width, height) = if is_alone {
            (WIDTH, chart.height)
        } else {
            SMALL
        };
        Chart {
            width,
            height,
            ..chart
        }
    });
    page.charts(rates);
}

/// The results of the requests of one contender.
fn rates(cell: &CellResult, name: &str, color: Color, seconds: f64) -> Chart {
    let mut chart = Chart::new(name, "requests a second", seconds);
    let of = |name: &str, color, value: fn(&Point) -> f64| {
        line(name, color, cell, move |point| Some(value(point)))
    };
    chart
        .lines
        .push(of("good", color, |point| point.good_rps).stroke(Stroke::Area));
    chart
        .lines
        .push(of("shed", Color::Orange, |point| point.shed_rps));
    chart
        .lines
        .push(of("failed", Color::Plum, |point| point.error_rps));
    chart
        .lines
        .push(of("all", Color::Grey, |point| point.rps).stroke(Stroke::Dashed));
    chart
}

fn line(
    name: &str,
    color: Color,
    cell: &CellResult,
    value: impl Fn(&Point) -> Option<f64>,
) -> Line {
    // A point is in the middle of its period.
    let half = step(cell) / 2.0;
    Line::new(
        name,
        color,
        cell.series
            .iter()
            .map(|point| (point.t + half, value(point))),
    )
}

fn greatest(chart: &Chart) -> f64 {
    let values = chart
        .lines
        .iter()
        .flat_map(|line| &line.points)
        .filter_map(|(_, value)| *value);
    values.fold(0.0, f64::max)
}

/// Length of a cell's story in seconds.
fn length(cell: &CellResult) -> f64 {
    cell.series.last().map_or_else(
        || number::float_len(cell.series.len()),
        |point| point.t + step(cell),
    )
}

/// Length of the period of a point, in seconds.
fn step(cell: &CellResult) -> f64 {
    match cell.series.as_slice() {
        [first, second, ..] => second.t - first.t,
        _ => 1.0,
    }
}
