//! The canvas of `plotters`, and the SVG element around it.
//!
//! The library counts whole pixels, so it draws on a canvas of twice the size: the steps of its lines are then
//! half a pixel, which is not visible.

use maud::{PreEscaped, html};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::color::{self, Color};

/// Pixels of the canvas for one of the picture.
pub(super) const FINENESS: u32 = 2;

/// Margins around the plot, in pixels.
pub(super) const LEFT: u32 = 52;
pub(super) const RIGHT: u32 = 14;
pub(super) const TITLE: u32 = 28;

/// Size of most letters, in pixels.
pub(super) const SMALL_LETTERS: u32 = 11;

/// Most numbers on an axis of values.
pub(super) const VALUE_LABELS: usize = 6;

/// Length of a value axis, as a multiple of the greatest value.
pub(super) const HEADROOM: f64 = 1.08;

/// To the right of a place, at its height.
pub(super) const BESIDE: Pos = Pos {
    h_pos: HPos::Left,
    v_pos: VPos::Center,
};
pub(super) const BEFORE: Pos = Pos {
    h_pos: HPos::Right,
    v_pos: VPos::Center,
};
pub(super) const BELOW: Pos = Pos {
    h_pos: HPos::Center,
    v_pos: VPos::Top,
};

pub(super) type Result<T> = std::result::Result<T, DrawingAreaErrorKind<std::io::Error>>;
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Pixels of the canvas.
pub(super) const fn px(pixels: u32) -> u32 {
    pixels * FINENESS
}

/// Letters of `size` pixels.
pub(super) fn letters(size: u32, shade: Color) -> TextStyle<'static> {
    // The library writes sizes divided by this factor.
    let size = f64::from(px(size)) * 1.24;
    ("sans-serif", size).into_font().color(&ink(shade))
}

/// A color on light ground, as the library's type.
pub(super) fn ink(color: Color) -> RGBColor {
    let [red, green, blue] = color.on_light();
    RGBColor(red, green, blue)
}

/// A number of pixels, as the library's type.
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

/// The background of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ground {
    /// The page that contains it.
    Page,
    /// A ground of its own, because the file may be shown anywhere.
    Own,
}

/// The SVG element of `size` pixels around what was drawn, or why nothing was drawn.
pub(super) fn framed(
    title: &str,
    (width, height): (u32, u32),
    ground: Ground,
    drawn: Result<String>,
) -> String {
    let markup = match drawn {
        Ok(drawn) => html! {
            svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-label=(title) width=(width)
                height=(height) viewBox={ "0 0 " (px(width)) " " (px(height)) } {
                @if ground == Ground::Own { style { (PreEscaped(style())) } }
                (PreEscaped(inside(&drawn)))
            }
            "\n"
        },
        Err(error) => html! { p.note { (title) " cannot be drawn: " (error) } },
    };
    markup.into_string()
}

/// What is between the outermost tags: the library's own root has neither a name nor a class.
fn inside(svg: &str) -> &str {
    let begin = svg.find('>').map_or(0, |end| end + 1);
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    svg.get(begin..end).unwrap_or_default().trim()
}

/// The style of all charts.
pub(crate) fn style() -> String {
    format!(
        ".chart text{{font-family:system-ui,-apple-system,'Segoe UI',sans-serif}}\
         .chart polyline{{stroke-linejoin:round;stroke-linecap:round}}\
         @media(prefers-color-scheme:dark){{{}}}",
        color::dark_rules()
    )
}
