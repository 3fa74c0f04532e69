//! Combines histograms of latency from several processes.
//!
//! fortio gives counts between bounds. Within bounds the answers are assumed to be spread evenly, as fortio itself does. So
//! counts can be added over processes with different bounds, and the histogram of successes is that of all answers minus that
//! of errors. Sums that are negative only because of the even spread count as zero.

/// Counts of answers between bounds, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolHistogram {
    pieces: Vec<Piece>,
    count: f64,
    sum_ms: f64,
}

/// A number of answers, spread evenly between two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    from_ms: f64,
    to_ms: f64,
    count: f64,
}

/// Steps of bisection: from minutes down to nanoseconds.
const STEPS: u32 = 48;

impl ToolHistogram {
    /// Adds `count` answers between two bounds.
    pub fn add(&mut self, from_ms: f64, to_ms: f64, count: f64) {
        self.count += count;
        self.pieces.push(Piece {
            from_ms,
            to_ms,
            count,
        });
    }

    /// Adds to the sum of all latencies, which no histogram gives exactly.
    pub fn add_sum(&mut self, sum_ms: f64) {
        self.sum_ms += sum_ms;
    }

    /// Adds another histogram, multiplied by `times`: -1 subtracts it.
    pub fn add_all(&mut self, other: &Self, times: f64) {
        for piece in &other.pieces {
            self.add(piece.from_ms, piece.to_ms, piece.count * times);
        }
        self.add_sum(other.sum_ms * times);
    }

    /// Number of answers.
    #[must_use]
    pub const fn count(&self) -> f64 {
        self.count
    }

    /// Mean latency in milliseconds; `None` without any answer.
    #[must_use]
    pub fn mean_ms(&self) -> Option<f64> {
        (self.count >= 1.0).then(|| self.sum_ms / self.count)
    }

    /// Number of answers within `bound_ms`.
    #[must_use]
    pub fn within(&self, bound_ms: f64) -> f64 {
        let share = |piece: &Piece| {
            if bound_ms >= piece.to_ms {
                1.0
            } else if bound_ms <= piece.from_ms {
                0.0
            } else {
                (bound_ms - piece.from_ms) / (piece.to_ms - piece.from_ms)
            }
        };
        let sum: f64 = self
            .pieces
            .iter()
            .map(|piece| piece.count * share(piece))
            .sum();
        sum.clamp(0.0, self.count.max(0.0))
    }

    /// The latency in milliseconds within which `quantile` (0 to 1) of the answers came; `None` without any answer.
    #[must_use]
    pub fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        if self.count < 1.0 {
            return None;
        }
        let least = self
            .pieces
            .iter()
            .map(|piece| piece.from_ms)
            .fold(f64::INFINITY, f64::min);
        let most = self
            .pieces
            .iter()
            .map(|piece| piece.to_ms)
            .fold(0.0, f64::max);
        let (mut low, mut high) = (least, most);
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if self.within(middle) < self.count * quantile {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        let found = found.unwrap();
        assert!(
            (found - expected).abs() < 1e-6,
            "found {found}, expected {expected}"
        );
    }

    #[test]
    fn answers_between_bounds_are_spread_evenly() {
        let mut histogram = ToolHistogram::default();
        histogram.add(0.0, 10.0, 100.0);
        histogram.add(10.0, 20.0, 100.0);
        near(histogram.quantile_ms(0.5), 10.0);
        near(histogram.quantile_ms(0.75), 15.0);
        assert!((histogram.within(5.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn several_processes_become_one() {
        let (mut one, mut other) = (ToolHistogram::default(), ToolHistogram::default());
        one.add(1.0, 1.0, 90.0);
        other.add(8.0, 9.0, 10.0);
        one.add_all(&other, 1.0);
        near(one.quantile_ms(0.9), 1.0);
        near(one.quantile_ms(0.95), 8.5);
    }

    #[test]
    fn errors_are_taken_away() {
        let (mut all, mut errors) = (ToolHistogram::default(), ToolHistogram::default());
        all.add(0.0, 1.0, 50.0);
        all.add(4.0, 6.0, 50.0);
        all.add_sum(275.0);
        errors.add(0.0, 1.0, 50.0);
        errors.add_sum(25.0);
        all.add_all(&errors, -1.0);
        assert!((all.count() - 50.0).abs() < 1e-9);
        near(all.quantile_ms(0.5), 5.0);
        near(all.mean_ms(), 5.0);
        let nothing = ToolHistogram::default();
        assert_eq!((nothing.mean_ms(), nothing.quantile_ms(0.5)), (None, None));
    }
}
