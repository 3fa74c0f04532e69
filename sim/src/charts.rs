//! What charts of a scenario have in common, whoever played it: its marks, the oracle's line, the scale.

use crate::scenario::{self, MarkKind, Scenario};
use crate::series::Window;
use tidegate_report::chart::{Band, Chart, Line, Mark, Stroke};
use tidegate_report::color::Color;

/// Highest latency shown, in milliseconds: callers give up after a second.
pub const LATENCY_TOP_MS: f64 = 1_050.0;

/// An empty chart with what the scenario does to the upstreams, in `bands`; values are in `unit`.
#[must_use]
pub fn empty(scenario: &Scenario, bands: Vec<Band>, title: &str, unit: &str) -> Chart {
    let mark = |mark: &scenario::Mark| Mark {
        at: mark.at.as_secs_f64(),
        label: match mark.kind {
            MarkKind::Step => "step".to_owned(),
            MarkKind::Fall => "fall".to_owned(),
            MarkKind::Recovery => "well again".to_owned(),
        },
    };
    Chart {
        bands,
        marks: scenario.marks.iter().map(mark).collect(),
        ..Chart::new(title, unit, scenario.duration.as_secs_f64())
    }
}

/// A value of each window over time.
pub fn line(
    name: &str,
    color: Color,
    windows: &[Window],
    value: impl Fn(&Window) -> Option<f64>,
) -> Line {
    Line::new(name, color, windows.iter().map(|w| (w.at_s, value(w))))
}

/// The oracle's goodput.
#[must_use]
pub fn oracle(windows: &[Window]) -> Line {
    line("oracle", Color::Slate, windows, |w| Some(w.oracle)).stroke(Stroke::Dashed)
}

/// What goodput can come to, with room above it; requests a second.
#[must_use]
pub fn goodput_top(windows: &[Window]) -> f64 {
    windows.iter().map(|w| w.oracle).fold(1.0, f64::max) * 1.25
}
