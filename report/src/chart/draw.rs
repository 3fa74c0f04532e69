//! Draws a chart over time.

use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{
    Area, BELOW, FINENESS, Ground, HEADROOM, LEFT, RIGHT, Result, SMALL_LETTERS, TITLE,
    VALUE_LABELS, framed, ink, letters, px, short,
};
use super::legend::{heading, stroke_of};
use super::{Axis, Band, Chart, LevelLine, Line, Mark, Stroke};
use crate::color::Color;

/// Room below the plot, in pixels.
const BOTTOM: u32 = 24;

/// How strongly a stretch of trouble and an area below a line are colored.
const BAND_STRENGTH: f64 = 0.08;
const AREA_STRENGTH: f64 = 0.14;

/// Room for a time on its axis, in pixels.
const TIME_LABEL: u32 = 70;
const RIGHT_BELOW: Pos = Pos {
    h_pos: HPos::Left,
    v_pos: VPos::Top,
};
const LEFT_ABOVE: Pos = Pos {
    h_pos: HPos::Right,
    v_pos: VPos::Bottom,
};

type Plane = Cartesian2d<RangedCoordf64, RangedCoordf64>;
type Plot<'a, 'b> = plotters::chart::DualCoordChartContext<'a, SVGBackend<'b>, Plane, Plane>;

impl Chart {
    /// The chart as an SVG element for a page, which has the style of charts.
    ///
    /// A chart that cannot be drawn is replaced by the reason.
    #[must_use]
    pub(crate) fn svg(&self) -> String {
        self.element(Ground::Page)
    }

    /// The chart as an SVG file of its own, with its style and its ground inside.
    #[must_use]
    pub fn file(&self) -> String {
        self.element(Ground::Own)
    }

    fn element(&self, ground: Ground) -> String {
        let size = (self.width, self.height);
        framed(&self.title, size, ground, draw(self, ground))
    }
}

/// Draws `chart` as a whole SVG document.
fn draw(chart: &Chart, ground: Ground) -> Result<String> {
    let mut svg = String::new();
    let area =
        SVGBackend::with_string(&mut svg, (px(chart.width), px(chart.height))).into_drawing_area();
    if ground == Ground::Own {
        area.fill(&ink(Color::Ground))?;
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
    levels: &[LevelLine],
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
    let small = letters(SMALL_LETTERS, Color::Text);
    let seconds = |at: &f64| format!("{} s", short(*at));
    let value = |value: &f64| short(*value);
    plot.configure_mesh()
        .disable_x_mesh()
        .axis_style(ink(Color::Grid))
        .bold_line_style(ink(Color::Grid).stroke_width(FINENESS))
        .light_line_style(TRANSPARENT)
        .x_labels(usize::try_from(chart.width / TIME_LABEL).unwrap_or(1))
        .y_labels(VALUE_LABELS)
        .x_label_formatter(&seconds)
        .y_label_formatter(&value)
        .label_style(small.clone())
        .draw()?;
    if chart.right.is_some() {
        plot.configure_secondary_axes()
            .axis_style(ink(Color::Grid))
            .y_labels(VALUE_LABELS)
            .y_label_formatter(&value)
            .label_style(small)
            .draw()?;
    }
    Ok(())
}

fn shade(plot: &mut Plot<'_, '_>, band: &Band, top: f64) -> Result<()> {
    if band.is_trouble {
        let style = ink(Color::Red).mix(BAND_STRENGTH).filled();
        let corners = [(band.from, top), (band.to, 0.0)];
        plot.draw_series(std::iter::once(Rectangle::new(corners, style)))?;
    }
    let middle = f64::midpoint(band.from, band.to);
    name(plot, &band.label, (middle, top), BELOW)
}

fn upright(plot: &mut Plot<'_, '_>, mark: &Mark, top: f64) -> Result<()> {
    let style = ink(Color::Soft).stroke_width(FINENESS);
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

fn across(chart: &Chart, plot: &mut Plot<'_, '_>, level: &LevelLine) -> Result<()> {
    let style = ink(Color::Soft).stroke_width(FINENESS);
    let ends = [(0.0, level.value), (chart.seconds, level.value)].into_iter();
    let line = DashedPathElement::new(ends, px(2), px(3), style);
    plot.draw_series(std::iter::once(line))?;
    name(plot, &level.label, (chart.seconds, level.value), LEFT_ABOVE)
}

fn name(plot: &mut Plot<'_, '_>, text: &str, place: (f64, f64), pos: Pos) -> Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let style = letters(SMALL_LETTERS, Color::Soft).pos(pos);
    plot.draw_series(std::iter::once(Text::new(text.to_owned(), place, style)))?;
    Ok(())
}

/// The elements of a line, with values beyond `top` at the end of the axis.
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
                let below = ink(line.color).mix(AREA_STRENGTH);
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

#[cfg(test)]
mod tests {
    use super::super::RightAxis;
    use super::super::canvas::style;
    use super::*;

    fn points(values: &[f64]) -> Vec<(f64, Option<f64>)> {
        let seconds = (0_u32..).map(f64::from);
        seconds.zip(values.iter().copied().map(Some)).collect()
    }

    fn chart(line: Line) -> Chart {
        Chart {
            lines: vec![line],
            ..Chart::new("t", "u", 4.0)
        }
    }

    /// Polylines of one color: the drawn runs of a line (its key in the legend is a straight line of two points).
    fn runs(svg: &str, hex: &str) -> usize {
        let of = format!("stroke=\"#{hex}\"");
        svg.lines()
            .filter(|element| element.starts_with("<polyline") && element.contains(&of))
            .count()
    }

    #[test]
    fn a_value_that_is_missing_or_no_number_breaks_the_line() {
        let whole = chart(Line::new(
            "a",
            Color::Blue,
            points(&[1.0, 2.0, 3.0, 1.0, 2.0]),
        ));
        let mut broken = whole.clone();
        broken.lines[0].points[2].1 = None;
        let mut infinite = whole.clone();
        infinite.lines[0].points[2].1 = Some(f64::INFINITY);
        let whole = runs(&whole.svg(), "2C6FBB");
        assert_eq!(runs(&broken.svg(), "2C6FBB"), whole + 1);
        assert_eq!(runs(&infinite.svg(), "2C6FBB"), whole + 1);
    }

    #[test]
    fn names_are_escaped() {
        let svg = chart(Line::new("a<b", Color::Blue, points(&[1.0, 2.0]))).svg();
        assert!(svg.contains("a&lt;b"), "{svg}");
    }

    #[test]
    fn every_color_of_a_chart_has_one_for_dark_ground() {
        let mut chart =
            chart(Line::new("a", Color::Teal, points(&[1.0, 2.0])).stroke(Stroke::Area));
        chart.bands.push(Band {
            from: 1.0,
            to: 2.0,
            label: "b".to_owned(),
            is_trouble: true,
        });
        chart.marks.push(Mark {
            at: 1.0,
            label: "m".to_owned(),
        });
        chart.levels.push(LevelLine {
            value: 1.5,
            label: "l".to_owned(),
        });
        let (file, style) = (chart.file(), style());
        let colors = file.split("=\"#").skip(1).filter_map(|rest| rest.get(..6));
        for color in colors {
            assert!(style.contains(&format!("[fill=\"#{color}\"]")), "{color}");
        }
    }

    #[test]
    fn right_axis_has_its_own_numbers() {
        let mut chart = chart(Line::new("a", Color::Blue, points(&[1.0, 2.0])));
        chart
            .lines
            .push(Line::new("b", Color::Red, points(&[1_000.0, 9_000.0])).right());
        chart.right = Some(RightAxis {
            unit: "bytes".to_owned(),
            top: Some(9_000.0),
        });
        let svg = chart.svg();
        assert!(svg.contains("bytes") && svg.contains("8000"), "{svg}");
    }

    #[test]
    fn a_chart_of_nothing_has_axes() {
        let svg = Chart::new("t", "u", 0.0).svg();
        assert!(svg.starts_with("<svg") && svg.contains("0 s"), "{svg}");
    }
}
