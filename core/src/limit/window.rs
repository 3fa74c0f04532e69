//! The figures of one complete window.

use super::floor::{Floor, LOW};
use crate::sample::Sample;
use crate::tally::Count;

/// The queue delay that counts as one, as a fraction of the mean latency without a queue.
const BUSY_DELAY: f64 = 0.25;
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
    /// Answers.
    pub(super) answers: f64,
    /// Mean in-flight, and in-flight at the end.
    pub(super) in_flight: f64,
    pub(super) in_flight_at_end: f64,
    /// The low quantile of the latencies, seconds.
    pub(super) low: f64,
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
        Some(Self {
            span: window.span.as_secs_f64(),
            throughput,
            answers: window.count(Count::Answers),
            in_flight: window.mean_in_flight(),
            in_flight_at_end: f64::from(window.in_flight),
            low,
            delay,
            cost: delay.max(window.mean_latency().unwrap_or_default() - floor.mean),
            is_busy: is_delayed && throughput * delay >= MIN_QUEUE,
            is_refusing: refused > 0.0,
            refused,
            refused_share: refused / window.count(Count::Arrivals).max(1.0),
        })
    }

    /// Whether the fast requests were faster than ever.
    pub(super) fn is_faster(&self, floor: &Floor) -> bool {
        self.low < floor.low * (1.0 - BUSY_DELAY)
    }
}
