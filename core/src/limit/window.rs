//! The figures of one complete window.

use super::floor::{Floor, LOW};
use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::tally::Count;

/// The queue delay that counts as one, as a fraction of the mean latency without a queue.
pub(super) const BUSY_DELAY: f64 = 0.25;
/// The same of the mean latency, which counts too while requests are refused: answers that cost the upstream nothing,
/// from a cache or another queue, are fast whatever the others wait. More than a mix of requests varies by.
const BUSY_MEAN: f64 = 1.0;
/// And at least this much, seconds: below it schedulers and networks make noise.
const MIN_BUSY_DELAY: f64 = 0.001;
/// Fewer requests than this above Little's law are no queue.
const MIN_QUEUE: f64 = 1.0;

/// What the limit is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowStats {
    /// Length, seconds.
    pub(super) span: f64,
    /// Answers a second.
    pub(super) throughput: f64,
    /// Mean in-flight, and in-flight at the end.
    pub(super) in_flight: f64,
    pub(super) in_flight_at_end: f64,
    /// The low quantile and the mean of the latencies, seconds.
    pub(super) low: f64,
    pub(super) mean: f64,
    /// What the fast requests waited longer than without load, seconds.
    pub(super) delay: f64,
    /// What requests waited longer on average: more than the fast ones where each takes longer, not only waits.
    pub(super) cost: f64,
    /// Whether that is a queue.
    pub(super) is_busy: bool,
    /// Whether requests were refused for want of room.
    pub(super) is_refusing: bool,
    /// How many, and which share of the arrivals, 0..=1.
    pub(super) refused: f64,
    pub(super) refused_share: f64,
}

impl WindowStats {
    /// The figures of a window; none without an answer of known latency.
    pub(super) fn of(window: &Sample, floor: &Floor) -> Option<Self> {
        let low = window.tally.latency.quantile(LOW)?;
        let delay = if floor.is_known() {
            (low - floor.low).max(0.0)
        } else {
            0.0
        };
        let throughput = window.throughput();
        let is_delayed = delay > (floor.mean * BUSY_DELAY).max(MIN_BUSY_DELAY);
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of one window stay far below 2^53"
        )]
        let refused = window.tally.refused_for_load() as f64;
        let excess = if floor.is_known() {
            window.mean_latency().unwrap_or_default() - floor.mean
        } else {
            0.0
        };
        let is_stretched =
            !is_off(Mechanism::BusyMean) && excess > (floor.mean * BUSY_MEAN).max(MIN_BUSY_DELAY);
        let is_queue = |delay| throughput * delay >= MIN_QUEUE || is_off(Mechanism::SmallQueue);
        Some(Self {
            span: window.span.as_secs_f64(),
            throughput,
            in_flight: window.mean_in_flight(),
            in_flight_at_end: f64::from(window.in_flight),
            low,
            mean: window.mean_latency().unwrap_or_default(),
            delay,
            cost: delay.max(window.mean_latency().unwrap_or_default() - floor.mean),
            is_busy: is_delayed && is_queue(delay) || is_stretched && is_queue(excess),
            is_refusing: refused > 0.0,
            refused,
            refused_share: refused / window.count(Count::Arrivals).max(1.0),
        })
    }

    /// Whether it ends with more in flight than the upstream needs for its throughput, where that has the mean latency
    /// `without` a queue, seconds.
    pub(super) fn ends_full(&self, without: f64) -> bool {
        self.in_flight_at_end > self.throughput * without
    }

    /// Whether all of them were, by so much that a floor in doubt had a queue in it.
    pub(super) fn is_faster_on_average(&self, floor: &Floor) -> bool {
        self.mean < floor.mean * (1.0 - BUSY_DELAY)
    }

    /// Whether the fast requests were faster than ever.
    pub(super) fn is_faster(&self, floor: &Floor) -> bool {
        self.low < floor.low * (1.0 - BUSY_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::testing::{assert_close, window};

    fn floor(ms: f64) -> Floor {
        Floor::believed(ms / 1e3, ms / 1e3, ms / 1e3)
    }

    #[test]
    fn a_window_without_an_answer_has_no_figures() {
        assert!(WindowStats::of(&window(1_000, 0, 0).refusing(9), &floor(100.0)).is_none());
    }

    #[test]
    fn a_queue_is_a_delay_that_matters_of_requests_enough() {
        // Latency without a queue and now, milliseconds; answers a second.
        for (name, without, now, answers, expected) in [
            ("as ever", 100.0, 100, 100, false),
            ("faster", 100.0, 50, 100, false),
            ("little longer", 100.0, 120, 100, false),
            ("longer", 100.0, 200, 100, true),
            ("longer, but nobody waits", 100.0, 200, 5, false),
            ("noise of a fast one", 1.5, 2, 10_000, false),
            ("a fast one", 1.5, 4, 10_000, true),
            ("nothing is known", 0.0, 200, 100, false),
        ] {
            let stats = WindowStats::of(&window(1_000, answers, now), &floor(without)).unwrap();
            assert_eq!(stats.is_busy, expected, "{name}: {stats:?}");
        }
    }

    #[test]
    fn a_queue_costs_what_it_delays_or_more_where_each_takes_longer() {
        let mut mixed = window(1_000, 50, 100);
        mixed.tally.merge(&window(1_000, 50, 500).tally);
        let stats = WindowStats::of(&mixed, &floor(100.0)).unwrap();
        assert!(stats.delay < 0.02, "the fast ones: {}", stats.delay);
        assert_close(stats.cost, 0.2, "all of them");
    }

    #[test]
    fn the_figures_are_those_of_the_window() {
        let sample = window(500, 40, 100).refusing(10);
        let stats = WindowStats::of(&sample, &floor(100.0)).unwrap();
        assert_close(stats.span, 0.5, "span");
        assert_close(stats.throughput, 80.0, "throughput");
        assert_close(stats.mean, 0.1, "mean");
        assert_close(stats.in_flight, 8.0, "in flight");
        assert_close(stats.in_flight_at_end, 8.0, "at the end");
        assert_close(stats.refused, 10.0, "refused");
        assert_close(stats.refused_share, 0.2, "share");
        assert!(stats.is_refusing);
    }

    #[test]
    fn faster_than_ever_is_by_more_than_a_little() {
        for (ms, expected) in [(100, false), (85, false), (60, true)] {
            let floor = floor(100.0);
            let stats = WindowStats::of(&window(1_000, 50, ms), &floor).unwrap();
            assert_eq!(stats.is_faster(&floor), expected, "{ms}");
        }
    }

    #[test]
    fn a_queue_that_fast_answers_hide_shows_in_the_mean() {
        let mut mixed = window(1_000, 25, 1);
        mixed.tally.merge(&window(1_000, 75, 250).tally);
        let floor = Floor::believed(0.001, 0.03, 0.06);
        let stats = WindowStats::of(&mixed, &floor).unwrap();
        assert!(stats.delay < 0.001 && stats.is_busy, "{stats:?}");
        let mut alike = window(1_000, 25, 1);
        alike.tally.merge(&window(1_000, 75, 60).tally);
        assert!(!WindowStats::of(&alike, &floor).unwrap().is_busy);
    }
}
