//! What latency is without a queue.
//!
//! Probing for it (Envoy's min-RTT windows) sheds healthy traffic, and a minimum over time is a lottery ticket.
//! Here every window in which no queue stood teaches: its latencies join a histogram that forgets slowly. While
//! the upstream is congested nothing is learned, so a long overload does not become normal.
//!
//! A queue delays *every* request, the fast ones too. So the sign of a queue is a low quantile that moved, as
//! CoDel judges by the minimum (Nichols and Jacobson, "Controlling Queue Delay", 2012); slow routes, a brownout
//! of a fifth of the requests, and long tails leave it where it was.

use crate::histogram::{BUCKETS, Histogram, mean_of, quantile_of};

/// The quantile that shows a queue: low enough to be of the fast ones, not so low that one cached reply decides.
pub(crate) const LOW: f64 = 0.1;
/// Samples after which old ones have lost two thirds of their weight.
const MEMORY: f64 = 2_000.0;
/// Below this many, what was believed before still counts.
const ENOUGH: f64 = 200.0;

/// No-load latencies, in seconds; all zero while unknown.
#[derive(Clone, Debug)]
pub(crate) struct Baseline {
    pub(crate) low: f64,
    pub(crate) mean: f64,
    pub(crate) tail: f64,
    weights: [f32; BUCKETS],
}

impl Baseline {
    /// What another leader believed; zeros when nothing.
    pub(crate) const fn believed(low: f64, mean: f64, tail: f64) -> Self {
        Self {
            low,
            mean,
            tail,
            weights: [0.0; BUCKETS],
        }
    }

    pub(crate) fn is_known(&self) -> bool {
        self.mean > 0.0
    }

    /// Learns from a window without a queue. `quantile` is the SLO's, for the tail.
    pub(crate) fn learn(&mut self, window: &Histogram, quantile: f64) {
        let samples = f64::from(u32::try_from(window.len()).unwrap_or(u32::MAX));
        #[expect(clippy::cast_possible_truncation, reason = "a factor in 0..=1")]
        let keep = libm::exp(-samples / MEMORY) as f32;
        for (weight, count) in self.weights.iter_mut().zip(window.counts()) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "counts of one window stay below 2^24"
            )]
            let more = count as f32;
            *weight = *weight * keep + more;
        }
        self.derive(quantile);
    }

    /// Takes this window for what is normal now, and forgets what was.
    pub(crate) fn restart(&mut self, window: &Histogram, quantile: f64) {
        if !window.is_empty() {
            *self = Self::believed(0.0, 0.0, 0.0);
            self.learn(window, quantile);
        }
    }

    fn derive(&mut self, quantile: f64) {
        let weights = self.weights.iter().map(|weight| f64::from(*weight));
        let total: f64 = weights.clone().sum();
        let share = if self.is_known() {
            (total / ENOUGH).min(1.0)
        } else {
            1.0
        };
        let blend = |old: f64, new: Option<f64>| new.map_or(old, |new| old + (new - old) * share);
        self.low = blend(self.low, quantile_of(weights.clone(), LOW));
        self.tail = blend(self.tail, quantile_of(weights.clone(), quantile));
        self.mean = blend(self.mean, mean_of(weights));
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn window(ms: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        for ms in ms {
            histogram.record(Duration::from_millis(ms));
        }
        histogram
    }

    #[test]
    fn a_few_slow_requests_do_not_move_the_low_quantile() {
        let mut baseline = Baseline::believed(0.0, 0.0, 0.0);
        baseline.learn(&window(vec![40; 100]), 0.99);
        let low = baseline.low;
        for _ in 0..50 {
            baseline.learn(&window(vec![40; 80].into_iter().chain(vec![540; 20])), 0.99);
        }
        assert!((baseline.low / low - 1.0).abs() < 0.1);
        assert!(baseline.mean > 0.12 && baseline.tail > 0.4);
    }

    #[test]
    fn one_window_does_not_overturn_what_was_believed() {
        let mut baseline = Baseline::believed(0.02, 0.04, 0.1);
        baseline.learn(&window([400, 400, 400]), 0.99);
        assert!(baseline.mean < 0.05);
    }
}
