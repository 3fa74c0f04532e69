//! While no queue stands: as many in flight as the objective affords.
//!
//! A queue that drains in time costs nothing, so a burst may fill `C (T + w)`, where `w` is what the objective leaves after
//! serving. Traffic that stands in no queue may need more than was ever seen: a limit that refuses requests although the
//! fast ones are as fast as ever grows.
//!
//! A queue stands when requests are refused and the low quantile has been above the floor without a break for an interval
//! (CoDel). Nothing less will do: a queue that refuses nothing is within the objective, and one that drains within the
//! interval was a burst. Where nothing is refused there may be no queue at all, only a slower service.

use core::time::Duration;

use super::window::WindowStats;
use crate::time::Instant;

/// A queue that has not drained for so long stands ...
pub const STANDING_AFTER: Duration = Duration::from_millis(300);
/// ... or for so many mean latencies, if that is longer.
const STANDING_OF_MEAN: f64 = 3.0;
/// Its wait is then this share of what the objective affords at the least.
const COSTLY: f64 = 0.5;
/// One that has refused nothing for so long is no queue.
const SLOWER_AFTER: Duration = Duration::from_secs(2);
/// Growth in one window that refused requests without a queue.
const GROWTH: f64 = 1.25;
/// What is left of such growth after a second in which it was not needed.
const REMEMBERED: f64 = 0.9;

/// What a window is held against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    /// The mean latency without a queue, seconds.
    pub(super) mean: f64,
    /// What a request may wait within the objective, seconds.
    pub(super) affordable: f64,
    /// The limit in force; none where that is no limit for queues.
    pub(super) in_force: Option<f64>,
}

/// What is known of the queue while none stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cruise {
    /// The limit that use has shown to be right; 0 where the model was enough.
    grown: f64,
    /// There has been a queue since.
    queue_since: Option<Instant>,
    /// And the fast requests have been slower than without one since.
    busy_since: Option<Instant>,
    /// Since then requests were refused.
    has_refused: bool,
}

impl Cruise {
    pub(super) const fn grown(&self) -> f64 {
        self.grown
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.grown *= factor;
    }

    /// Nothing was in flight at the end of a window without an answer.
    pub(super) const fn run_empty(&mut self) {
        self.queue_since = None;
        self.busy_since = None;
        self.has_refused = false;
    }

    /// Whether a queue has been there for long, and nothing was refused: then it is none, but a service that takes longer.
    pub(super) fn is_slower(&self, now: Instant) -> bool {
        !self.has_refused
            && self
                .busy_since
                .is_some_and(|since| now.saturating_since(since) >= SLOWER_AFTER)
    }

    /// One window. True when a queue stands.
    pub(super) fn update(&mut self, window: &WindowStats, usual: &Usual, now: Instant) -> bool {
        self.grown *= libm::pow(REMEMBERED, window.span);
        if !window.is_busy {
            self.run_empty();
            if let Some(in_force) = usual.in_force
                && window.is_refusing
            {
                self.grown = self.grown.max(in_force * GROWTH);
            }
            return false;
        }
        self.grown = 0.0;
        let _ = self.busy_since.get_or_insert(now);
        self.has_refused |= window.is_refusing;
        if window.cost < usual.affordable * COSTLY {
            self.queue_since = None;
            return false;
        }
        // The window that shows it first is a part of the time.
        let span = Duration::try_from_secs_f64(window.span).unwrap_or_default();
        let since = *self.queue_since.get_or_insert(now - span);
        let of_mean =
            Duration::try_from_secs_f64(usual.mean * STANDING_OF_MEAN).unwrap_or_default();
        self.has_refused && now.saturating_since(since) >= STANDING_AFTER.max(of_mean)
    }
}
