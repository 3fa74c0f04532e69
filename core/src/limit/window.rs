//! The statistics of one complete window.

use super::MOST_UNDER_WAY;
use super::floor::{Floor, LOW};
use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::tally::Count;

/// The least queue delay that counts as a queue, as a fraction of the mean latency without one.
pub(super) const BUSY_DELAY: f64 = 0.25;
/// Where the objective affords little more than that, a shorter delay is costly and so a queue, down to this fraction: half a
/// bucket of the histogram, in which quantiles are interpolated.
const LEAST_BUSY_DELAY: f64 = 0.1;
/// The same for the rise of the mean latency. Answers that cost the upstream nothing, from a cache or another queue, are fast
/// however long the others wait, so the mean counts too, once the floor's is known well. The fraction is larger than the variation
/// of a mix of requests.
const BUSY_MEAN: f64 = 1.0;
/// The least delay in any case, seconds: below it schedulers and networks make noise.
const MIN_BUSY_DELAY: f64 = 0.001;
/// With fewer waiting requests than this there is no queue, ...
const MIN_QUEUE: f64 = 1.0;
/// ... or with less than this share of a limit below one.
const QUEUE_BELOW_ONE: f64 = 0.5;

/// A queue is costly if it costs at least this share of the affordable wait.
pub(super) const COSTLY: f64 = 0.5;
/// A window with this many times as many answers as admitted requests drains what was in flight before.
const DRAINING: f64 = 2.0;

/// The statistics of one window.
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
    /// How much longer the fast requests took than without a queue, seconds.
    pub(super) delay: f64,
    /// How much longer requests took on average, at least `delay`: more than it where serving itself takes longer, seconds.
    pub(super) cost: f64,
    /// The logarithm of the odds against all of a few answers being so slow by chance; infinite for many answers, 0 if it is not busy.
    pub(super) odds: f32,
    /// Whether requests took longer than without a queue.
    pub(super) is_delayed: bool,
    /// Whether the delay is a queue: enough requests wait.
    pub(super) is_busy: bool,
    /// Whether only the mean shows the queue: the fast requests met none. One slow endpoint of several looks the same.
    pub(super) is_hidden: bool,
    /// Whether the fast requests were about as fast as without a queue.
    pub(super) is_fast: bool,
    /// Whether requests were refused because of load.
    pub(super) is_refusing: bool,
    /// Whether many more requests were answered than admitted: few of the answers are to requests of the window.
    pub(super) is_draining: bool,
    /// How many requests were refused because of load, and their share of the arrivals, 0..=1.
    pub(super) refused: f64,
    pub(super) refused_share: f64,
    /// Mean requests in flight if none was refused: arrivals a second x mean latency (Little's law).
    pub(super) demand: f64,
    /// Answers a second while requests came together (`rate_together`, which the limiter asks if there are no uploads); 0 if they did not.
    pub(super) together: f64,
}

impl WindowStats {
    /// The statistics of a window; `None` without an answer of known latency. `affordable` is how long a request may wait within
    /// the objective, seconds; `limit` is that in force.
    pub(super) fn of(window: &Sample, floor: &Floor, affordable: f64, limit: f64) -> Option<Self> {
        let low = window.tally.latency.quantile(LOW)?;
        let delay = if floor.is_known() {
            (low - floor.low_beside(&window.tally.latency)).max(0.0)
        } else {
            0.0
        };
        let span = window.span.as_secs_f64();
        let mean = window.mean_latency().unwrap_or_default();
        let arrivals = window.count(Count::Arrivals);
        let throughput = window.throughput();
        let costly = if is_off(Mechanism::BusyCostly) {
            f64::INFINITY
        } else {
            (affordable * COSTLY).max(floor.mean * LEAST_BUSY_DELAY)
        };
        let is_delayed = delay > (floor.mean * BUSY_DELAY).min(costly).max(MIN_BUSY_DELAY);
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of one window stay far below 2^53"
        )]
        let refused = window.tally.refused_for_load() as f64;
        let excess = if floor.is_known() {
            mean - floor.mean
        } else {
            0.0
        };
        let is_stretched = !floor.is_young()
            && !is_off(Mechanism::BusyMean)
            && excess > (floor.mean * BUSY_MEAN).max(MIN_BUSY_DELAY);
        let least = if limit < 1.0 {
            limit * QUEUE_BELOW_ONE
        } else {
            MIN_QUEUE
        };
        let is_queue = |delay| throughput * delay >= least || is_off(Mechanism::SmallQueue);
        let is_busy = is_delayed && is_queue(delay) || is_stretched && is_queue(excess);
        Some(Self {
            span,
            throughput,
            in_flight: window.mean_in_flight(),
            in_flight_at_end: f64::from(window.in_flight),
            low,
            mean,
            delay,
            cost: delay.max(mean - floor.mean),
            odds: if is_busy {
                floor.odds_against(&window.tally.latency, low)
            } else {
                0.0
            },
            is_delayed: is_delayed || is_stretched,
            is_busy,
            is_hidden: is_busy && !is_delayed,
            is_fast: delay <= floor.mean * BUSY_DELAY,
            is_refusing: refused > 0.0,
            is_draining: window.count(Count::Answers) > (arrivals - refused) * DRAINING,
            refused,
            refused_share: refused / arrivals.max(1.0),
            demand: arrivals / span.max(f64::MIN_POSITIVE) * mean,
            together: 0.0,
        })
    }

    /// Whether the window ends with more in flight than the upstream needs for its throughput; `without` is the mean latency
    /// without a queue, seconds.
    pub(super) fn ends_full(&self, without: f64) -> bool {
        self.in_flight_at_end > self.throughput * without
    }

    /// Whether the slow answers of the requests in flight are still missing: by Little's law, the answers so far would need far
    /// fewer requests in flight.
    pub(super) fn lacks_slow_answers(&self) -> bool {
        self.in_flight > self.throughput * self.mean * MOST_UNDER_WAY
    }

    /// Whether requests were on average so much faster than a floor in doubt that the floor had a queue in it.
    pub(super) fn is_faster_on_average(&self, floor: &Floor) -> bool {
        self.mean < floor.mean * (1.0 - BUSY_DELAY)
    }

    /// Whether the fast requests were clearly faster than the floor.
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

    /// The statistics where the objective affords any wait.
    fn stats_of(window: &Sample, floor: &Floor) -> Option<WindowStats> {
        WindowStats::of(window, floor, f64::INFINITY, 1e3)
    }

    #[test]
    fn a_window_without_an_answer_has_no_statistics() {
        assert!(stats_of(&window(1_000, 0, 0).refusing(9), &floor(100.0)).is_none());
    }

    #[test]
    fn a_queue_needs_enough_delay_and_enough_requests() {
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
            let stats = stats_of(&window(1_000, answers, now), &floor(without)).unwrap();
            assert_eq!(stats.is_busy, expected, "{name}: {stats:?}");
        }
    }

    #[test]
    fn requests_are_fast_without_a_delay_however_few_they_are() {
        for (now, answers, expected) in [(100, 100, true), (120, 5, true), (200, 5, false)] {
            let stats = stats_of(&window(1_000, answers, now), &floor(100.0)).unwrap();
            assert_eq!(stats.is_fast, expected, "{answers} of {now} ms: {stats:?}");
        }
    }

    /// An upstream of 100 ms: what the objective leaves for waiting, the latency now in milliseconds, and whether that is a queue.
    #[test]
    fn a_shorter_delay_is_a_queue_where_the_objective_affords_little() {
        for (affordable, now, expected) in [
            (0.06, 120, false),
            (0.04, 118, false),
            (0.03, 120, true),
            (0.001, 105, false),
            (0.001, 120, true),
        ] {
            let sample = window(1_000, 100, now);
            let stats = WindowStats::of(&sample, &floor(100.0), affordable, 1e3).unwrap();
            assert_eq!(stats.is_busy, expected, "{affordable} {now}: {stats:?}");
        }
    }

    #[test]
    fn a_queue_costs_its_delay_or_more_if_serving_takes_longer() {
        let mut mixed = window(1_000, 50, 100);
        mixed.tally.merge(&window(1_000, 50, 500).tally);
        let stats = stats_of(&mixed, &floor(100.0)).unwrap();
        assert!(stats.delay < 0.02, "the fast ones: {}", stats.delay);
        assert_close(stats.cost, 0.2, "all of them");
    }

    #[test]
    fn the_statistics_are_those_of_the_window() {
        let sample = window(500, 40, 100).refusing(10);
        let stats = stats_of(&sample, &floor(100.0)).unwrap();
        assert_close(stats.span, 0.5, "span");
        assert_close(stats.throughput, 80.0, "throughput");
        assert_close(stats.mean, 0.1, "mean");
        assert_close(stats.in_flight, 8.0, "in flight");
        assert_close(stats.in_flight_at_end, 8.0, "at the end");
        assert_close(stats.refused, 10.0, "refused");
        assert_close(stats.refused_share, 0.2, "share");
        assert_close(stats.demand, 10.0, "demand");
        assert!(stats.is_refusing);
    }

    #[test]
    fn faster_than_the_floor_means_faster_by_a_quarter() {
        for (ms, expected) in [(100, false), (85, false), (60, true)] {
            let floor = floor(100.0);
            let stats = stats_of(&window(1_000, 50, ms), &floor).unwrap();
            assert_eq!(stats.is_faster(&floor), expected, "{ms}");
        }
    }

    #[test]
    fn a_queue_that_fast_answers_hide_shows_in_the_mean() {
        let mut mixed = window(1_000, 25, 1);
        mixed.tally.merge(&window(1_000, 75, 250).tally);
        let young = Floor::believed(0.001, 0.03, 0.06);
        assert!(!stats_of(&mixed, &young).unwrap().is_busy);
        let floor = young.learned_well();
        let stats = stats_of(&mixed, &floor).unwrap();
        assert!(stats.delay < 0.001 && stats.is_busy, "{stats:?}");
        assert!(stats.is_hidden, "{stats:?}");
        let delayed = stats_of(&window(1_000, 100, 250), &floor).unwrap();
        assert!(delayed.is_busy && !delayed.is_hidden, "{delayed:?}");
        let mut alike = window(1_000, 25, 1);
        alike.tally.merge(&window(1_000, 75, 60).tally);
        assert!(!stats_of(&alike, &floor).unwrap().is_busy);
    }
}
