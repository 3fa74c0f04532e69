//! Title, unit and the names of lines above the plot.

use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::Color as _;

use super::canvas::{
    Area, BEFORE, BESIDE, LEFT, RIGHT, Result, SMALL_LETTERS, TITLE, ink, letters, pixels, px,
};
use super::{Line, Stroke};
use crate::color::Color;

/// Length of the little line before a name, and the distances around it, in pixels.
const KEY: u32 = 18;
const AFTER_KEY: u32 = 5;
const AFTER_NAME: u32 = 16;
/// Height of a row of names, in pixels.
const ROW: u32 = 17;
/// Size of the letters, in pixels.
const LETTERS: u32 = 12;

/// Size of the title's letters, in pixels.
const TITLE_LETTERS: u32 = 15;

/// Widths of lines on the canvas.
const THICK: u32 = 4;
const THIN: u32 = 3;

/// A name's place, in pixels of the canvas.
struct LegendEntry<'a> {
    line: &'a Line,
    row: u32,
    x: u32,
}

/// The place of each name between `left` and `right`: as many in a row as there is room for.
fn entries<'a>(
    lines: &'a [Line],
    area: &Area<'_>,
    left: u32,
    right: u32,
) -> Result<Vec<LegendEntry<'a>>> {
    let style = letters(LETTERS, Color::Text);
    let (mut row, mut x) = (0, left);
    let mut entries = Vec::new();
    for line in lines {
        let (width, _) = area.estimate_text_size(&line.name, &style)?;
        let width = width + px(KEY + AFTER_KEY);
        if x > left && x + width > right {
            (row, x) = (row + 1, left);
        }
        entries.push(LegendEntry { line, row, x });
        x += width + px(AFTER_NAME);
    }
    Ok(entries)
}

/// Draws the names from `top` on; returns their height in pixels of the canvas.
fn legend(lines: &[Line], area: &Area<'_>, top: u32, left: u32, right: u32) -> Result<u32> {
    let entries = entries(lines, area, left, right)?;
    for entry in &entries {
        let y = pixels(top + px(ROW) * entry.row + px(ROW) / 2);
        let (from, to) = (pixels(entry.x), pixels(entry.x + px(KEY)));
        let style = stroke_of(entry.line);
        let ends = [(from, y), (to, y)];
        if entry.line.stroke == Stroke::Dashed {
            area.draw(&DashedPathElement::new(ends, px(5), px(4), style))?;
        } else {
            area.draw(&PathElement::new(ends, style))?;
        }
        let place = (pixels(entry.x + px(KEY + AFTER_KEY)), y);
        area.draw(&Text::new(
            entry.line.name.as_str(),
            place,
            letters(LETTERS, Color::Text).pos(BESIDE),
        ))?;
    }
    Ok(entries.last().map_or(0, |last| px(ROW) * (last.row + 1)))
}

/// Draws title, unit and the names of `lines`; returns the height of the names in pixels of the canvas.
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
        letters(TITLE_LETTERS, Color::Ink).pos(BESIDE),
    ))?;
    area.draw(&Text::new(
        unit,
        (pixels(end), place.1),
        letters(SMALL_LETTERS, Color::Soft).pos(BEFORE),
    ))?;
    legend(lines, area, px(TITLE), px(LEFT), end)
}

/// Color and width of a line.
pub(super) fn stroke_of(line: &Line) -> ShapeStyle {
    let width = match line.stroke {
        Stroke::Dashed => THIN,
        Stroke::Solid | Stroke::Area | Stroke::Steps => THICK,
    };
    ink(line.color).stroke_width(width)
}
