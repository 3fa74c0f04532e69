//! The figures of one window.

use super::baseline::Baseline;
use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::tally::Count;

/// The queue delay that counts as one, as a fraction of the mean no-load latency.
pub(super) const BUSY_DELAY: f64 = 0.25;
/// And at least this much, seconds: below it schedulers and networks make noise.
const MIN_BUSY_DELAY: f64 = 0.001;

/// What the limits are judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// Length, seconds.
    pub(super) span: f64,
    /// Answers a second.
    pub(super) throughput: f64,
    /// Mean in-flight, and in-flight at the end.
    pub(super) in_flight: f64,
    pub(super) in_flight_at_end: f64,
    /// What the fast requests waited longer than without load, seconds.
    pub(super) delay: f64,
    /// Whether that is a queue.
    pub(super) busy: bool,
    /// Requests that were refused for want of room, whether there were any, and which share of the arrivals, 0..=1.
    pub(super) refusals: f64,
    pub(super) refused: bool,
    pub(super) refused_share: f64,
    /// Answers, and how many requests were slower than the target.
    pub(super) answers: u64,
    pub(super) successes: f64,
    pub(super) slow: f64,
    /// Answers later than the target that a queue of all who were in flight at once may have made so.
    pub(super) late: f64,
}

impl Figures {
    /// The figures of `window`, whose low latency quantile is `low` seconds, against the objective's latency of `target`
    /// seconds.
    pub(super) fn of(window: &Sample, low: f64, baseline: &Baseline, target: f64) -> Self {
        let delay = (low - baseline.low).max(0.0);
        let refused = window.tally.refused_for_load();
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of one window stay far below 2^53"
        )]
        let refusals = refused as f64;
        let latency = &window.tally.latency;
        let longest = f64::from(window.peak) / window.throughput();
        let late = latency.share_above(target) - latency.share_above(target + longest);
        Self {
            span: window.span.as_secs_f64(),
            throughput: window.throughput(),
            in_flight: window.mean_in_flight(),
            in_flight_at_end: f64::from(window.in_flight),
            delay,
            busy: delay > (baseline.mean * BUSY_DELAY).max(MIN_BUSY_DELAY),
            refusals,
            refused: refused > 0,
            refused_share: refusals / window.count(Count::Arrivals).max(1.0),
            answers: window.tally.latency.len(),
            successes: window.count(Count::Successes),
            slow: window.count(Count::Slow),
            late: late * window.throughput() * window.span.as_secs_f64(),
        }
    }

    /// Whether the queue holds anybody up. Of a few answers the fast ones vary by more than a queue of less than one
    /// request makes.
    pub(super) fn holds_up(&self) -> bool {
        self.busy && (self.queue() >= 1.0 || is_off(Mechanism::HoldsUp))
    }

    /// Requests in the queue, by Little's law.
    pub(super) fn queue(&self) -> f64 {
        self.throughput * self.delay
    }
}
