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
const COSTLY: f64 = 0.5;
/// Growth in one window that refused requests without a queue.
const GROWTH: f64 = 1.25;
/// What is left of such growth after a second in which it was not needed.
const REMEMBERED: f64 = 0.9;

/// What is known of the queue while none stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cruise {
    /// The limit that use has shown to be right; 0 where the model was enough.
    grown: f64,
    /// There has been a queue since.
    queue_since: Option<Instant>,
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
        self.has_refused = false;
    }

    /// One window, in which `in_force` held; none where that was no limit for queues. True when a queue stands.
    pub(super) fn update(
        &mut self,
        window: &WindowStats,
        mean: f64,
        affordable: f64,
        in_force: Option<f64>,
        now: Instant,
    ) -> bool {
        self.grown *= libm::pow(REMEMBERED, window.span);
        if !window.is_busy {
            self.run_empty();
            if let Some(in_force) = in_force
                && window.is_refusing
            {
                self.grown = self.grown.max(in_force * GROWTH);
            }
            return false;
        }
        self.grown = 0.0;
        self.has_refused |= window.is_refusing;
        if window.cost < affordable * COSTLY {
            self.queue_since = None;
            return false;
        }
        // The window that shows it first is a part of the time.
        let span = Duration::try_from_secs_f64(window.span).unwrap_or_default();
        let since = *self.queue_since.get_or_insert(now - span);
        let of_mean = Duration::try_from_secs_f64(mean * STANDING_OF_MEAN).unwrap_or_default();
        self.has_refused && now.saturating_since(since) >= STANDING_AFTER.max(of_mean)
    }
}
