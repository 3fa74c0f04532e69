//! Line charts as SVG, written by hand: readable on light and dark ground, without any script.
//!
//! Colours are classes, so that the page (or the style inside a file of its own)
//! decides them; the geometry is plain arithmetic on a fixed canvas.

mod scale;
mod style;

use std::fmt::Write as _;

use tidegate_sim::number;

use scale::{Scale, nice_step, short};

pub use style::{COLOURS, style};

/// A line over time.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Class that gives the colour, one of [`COLOURS`].
    pub class: &'static str,
    /// Points (seconds, value); a value that is `None` breaks the line.
    pub points: Vec<(f64, Option<f64>)>,
    /// How it is drawn.
    pub stroke: Stroke,
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
    /// A line of steps: the value holds until the next point.
    Steps,
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

/// A level worth a line across.
#[derive(Debug, Clone)]
pub struct Level {
    /// Where.
    pub value: f64,
    /// Name written at its right end.
    pub label: String,
}

/// A chart.
#[derive(Debug, Clone)]
pub struct Chart {
    /// Title above it.
    pub title: String,
    /// Unit of the values, after the title.
    pub unit: String,
    /// Lines, the first at the bottom.
    pub lines: Vec<Line>,
    /// Stretches of time.
    pub bands: Vec<Band>,
    /// Levels.
    pub levels: Vec<Level>,
    /// Length of the time axis, in seconds.
    pub seconds: f64,
    /// The value axis ends here even when values are greater; none: at the greatest value.
    pub top: Option<f64>,
    /// Names in place of numbers at 0, 1, 2, ... of the value axis.
    pub names: Vec<&'static str>,
    /// Height of the canvas; the width is always [`WIDTH`].
    pub height: f64,
}

/// Width of every chart's canvas.
pub const WIDTH: f64 = 860.0;

/// Room to the left of the plot, for the numbers.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const BOTTOM: f64 = 26.0;

impl Chart {
    /// A chart without anything on it yet.
    #[must_use]
    pub fn new(title: &str, unit: &str, seconds: f64) -> Self {
        Self {
            title: title.to_owned(),
            unit: unit.to_owned(),
            lines: Vec::new(),
            bands: Vec::new(),
            levels: Vec::new(),
            seconds,
            top: None,
            names: Vec::new(),
            height: 240.0,
        }
    }

    /// The chart as an SVG element for a page that carries [`style`].
    #[must_use]
    pub fn svg(&self) -> String {
        self.render("")
    }

    /// The chart as a file of its own, with its style inside.
    #[must_use]
    pub fn file(&self) -> String {
        let ground = "<rect class=\"ground\" width=\"100%\" height=\"100%\" rx=\"8\"/>";
        self.render(&format!("<style>{}</style>{ground}", style())) + "\n"
    }

    fn render(&self, head: &str) -> String {
        let scale = Scale::of(self);
        let mut svg = String::new();
        let height = self.height;
        let (title, unit) = (escape(&self.title), escape(&self.unit));
        // Writing to a string does not fail.
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" aria-label=\"{title}\">{head}<text class=\"title\" x=\"{LEFT}\" y=\"20\">{title} \
             <tspan class=\"unit\">{unit}</tspan></text>"
        );
        self.legend(&mut svg);
        self.ground(&mut svg, &scale);
        self.axes(&mut svg, &scale);
        for line in &self.lines {
            draw(&mut svg, line, &scale);
        }
        svg.push_str("</svg>");
        svg
    }

    fn legend(&self, svg: &mut String) {
        let mut x = LEFT;
        for line in &self.lines {
            let dash = if line.stroke == Stroke::Dashed {
                " stroke-dasharray=\"4 3\""
            } else {
                ""
            };
            let (end, text) = (x + 18.0, x + 23.0);
            let _ = write!(
                svg,
                "<line class=\"key {}\" x1=\"{x:.0}\" x2=\"{end:.0}\" y1=\"34\" y2=\"34\"{dash}/>\
                 <text class=\"legend\" x=\"{text:.0}\" y=\"38\">{}</text>",
                line.class,
                escape(&line.name)
            );
            // The width of a letter of the legend's font, on average.
            x = text + 6.1 * number::float_len(line.name.chars().count()) + 16.0;
        }
    }

    fn ground(&self, svg: &mut String, scale: &Scale) {
        for band in &self.bands {
            let (from, to) = (scale.x(band.from), scale.x(band.to));
            let class = if band.is_trouble {
                "band trouble"
            } else {
                "band"
            };
            let _ = write!(
                svg,
                "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\
                 <text class=\"phase\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                scale.top_y,
                to - from,
                scale.bottom_y - scale.top_y,
                f64::midpoint(from, to),
                scale.top_y + 12.0,
                escape(&band.label)
            );
        }
    }

    fn axes(&self, svg: &mut String, scale: &Scale) {
        let right = WIDTH - RIGHT;
        for value in scale.value_ticks(self) {
            let y = scale.y(value);
            let name = self
                .names
                .get(number::floor(value))
                .map_or_else(|| short(value), |name| (*name).to_owned());
            let _ = write!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick end\" x=\"{:.0}\" y=\"{:.1}\">{name}</text>",
                LEFT - 7.0,
                y + 4.0
            );
        }
        let step = nice_step(self.seconds / 10.0);
        let mut at = 0.0;
        while at <= self.seconds + 1e-9 {
            let (x, y) = (scale.x(at), scale.bottom_y + 17.0);
            let _ = write!(
                svg,
                "<text class=\"tick mid\" x=\"{x:.1}\" y=\"{y:.1}\">{} s</text>",
                short(at)
            );
            at += step;
        }
        for level in self.levels.iter().filter(|level| level.value <= scale.top) {
            let y = scale.y(level.value);
            let _ = write!(
                svg,
                "<line class=\"level\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
                 <text class=\"level-name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                right - 4.0,
                y - 4.0,
                escape(&level.label)
            );
        }
    }
}

fn draw(svg: &mut String, line: &Line, scale: &Scale) {
    for run in line.points.split(|(_, value)| value.is_none()) {
        let points: Vec<(f64, f64)> = run
            .iter()
            .filter_map(|(at, value)| value.map(|value| (scale.x(*at), scale.y(value))))
            .collect();
        let Some((first, rest)) = points.split_first() else {
            continue;
        };
        let mut path = format!("M{:.1} {:.1}", first.0, first.1);
        for point in rest {
            let _ = match line.stroke {
                Stroke::Steps => write!(path, "H{:.1}V{:.1}", point.0, point.1),
                _ => write!(path, "L{:.1} {:.1}", point.0, point.1),
            };
        }
        if line.stroke == Stroke::Area
            && let Some(last) = points.last()
        {
            let bottom = scale.bottom_y;
            let _ = write!(
                svg,
                "<path class=\"area {}\" d=\"{path}L{:.1} {bottom:.1}L{:.1} {bottom:.1}Z\"/>",
                line.class, last.0, first.0
            );
        }
        let kind = if line.stroke == Stroke::Dashed {
            "dashed"
        } else {
            "line"
        };
        let _ = write!(svg, "<path class=\"{kind} {}\" d=\"{path}\"/>", line.class);
    }
}

/// Text as it may stand in markup.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_breaks_the_line() {
        let mut chart = Chart::new("t", "u", 4.0);
        let points = vec![
            (0.0, Some(1.0)),
            (1.0, Some(2.0)),
            (2.0, None),
            (3.0, Some(1.0)),
        ];
        chart.lines.push(Line {
            name: "a<b".to_owned(),
            class: "c-blue",
            points,
            stroke: Stroke::Solid,
        });
        let svg = chart.svg();
        assert_eq!(svg.matches("<path").count(), 2);
        assert!(svg.contains("a&lt;b"));
    }
}
