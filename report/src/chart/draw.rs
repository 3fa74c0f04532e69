//! A chart on the canvas of `plotters`.
//!
//! The library counts whole pixels, so that it draws on a canvas of twice the size: the steps of its lines are
//! then half a pixel, and nobody sees them.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::legend::legend;
use super::{Axis, Band, Chart, Ground, Level, Line, Mark, Stroke};
use crate::colour::Colour;

/// Pixels of the canvas for one of the picture.
pub(super) const FINENESS: u32 = 2;

/// Rooms around the plot, in pixels.
pub(super) const LEFT: u32 = 52;
pub(super) const RIGHT: u32 = 14;
const BOTTOM: u32 = 24;
pub(super) const TITLE: u32 = 28;

/// Sizes of letters, in pixels.
const TITLE_LETTERS: u32 = 15;
pub(super) const SMALL_LETTERS: u32 = 11;

/// How strongly a stretch of trouble and an area below a line are coloured.
const BAND_STRENGTH: f64 = 0.08;
const AREA_STRENGTH: f64 = 0.14;

/// Widths of lines on the canvas.
const THICK: u32 = 4;
const THIN: u32 = 3;

/// Room for a time on its axis, in pixels.
const TIME_LABEL: u32 = 70;
/// Most numbers on an axis of values.
pub(super) const VALUE_LABELS: usize = 6;

/// Room above the greatest value.
pub(super) const HEADROOM: f64 = 1.08;

/// To the right of a place, at its height.
pub(super) const BESIDE: Pos = Pos {
    h_pos: HPos::Left,
    v_pos: VPos::Center,
};
const BEFORE: Pos = Pos {
    h_pos: HPos::Right,
    v_pos: VPos::Center,
};
pub(super) const BELOW: Pos = Pos {
    h_pos: HPos::Center,
    v_pos: VPos::Top,
};
const RIGHT_BELOW: Pos = Pos {
    h_pos: HPos::Left,
    v_pos: VPos::Top,
};
const LEFT_ABOVE: Pos = Pos {
    h_pos: HPos::Right,
    v_pos: VPos::Bottom,
};

pub(super) type Result<T> = std::result::Result<T, DrawingAreaErrorKind<std::io::Error>>;
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plane = Cartesian2d<RangedCoordf64, RangedCoordf64>;
type Plot<'a, 'b> = plotters::chart::DualCoordChartContext<'a, SVGBackend<'b>, Plane, Plane>;

/// Pixels of the canvas.
pub(super) const fn px(pixels: u32) -> u32 {
    pixels * FINENESS
}

/// Draws `chart` as a whole SVG document.
pub(super) fn draw(chart: &Chart, ground: Ground) -> Result<String> {
    let mut svg = String::new();
    let area =
        SVGBackend::with_string(&mut svg, (px(chart.width), px(chart.height))).into_drawing_area();
    if ground == Ground::Own {
        area.fill(&colour(Colour::Ground))?;
    }
    let unit = match &chart.right {
        Some(right) => format!("{} (left), {} (right)", chart.unit, right.unit),
        None => chart.unit.clone(),
    };
    let names = heading(&area, &chart.title, &unit, &chart.lines, chart.width)?;
    plot(chart, &area, px(TITLE) + names)?;
    area.present()?;
    drop(area);
    Ok(svg)
}

/// Draws title, unit and the names of `lines`, and tells how high the names are, in pixels of the canvas.
pub(super) fn heading(
    area: &Area<'_>,
    title: &str,
    unit: &str,
    lines: &[Line],
    width: u32,
) -> Result<u32> {
    let end = px(width.saturating_sub(RIGHT));
    let place = (pixels(px(LEFT)), pixels(px(TITLE) / 2));
    area.draw(&Text::new(
        title,
        place,
        letters(TITLE_LETTERS, Colour::Ink).pos(BESIDE),
    ))?;
    area.draw(&Text::new(
        unit,
        (pixels(end), place.1),
        letters(SMALL_LETTERS, Colour::Soft).pos(BEFORE),
    ))?;
    legend(lines, area, px(TITLE), px(LEFT), end)
}

/// Axes, stretches, lines.
fn plot(chart: &Chart, area: &Area<'_>, top: u32) -> Result<()> {
    let seconds = 0.0..chart.seconds.max(1e-9);
    let is_left = |line: &Line| line.axis == Axis::Left || chart.right.is_none();
    let left_top = axis_end(
        chart.top,
        chart.lines.iter().filter(|line| is_left(line)),
        &chart.levels,
    );
    let right_lines = chart.lines.iter().filter(|line| !is_left(line));
    let right_top = axis_end(
        chart.right.as_ref().and_then(|right| right.top),
        right_lines,
        &[],
    );
    let right_room = if chart.right.is_some() { LEFT } else { 0 };
    let mut plot = ChartBuilder::on(area)
        .margin_top(top + px(4))
        .margin_right(px(if chart.right.is_some() { 0 } else { RIGHT }))
        .x_label_area_size(px(BOTTOM))
        .y_label_area_size(px(LEFT))
        .right_y_label_area_size(px(right_room))
        .build_cartesian_2d(seconds.clone(), 0.0..left_top)?
        .set_secondary_coord(seconds, 0.0..right_top);
    axes(chart, &mut plot)?;
    for band in &chart.bands {
        shade(&mut plot, band, left_top)?;
    }
    for level in chart.levels.iter().filter(|level| level.value <= left_top) {
        across(chart, &mut plot, level)?;
    }
    for mark in &chart.marks {
        upright(&mut plot, mark, left_top)?;
    }
    for line in &chart.lines {
        if is_left(line) {
            plot.draw_series(elements(line, left_top))?;
        } else {
            plot.draw_secondary_series(elements(line, right_top))?;
        }
    }
    Ok(())
}

/// Where an axis ends: as asked for, or a little above everything on it.
fn axis_end<'a>(
    asked: Option<f64>,
    lines: impl Iterator<Item = &'a Line>,
    levels: &[Level],
) -> f64 {
    let values = lines
        .flat_map(|line| &line.points)
        .filter_map(|(_, value)| value.filter(|value| value.is_finite()));
    let greatest = values
        .chain(levels.iter().map(|level| level.value))
        .fold(0.0, f64::max);
    let end = asked.unwrap_or(greatest * HEADROOM);
    if end.is_finite() && end > 0.0 {
        end
    } else {
        1.0
    }
}

fn axes(chart: &Chart, plot: &mut Plot<'_, '_>) -> Result<()> {
    let small = letters(SMALL_LETTERS, Colour::Text);
    let seconds = |at: &f64| format!("{} s", short(*at));
    let value = |value: &f64| short(*value);
    plot.configure_mesh()
        .disable_x_mesh()
        .axis_style(colour(Colour::Grid))
        .bold_line_style(colour(Colour::Grid).stroke_width(FINENESS))
        .light_line_style(TRANSPARENT)
        .x_labels(usize::try_from(chart.width / TIME_LABEL).unwrap_or(1))
        .y_labels(VALUE_LABELS)
        .x_label_formatter(&seconds)
        .y_label_formatter(&value)
        .label_style(small.clone())
        .draw()?;
    if chart.right.is_some() {
        plot.configure_secondary_axes()
            .axis_style(colour(Colour::Grid))
            .y_labels(VALUE_LABELS)
            .y_label_formatter(&value)
            .label_style(small)
            .draw()?;
    }
    Ok(())
}

fn shade(plot: &mut Plot<'_, '_>, band: &Band, top: f64) -> Result<()> {
    if band.is_trouble {
        let style = colour(Colour::Red).mix(BAND_STRENGTH).filled();
        let corners = [(band.from, top), (band.to, 0.0)];
        plot.draw_series(std::iter::once(Rectangle::new(corners, style)))?;
    }
    let middle = f64::midpoint(band.from, band.to);
    name(plot, &band.label, (middle, top), BELOW)
}

fn upright(plot: &mut Plot<'_, '_>, mark: &Mark, top: f64) -> Result<()> {
    let style = colour(Colour::Soft).stroke_width(FINENESS);
    let ends = [(mark.at, 0.0), (mark.at, top)].into_iter();
    let line = DashedPathElement::new(ends, px(2), px(3), style);
    plot.draw_series(std::iter::once(line))?;
    name(
        plot,
        &format!(" {}", mark.label),
        (mark.at, top),
        RIGHT_BELOW,
    )
}

fn across(chart: &Chart, plot: &mut Plot<'_, '_>, level: &Level) -> Result<()> {
    let style = colour(Colour::Soft).stroke_width(FINENESS);
    let ends = [(0.0, level.value), (chart.seconds, level.value)].into_iter();
    let line = DashedPathElement::new(ends, px(2), px(3), style);
    plot.draw_series(std::iter::once(line))?;
    name(plot, &level.label, (chart.seconds, level.value), LEFT_ABOVE)
}

fn name(plot: &mut Plot<'_, '_>, text: &str, place: (f64, f64), pos: Pos) -> Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let style = letters(SMALL_LETTERS, Colour::Soft).pos(pos);
    plot.draw_series(std::iter::once(Text::new(text.to_owned(), place, style)))?;
    Ok(())
}

/// What a line is drawn of, with values beyond `top` on the end of the axis.
fn elements<'a>(line: &Line, top: f64) -> Vec<DynElement<'static, SVGBackend<'a>, (f64, f64)>> {
    let style = stroke_of(line);
    let mut elements = Vec::new();
    let is_gap = |(_, value): &(f64, Option<f64>)| value.is_none_or(|value| !value.is_finite());
    for run in line.points.split(is_gap) {
        let points = run
            .iter()
            .filter_map(|(at, value)| value.map(|value| (*at, value.clamp(0.0, top))));
        let points: Vec<(f64, f64)> = points.collect();
        match line.stroke {
            _ if points.is_empty() => {}
            Stroke::Solid => elements.push(PathElement::new(points, style).into_dyn()),
            Stroke::Steps => elements.push(PathElement::new(steps(&points), style).into_dyn()),
            Stroke::Dashed => {
                elements.push(DashedPathElement::new(points, px(5), px(4), style).into_dyn())
            }
            Stroke::Area => {
                let below = colour(line.colour).mix(AREA_STRENGTH);
                elements.extend(AreaSeries::new(points.clone(), 0.0, below));
                elements.push(PathElement::new(points, style).into_dyn());
            }
        }
    }
    elements
}

/// The corners of a line whose values hold until the next point.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::with_capacity(points.len() * 2);
    for (at, value) in points {
        corners.extend(corners.last().map(|(_, held)| (*at, *held)));
        corners.push((*at, *value));
    }
    corners
}

/// Colour and width of a line.
pub(super) fn stroke_of(line: &Line) -> ShapeStyle {
    let width = match line.stroke {
        Stroke::Dashed => THIN,
        Stroke::Solid | Stroke::Area | Stroke::Steps => THICK,
    };
    colour(line.colour).stroke_width(width)
}

/// Letters of `size` pixels.
pub(super) fn letters(size: u32, ink: Colour) -> TextStyle<'static> {
    // The library writes sizes divided by this factor.
    let size = f64::from(px(size)) * 1.24;
    ("sans-serif", size).into_font().color(&colour(ink))
}

pub(super) fn colour(colour: Colour) -> RGBColor {
    let [red, green, blue] = colour.on_light();
    RGBColor(red, green, blue)
}

/// A place as the library counts it.
pub(super) fn pixels(pixels: u32) -> i32 {
    i32::try_from(pixels).unwrap_or(i32::MAX)
}

/// A number as short as it can be.
pub(super) fn short(value: f64) -> String {
    if value >= 10_000.0 {
        format!("{:.0}k", value / 1_000.0)
    } else if (value - value.round()).abs() < 1e-9 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}").trim_end_matches('0').to_owned()
    }
}
