//! What latency is without a queue.
//!
//! Probing for it (Envoy's min-RTT windows) sheds healthy traffic, and a minimum over time is a lottery ticket.
//! Here every window in which no queue stood teaches: its latencies join a histogram that forgets slowly. While
//! the upstream is congested nothing is learned, so a long overload does not become normal.
//!
//! A queue delays *every* request, the fast ones too. So the sign of a queue is a low quantile that moved, as
//! CoDel judges by the minimum (Nichols and Jacobson, "Controlling Queue Delay", 2012); slow routes, a brownout
//! of a fifth of the requests, and long tails leave it where it was. The mean is exact: Little's law is about it.

use crate::ablation::{Mechanism, is_off};
use crate::histogram::{BUCKETS, above_of, quantile_of};
use crate::sample::Sample;
use crate::tally::Count;

/// The quantile that shows a queue: low enough to be of the fast ones, not so low that one cached reply decides.
pub(crate) const LOW: f64 = 0.1;
/// Answers after which old ones have lost two thirds of their weight.
const MEMORY: f64 = 2_000.0;
/// Below this many, what was believed before still counts.
const ENOUGH: f64 = 200.0;
/// The mean may rise to so many times what it was ...
const DRIFT: f64 = 1.5;
/// ... of which this share a second becomes what it was.
const DRIFT_RATE: f64 = 0.01;
/// So many answers without a refusal, or with room for more, make a floor that has no queue in it.
const PROVEN: f64 = 10.0;

/// Latencies without a queue, seconds; all zero while unknown.
#[derive(Clone, Debug)]
pub(super) struct Floor {
    pub(super) low: f64,
    pub(super) mean: f64,
    pub(super) tail: f64,
    /// Answers by bucket, old ones with less weight ...
    weights: [f32; BUCKETS],
    /// ... and the exact sums of the same windows: answers, and their latencies in seconds.
    answers: f64,
    latencies: f64,
    /// Answers that had no queue in them for certain.
    proven: f64,
    /// What the mean was a while ago, seconds; 0 before enough is known.
    anchor: f64,
}

impl Floor {
    /// What another leader believed; zeros when nothing.
    pub(super) const fn believed(low: f64, mean: f64, tail: f64) -> Self {
        Self {
            low,
            mean,
            tail,
            weights: [0.0; BUCKETS],
            answers: 0.0,
            latencies: 0.0,
            proven: if mean > 0.0 { PROVEN } else { 0.0 },
            anchor: mean,
        }
    }

    pub(super) fn is_known(&self) -> bool {
        self.mean > 0.0
    }

    /// Whether it surely has no queue in it. One learned while requests had to be refused may have.
    pub(super) fn is_proven(&self) -> bool {
        self.proven >= PROVEN
    }

    /// `answers` had no queue in them: nothing was refused, or there was room for more.
    pub(super) fn prove(&mut self, answers: f64) {
        self.proven = (self.proven + answers).min(PROVEN);
    }

    /// Learns from a window without a queue. `quantile` is the objective's, for the tail.
    pub(super) fn learn(&mut self, window: &Sample, quantile: f64) {
        let answers = window.count(Count::Answers);
        let keep = libm::exp(-answers / MEMORY);
        self.answers = self.answers * keep + answers;
        self.latencies = self.latencies * keep + window.count(Count::LatencyMicros) / 1e6;
        #[expect(clippy::cast_possible_truncation, reason = "a factor in 0..=1")]
        let keep = keep as f32;
        for (weight, count) in self.weights.iter_mut().zip(window.tally.latency.counts()) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "counts of one window stay below 2^24"
            )]
            let more = count as f32;
            *weight = *weight * keep + more;
        }
        self.derive(quantile);
        self.bind(window.span.as_secs_f64());
    }

    /// Learns from a window that has been like this for long: the service is slower.
    pub(super) fn learn_slower(&mut self, window: &Sample, quantile: f64) {
        self.anchor = 0.0;
        self.learn(window, quantile);
    }

    /// Keeps the mean near what it was. A queue that fast answers hide leaves the low quantile where it is and raises the
    /// mean from window to window; what is far above goes through a test, or shows for long.
    fn bind(&mut self, span: f64) {
        if self.anchor > 0.0 && !is_off(Mechanism::Drift) {
            self.mean = self.mean.min(self.anchor * DRIFT);
            self.anchor = self.mean.min(self.anchor * (1.0 + DRIFT_RATE * span));
        } else if self.answers >= ENOUGH {
            self.anchor = self.mean;
        }
    }

    /// Takes this window for what is normal now, and forgets what was. A test has shown that no queue is in it.
    pub(super) fn restart(&mut self, window: &Sample, quantile: f64) {
        if !window.tally.latency.is_empty() {
            *self = Self::believed(0.0, 0.0, 0.0);
            self.learn(window, quantile);
            self.proven = PROVEN;
        }
    }

    /// Takes this window for what is normal now; there may still be a queue in it.
    pub(super) fn relearn(&mut self, window: &Sample, quantile: f64) {
        let proven = self.proven;
        self.restart(window, quantile);
        self.proven = proven;
    }

    /// The tail of the latencies up to `target` seconds: what takes longer is late whatever is shed. None where most of
    /// them do.
    pub(super) fn tail_within(&self, target: f64, quantile: f64) -> Option<f64> {
        let weights = self.weights.iter().map(|weight| f64::from(*weight));
        let total: f64 = weights.clone().sum();
        if total <= 0.0 {
            return (self.tail > 0.0 && self.tail < target).then_some(self.tail);
        }
        let within = 1.0 - above_of(weights.clone(), target) / total;
        (within >= 0.5).then(|| quantile_of(weights, within * quantile))?
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
        self.tail = blend(self.tail, quantile_of(weights, quantile));
        let mean = (self.answers > 0.0).then(|| self.latencies / self.answers);
        self.mean = blend(self.mean, mean);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    impl Floor {
        /// The same, with a queue in it perhaps.
        pub(in crate::limit) fn doubted(self) -> Self {
            Self {
                proven: 0.0,
                ..self
            }
        }
    }

    fn window(ms: impl IntoIterator<Item = u64>) -> Sample {
        let mut sample = Sample::empty(Duration::from_secs(1));
        for ms in ms {
            sample.tally.add_success(Duration::from_millis(ms));
        }
        sample
    }

    #[test]
    fn a_few_slow_requests_do_not_move_the_low_quantile() {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        floor.learn(&window(vec![40; 100]), 0.99);
        let low = floor.low;
        for _ in 0..50 {
            floor.learn(&window(vec![40; 80].into_iter().chain(vec![540; 20])), 0.99);
        }
        assert!((floor.low / low - 1.0).abs() < 0.1);
        assert!(floor.mean > 0.12 && floor.tail > 0.4);
    }

    #[test]
    fn the_mean_is_exact_whatever_the_buckets_are() {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        floor.learn(&window(vec![41; 300]), 0.99);
        assert!((floor.mean - 0.041).abs() < 1e-9, "{}", floor.mean);
    }

    #[test]
    fn one_window_does_not_overturn_what_was_believed() {
        let mut floor = Floor::believed(0.02, 0.04, 0.1);
        floor.learn(&window([400, 400, 400]), 0.99);
        assert!(floor.mean < 0.05);
    }

    #[test]
    fn what_is_late_by_itself_is_not_in_the_tail_that_counts() {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        floor.learn(&window(vec![40; 80].into_iter().chain(vec![540; 20])), 0.99);
        assert!(floor.tail_within(0.3, 0.99).unwrap() < 0.06);
        assert!(floor.tail_within(1.0, 0.99).unwrap() > 0.4);
        assert_eq!(floor.tail_within(0.02, 0.99), None, "most are late");
    }

    #[test]
    fn a_mean_that_rises_from_window_to_window_is_bound() {
        let mut floor = Floor::believed(0.0, 0.0, 0.0);
        let fast_and = |ms| window(vec![1; 25].into_iter().chain(vec![ms; 75]));
        for _ in 0..10 {
            floor.learn(&fast_and(40), 0.99);
        }
        let before = floor.mean;
        for second in 0..20 {
            floor.learn(&fast_and(60 + second * 20), 0.99);
        }
        assert!(
            floor.mean > 1.4 * before,
            "it may be slower: {}",
            floor.mean
        );
        assert!(floor.mean < 2.0 * before, "a hidden queue: {}", floor.mean);
        floor.learn_slower(&fast_and(400), 0.99);
        assert!(
            floor.mean > 3.0 * before,
            "it has shown for long: {}",
            floor.mean
        );
    }
}
