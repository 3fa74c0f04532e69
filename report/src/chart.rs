//! Values over time, drawn as SVG by the crate `plotters`.
//!
//! A [`Chart`] is plain data: lines, named stretches of time, moments, levels. A [`crate::page::Page`] draws it, and
//! [`Chart::file`] makes a picture of its own. Colors follow the reader's light or dark ground ([`crate::color`]).
//!
//! Edges: a value that is missing, infinite or no number breaks its line. Values beyond the axis are drawn at its end. A
//! chart without lines still has its axes.

pub mod bars;
pub(crate) mod canvas;
mod draw;
mod legend;

use serde::Serialize;

use crate::color::Color;

/// A chart over seconds.
#[derive(Debug, Clone, Serialize)]
pub struct Chart {
    /// Title above it.
    pub title: String,
    /// Unit of the values, above the left axis.
    pub unit: String,
    /// Lines, the first at the bottom.
    pub lines: Vec<Line>,
    /// Stretches of time.
    pub bands: Vec<Band>,
    /// Moments.
    pub marks: Vec<Mark>,
    /// Levels of the left axis.
    pub levels: Vec<LevelLine>,
    /// Length of the time axis, in seconds.
    pub seconds: f64,
    /// The left axis ends here even when values are greater; none: a little above the greatest value.
    pub top: Option<f64>,
    /// The right axis; none: every line belongs to the left one.
    pub right: Option<RightAxis>,
    /// Width in pixels.
    #[serde(skip)]
    pub width: u32,
    /// Height in pixels.
    #[serde(skip)]
    pub height: u32,
}

/// A second axis of values, for lines of another unit.
#[derive(Debug, Clone, Serialize)]
pub struct RightAxis {
    /// Unit of its values.
    pub unit: String,
    /// Its end; none: a little above the greatest value.
    pub top: Option<f64>,
}

/// A line over time.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Its color.
    #[serde(skip)]
    pub color: Color,
    /// Points (seconds, value) in order of time; a value that is `None` breaks the line.
    pub points: Vec<(f64, Option<f64>)>,
    /// How it is drawn.
    #[serde(skip)]
    pub stroke: Stroke,
    /// The axis by which its values are read.
    pub axis: Axis,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// A solid line.
    Solid,
    /// A solid line over a shaded area down to zero.
    Area,
    /// A thin dashed line.
    Dashed,
    /// A line of steps: a value holds until the next point.
    Steps,
}

/// One of the two axes of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// The axis that every chart has.
    Left,
    /// The axis of [`Chart::right`]; without one the line is drawn by the left axis.
    Right,
}

/// A named stretch of time.
#[derive(Debug, Clone, Serialize)]
pub struct Band {
    /// Beginning, in seconds.
    pub from: f64,
    /// End, in seconds.
    pub to: f64,
    /// Name written at its top; empty for none.
    pub label: String,
    /// Whether something is wrong in it; it is shaded then.
    pub is_trouble: bool,
}

/// A moment, drawn as a line from top to bottom.
#[derive(Debug, Clone, Serialize)]
pub struct Mark {
    /// When, in seconds.
    pub at: f64,
    /// Name written beside it.
    pub label: String,
}

/// A value of the left axis, drawn as a line across.
#[derive(Debug, Clone, Serialize)]
pub struct LevelLine {
    /// Where.
    pub value: f64,
    /// Name written at its right end.
    pub label: String,
}

/// Width of a chart that takes the whole width of a page, in pixels.
pub const WIDTH: u32 = 860;

impl Line {
    /// A solid line by the left axis.
    #[must_use]
    pub fn new(
        name: &str,
        color: Color,
        points: impl IntoIterator<Item = (f64, Option<f64>)>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            color,
            points: points.into_iter().collect(),
            stroke: Stroke::Solid,
            axis: Axis::Left,
        }
    }

    /// The same line, drawn in another way.
    #[must_use]
    pub fn stroke(self, stroke: Stroke) -> Self {
        Self { stroke, ..self }
    }

    /// The same line, read by the right axis.
    #[must_use]
    pub fn right(self) -> Self {
        Self {
            axis: Axis::Right,
            ..self
        }
    }
}

impl Chart {
    /// A chart of `seconds` without anything on it yet.
    #[must_use]
    pub fn new(title: &str, unit: &str, seconds: f64) -> Self {
        Self {
            title: title.to_owned(),
            unit: unit.to_owned(),
            lines: Vec::new(),
            bands: Vec::new(),
            marks: Vec::new(),
            levels: Vec::new(),
            seconds,
            top: None,
            right: None,
            width: WIDTH,
            height: 260,
        }
    }
}
