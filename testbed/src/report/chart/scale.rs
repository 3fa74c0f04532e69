//! From seconds and values to places on the canvas.

use super::{BOTTOM, Chart, LEFT, RIGHT, WIDTH};
use tidegate_sim::number;

/// The plot's place on the canvas.
pub(super) struct Scale {
    seconds: f64,
    pub(super) top: f64,
    pub(super) top_y: f64,
    pub(super) bottom_y: f64,
}

impl Scale {
    pub(super) fn of(chart: &Chart) -> Self {
        let values = chart
            .lines
            .iter()
            .flat_map(|line| &line.points)
            .filter_map(|(_, value)| *value);
        let levels = chart.levels.iter().map(|level| level.value * 1.1);
        let greatest = values.chain(levels).fold(1.0, f64::max);
        Self {
            seconds: chart.seconds.max(1e-9),
            top: chart.top.unwrap_or(greatest * 1.08),
            top_y: 48.0,
            bottom_y: chart.height - BOTTOM,
        }
    }

    pub(super) fn x(&self, at: f64) -> f64 {
        LEFT + (at / self.seconds).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom_y - (value / self.top).clamp(0.0, 1.0) * (self.bottom_y - self.top_y)
    }

    pub(super) fn value_ticks(&self, chart: &Chart) -> Vec<f64> {
        if !chart.names.is_empty() {
            return (0..chart.names.len()).map(number::float_len).collect();
        }
        let step = nice_step(self.top / 4.5);
        let count = number::floor(self.top / step);
        (0..=count)
            .map(|index| number::float_len(index) * step)
            .collect()
    }
}

/// 1, 2 or 5 times a power of ten, at least `rough`.
pub(super) fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.max(1e-6).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(power)
}

/// A number as short as it can be.
pub(super) fn short(value: f64) -> String {
    if value >= 10_000.0 {
        format!("{:.0}k", value / 1_000.0)
    } else if (value - value.round()).abs() < 1e-9 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_one_two_or_five() {
        for (rough, step) in [
            (0.9, 1.0),
            (1.1, 2.0),
            (3.0, 5.0),
            (60.0, 100.0),
            (0.03, 0.05),
        ] {
            assert!((nice_step(rough) - step).abs() < 1e-9, "{rough}");
        }
    }
}
