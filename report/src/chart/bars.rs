//! Values side by side: groups of bars, with the range of their repetitions.
//!
//! Each group is a point of comparison (a load, a number of replicas), each [`BarSeries`] one of those compared. On
//! a [`Scale::Log`] equal factors have equal heights, so that a value a hundred times another leaves both readable.
//!
//! Edges: a value that is missing or no number is a gap, marked by a cross where its bar would begin; on a logarithmic
//! scale values below its foot have no height.

use plotters::prelude::*;
use plotters::style::Color as _;

use serde::Serialize;

use super::canvas::{
    BELOW, FINENESS, Ground, HEADROOM, LEFT, RIGHT, Result, SMALL_LETTERS, TITLE, VALUE_LABELS,
    framed, ink, letters, pixels, px, short,
};
use super::legend::heading;
use super::{Line, WIDTH};
use crate::color::Color;

/// Groups of bars.
#[derive(Debug, Clone, Serialize)]
pub struct Bars {
    /// Title above it.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// Names of the groups, from left to right; a line break begins a second row.
    pub groups: Vec<String>,
    /// Those compared; each has a bar in each group.
    pub series: Vec<BarSeries>,
    /// How values become heights.
    #[serde(skip)]
    pub scale: Scale,
    /// Where the axis ends; none: a little above the greatest value. Not for [`Scale::Log`].
    pub top: Option<f64>,
    /// Width in pixels.
    #[serde(skip)]
    pub width: u32,
    /// Height in pixels.
    #[serde(skip)]
    pub height: u32,
}

/// One of those compared, such as a contender.
#[derive(Debug, Clone, Serialize)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// Color of the bars.
    #[serde(skip)]
    pub color: Color,
    /// One for each group; none is a gap.
    pub bars: Vec<Option<Bar>>,
}

/// A value with the range of its repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bar {
    /// The value.
    pub value: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

/// How values become heights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal heights.
    Linear,
    /// Equal factors have equal heights; the axis begins at a power of ten.
    Log,
}

/// Share of a group's width that its bars fill.
const FILLED: f64 = 0.8;
/// Share of a bar's room that the bar fills.
const BAR: f64 = 0.9;
/// Height of a row of group names, in pixels.
const ROW: u32 = 14;
/// Half the length of the strokes of a gap's cross, in pixels of the canvas.
const CROSS: i32 = 5;
/// How much lighter a bar is than the line of its range.
const STRENGTH: f64 = 0.75;
/// More decades than this below the greatest value are not shown.
const DECADES: f64 = 5.0;

impl Bars {
    /// Groups without bars yet.
    #[must_use]
    pub fn new(title: &str, unit: &str, groups: Vec<String>) -> Self {
        Self {
            title: title.to_owned(),
            unit: unit.to_owned(),
            groups,
            series: Vec::new(),
            scale: Scale::Linear,
            top: None,
            width: WIDTH,
            height: 260,
        }
    }

    /// The bars as an SVG element for a page, which has the style of charts.
    ///
    /// Bars that cannot be drawn are replaced by the reason.
    #[must_use]
    pub(crate) fn svg(&self) -> String {
        let size = (self.width, self.height);
        framed(&self.title, size, Ground::Page, self.draw())
    }

    fn draw(&self) -> Result<String> {
        let mut svg = String::new();
        let size = (px(self.width), px(self.height));
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let keys: Vec<Line> = self
            .series
            .iter()
            .map(|series| Line::new(&series.name, series.color, []))
            .collect();
        let names = heading(&area, &self.title, &self.unit, &keys, self.width)?;
        let axis = BarAxis::of(self);
        let rows = self.groups.iter().map(|name| name.lines().count()).max();
        let below = px(10) + px(ROW) * u32::try_from(rows.unwrap_or(1)).unwrap_or(1);
        let groups = count(self.groups.len()).max(1.0);
        let mut plot = ChartBuilder::on(&area)
            .margin_top(px(TITLE) + names + px(4))
            .margin_right(px(RIGHT))
            .margin_bottom(below)
            .y_label_area_size(px(LEFT))
            .build_cartesian_2d(0.0..groups, 0.0..axis.height)?;
        plot.configure_mesh()
            .disable_x_mesh()
            .axis_style(ink(Color::Grid))
            .bold_line_style(ink(Color::Grid).stroke_width(FINENESS))
            .light_line_style(TRANSPARENT)
            .x_labels(0)
            .y_labels(axis.labels())
            .y_label_formatter(&|height| short(axis.value(*height)))
            .label_style(letters(SMALL_LETTERS, Color::Text))
            .draw()?;
        for (index, name) in (0_u32..).zip(&self.groups) {
            let (x, y) = plot.backend_coord(&(f64::from(index) + 0.5, 0.0));
            for (row, text) in (0..).zip(name.lines()) {
                let y = y + pixels(px(5) + px(ROW) * row);
                let style = letters(SMALL_LETTERS, Color::Text).pos(BELOW);
                area.draw(&Text::new(text, (x, y), style))?;
            }
        }
        for (index, series) in (0_u32..).zip(&self.series) {
            for (group, bar) in (0_u32..).zip(&series.bars) {
                let room = FILLED / count(self.series.len());
                let left = f64::from(group) + (1.0 - FILLED) / 2.0;
                let middle = left + room * (f64::from(index) + 0.5);
                let paint = ink(series.color);
                let Some(bar) = bar.filter(|bar| bar.value.is_finite()) else {
                    let (x, y) = plot.backend_coord(&(middle, 0.0));
                    area.draw(&Cross::new(
                        (x, y - 2 * CROSS),
                        CROSS,
                        paint.stroke_width(FINENESS),
                    ))?;
                    continue;
                };
                let half = room * BAR / 2.0;
                let corners = [(middle - half, axis.at(bar.value)), (middle + half, 0.0)];
                let rectangle = Rectangle::new(corners, paint.mix(STRENGTH).filled());
                plot.draw_series(std::iter::once(rectangle))?;
                if bar.greatest > bar.least {
                    let ends = [
                        (middle, axis.at(bar.least)),
                        (middle, axis.at(bar.greatest)),
                    ];
                    let style = ink(Color::Ink).stroke_width(FINENESS);
                    plot.draw_series(std::iter::once(PathElement::new(ends, style)))?;
                }
            }
        }
        area.present()?;
        drop(plot);
        drop(area);
        Ok(svg)
    }
}

/// A count as a float; a chart has fewer than 2^32 of anything.
fn count(many: usize) -> f64 {
    u32::try_from(many).map_or(f64::INFINITY, f64::from)
}

/// The axis of values: on a logarithmic scale heights are decades above its foot.
#[derive(Debug, Clone, Copy)]
struct BarAxis {
    scale: Scale,
    foot: f64,
    height: f64,
}

impl BarAxis {
    fn of(bars: &Bars) -> Self {
        let values = bars.series.iter().flat_map(|series| &series.bars).flatten();
        let values = values.flat_map(|bar| [bar.value, bar.least, bar.greatest]);
        let values: Vec<f64> = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        match bars.scale {
            Scale::Linear => Self {
                scale: Scale::Linear,
                foot: 0.0,
                height: bars.top.filter(|top| *top > 0.0).unwrap_or(most * HEADROOM),
            },
            Scale::Log => {
                let least = values.iter().copied().fold(most, f64::min);
                let end = (most * HEADROOM).log10().ceil();
                let begin = least.log10().floor().min(end - 1.0).max(end - DECADES);
                Self {
                    scale: Scale::Log,
                    foot: 10_f64.powf(begin),
                    height: end - begin,
                }
            }
        }
    }

    /// The height of a value, within the axis.
    fn at(&self, value: f64) -> f64 {
        let height = match self.scale {
            Scale::Linear => value,
            Scale::Log if value <= self.foot => 0.0,
            Scale::Log => (value / self.foot).log10(),
        };
        height.clamp(0.0, self.height)
    }

    /// The value at a height.
    fn value(&self, height: f64) -> f64 {
        match self.scale {
            Scale::Linear => height,
            Scale::Log => self.foot * 10_f64.powf(height),
        }
    }

    /// Most numbers beside it: on a logarithmic scale the powers of ten.
    fn labels(&self) -> usize {
        match self.scale {
            Scale::Linear => VALUE_LABELS,
            Scale::Log => (1_u32..)
                .take_while(|decade| f64::from(*decade) <= self.height)
                .count()
                .saturating_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(values: &[Option<f64>], scale: Scale) -> Bars {
        let bar = |value: &Option<f64>| {
            value.map(|value| Bar {
                value,
                least: value,
                greatest: value * 1.5,
            })
        };
        let groups = (0..values.len())
            .map(|group| format!("g{group}\n<x>"))
            .collect();
        Bars {
            series: vec![BarSeries {
                name: "a<b".to_owned(),
                color: Color::Teal,
                bars: values.iter().map(bar).collect(),
            }],
            scale,
            ..Bars::new("t", "u", groups)
        }
    }

    #[test]
    fn a_gap_is_marked_and_has_no_bar() {
        let rectangles =
            |values: &[Option<f64>]| bars(values, Scale::Linear).svg().matches("<rect").count();
        assert_eq!(rectangles(&[Some(1.0), Some(2.0)]), 2);
        assert_eq!(rectangles(&[Some(1.0), None]), 1);
        assert_eq!(rectangles(&[Some(f64::NAN), None]), 0);
        let svg = bars(&[Some(1.0), None], Scale::Linear).svg();
        assert!(svg.contains("g1") && svg.contains("&lt;x&gt;"), "{svg}");
    }

    #[test]
    fn equal_factors_have_equal_heights_on_a_logarithmic_scale() {
        let axis = BarAxis::of(&bars(&[Some(3.0), Some(600.0)], Scale::Log));
        assert!(
            (axis.foot - 1.0).abs() < 1e-9 && (axis.height - 3.0).abs() < 1e-9,
            "{axis:?}"
        );
        assert!((axis.at(100.0) - axis.at(10.0) - 1.0).abs() < 1e-9);
        assert!((axis.value(axis.at(42.0)) - 42.0).abs() < 1e-9);
        assert!(axis.at(0.0).abs() < 1e-9, "below the foot");
    }

    #[test]
    fn bars_of_nothing_have_axes() {
        for scale in [Scale::Linear, Scale::Log] {
            assert!(
                Bars {
                    scale,
                    ..Bars::new("t", "u", Vec::new())
                }
                .svg()
                .starts_with("<svg")
            );
        }
    }
}
