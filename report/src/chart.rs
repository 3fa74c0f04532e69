//! Values over time, drawn as SVG by the crate `plotters`.
//!
//! A [`Chart`] is plain data: lines, named stretches of time, moments, levels. [`Chart::svg`] gives an element
//! for a page, [`Chart::file`] a picture that stands alone. Colours follow the reader's light or dark ground
//! ([`super::colour`]).
//!
//! Edges: a value that is missing, infinite or no number breaks its line; values beyond the axis lie on its
//! end; a chart without lines still has its axes.

pub mod bars;
mod draw;
mod legend;

use super::colour::{Colour, dark_rules};
use super::page::escape;

/// A chart over seconds.
#[derive(Debug, Clone)]
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
    pub levels: Vec<Level>,
    /// Length of the time axis, in seconds.
    pub seconds: f64,
    /// The left axis ends here even when values are greater; none: a little above the greatest value.
    pub top: Option<f64>,
    /// The right axis; none: every line belongs to the left one.
    pub right: Option<RightAxis>,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

/// A second axis of values, for lines of another unit.
#[derive(Debug, Clone)]
pub struct RightAxis {
    /// Unit of its values.
    pub unit: String,
    /// Its end; none: a little above the greatest value.
    pub top: Option<f64>,
}

/// A line over time.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// Points (seconds, value) in order of time; a value that is `None` breaks the line.
    pub points: Vec<(f64, Option<f64>)>,
    /// How it is drawn.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// The axis that every chart has.
    Left,
    /// The axis of [`Chart::right`]; without one the line is drawn by the left axis.
    Right,
}

/// A stretch of time with a name.
#[derive(Debug, Clone)]
pub struct Band {
    /// Beginning, in seconds.
    pub from: f64,
    /// End, in seconds.
    pub to: f64,
    /// Name written at its top; empty for none.
    pub label: String,
    /// Whether the stretch is one of trouble (shaded).
    pub is_trouble: bool,
}

/// A moment worth a line from top to bottom.
#[derive(Debug, Clone)]
pub struct Mark {
    /// When, in seconds.
    pub at: f64,
    /// Name written beside it.
    pub label: String,
}

/// A value of the left axis worth a line across.
#[derive(Debug, Clone)]
pub struct Level {
    /// Where.
    pub value: f64,
    /// Name written at its right end.
    pub label: String,
}

/// Width of a chart that has a line of the page for itself, in pixels.
pub const WIDTH: u32 = 860;

impl Line {
    /// A solid line by the left axis.
    #[must_use]
    pub fn new(
        name: &str,
        colour: Colour,
        points: impl IntoIterator<Item = (f64, Option<f64>)>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            colour,
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

    /// The chart as an SVG element for a [`super::page::Page`], which carries [`style`].
    ///
    /// A chart that cannot be drawn says why in its place.
    #[must_use]
    pub fn svg(&self) -> String {
        self.element(Ground::Page)
    }

    /// The chart as an SVG file of its own, with its style and its ground inside.
    #[must_use]
    pub fn file(&self) -> String {
        self.element(Ground::Own)
    }

    fn element(&self, ground: Ground) -> String {
        let style = match ground {
            Ground::Page => String::new(),
            Ground::Own => format!("<style>{}</style>", style()),
        };
        let drawn = draw::draw(self, ground).map_err(|error| error.to_string());
        framed(&self.title, (self.width, self.height), &style, drawn)
    }
}

/// An element of `size` pixels around what was drawn, or why nothing was.
fn framed(
    title: &str,
    (width, height): (u32, u32),
    style: &str,
    drawn: Result<String, String>,
) -> String {
    let title = escape(title);
    match drawn {
        Ok(drawn) => format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" aria-label=\"{title}\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\">{style}{}</svg>\n",
            draw::px(width),
            draw::px(height),
            inside(&drawn),
        ),
        Err(error) => format!(
            "<p class=\"note\">{title} cannot be drawn: {}</p>",
            escape(&error)
        ),
    }
}

/// What a chart lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// The page it stands in.
    Page,
    /// A ground of its own, because nobody knows where the file will be shown.
    Own,
}

/// What stands between the outermost tags: the library's own root has neither a name nor a class.
fn inside(svg: &str) -> &str {
    let begin = svg.find('>').map_or(0, |end| end + 1);
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    svg.get(begin..end).unwrap_or_default().trim()
}

/// The style of all charts.
#[must_use]
pub fn style() -> String {
    format!(
        ".chart text{{font-family:system-ui,-apple-system,'Segoe UI',sans-serif}}\
         .chart polyline{{stroke-linejoin:round;stroke-linecap:round}}\
         @media(prefers-color-scheme:dark){{{}}}",
        dark_rules()
    )
}

#[cfg(test)]
mod tests {
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

    /// Polylines of one colour: the drawn runs of a line (its key in the legend is a straight line of two points).
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
            Colour::Blue,
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
        let svg = chart(Line::new("a<b", Colour::Blue, points(&[1.0, 2.0]))).svg();
        assert!(svg.contains("a&lt;b"), "{svg}");
    }

    #[test]
    fn every_colour_of_a_chart_has_a_sister_on_dark_ground() {
        let mut chart =
            chart(Line::new("a", Colour::Teal, points(&[1.0, 2.0])).stroke(Stroke::Area));
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
        chart.levels.push(Level {
            value: 1.5,
            label: "l".to_owned(),
        });
        let (file, style) = (chart.file(), style());
        let colours = file.split("=\"#").skip(1).filter_map(|rest| rest.get(..6));
        for colour in colours {
            assert!(style.contains(&format!("[fill=\"#{colour}\"]")), "{colour}");
        }
    }

    #[test]
    fn right_axis_has_its_own_numbers() {
        let mut chart = chart(Line::new("a", Colour::Blue, points(&[1.0, 2.0])));
        chart
            .lines
            .push(Line::new("b", Colour::Red, points(&[1_000.0, 9_000.0])).right());
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
