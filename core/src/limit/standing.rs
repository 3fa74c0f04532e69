//! Whether a queue stands.
//!
//! A queue that drains costs nobody anything; one that stands delays everybody and carries nothing more. CoDel tells
//! them apart by the minimum over an interval: a queue stands when the low latency quantile has been above the
//! baseline without a break for [`STANDING_AFTER`]. One that fills the limit and turns requests away, window after
//! window, will not drain either, nor will one that grows from window to window: they need not be waited for so long.
//!
//! ```text
//!   busy for STANDING_AFTER, full for FULL_FOR, or growing for GROWING_FOR
//!   passing -----------------------------------------------> standing
//!      ^                                                         |
//!      +---------------------------------------------------------+
//!               below the knee, nothing refused, for RELIEF_AFTER
//! ```

use core::time::Duration;

use super::figures::Figures;
use super::knee::Knee;
use crate::sample::Sample;
use crate::time::Instant;

/// A queue that has not drained for so long stands.
pub const STANDING_AFTER: Duration = Duration::from_millis(500);
/// Or for so many mean no-load latencies, if that is longer.
const STANDING_OF_MEAN: f64 = 5.0;
/// A queue that fills the limit to this share and turns requests away, window after window for so long, does not drain:
/// it stands already. A burst fills it once.
const FULL: f64 = 0.9;
const FULL_FOR: Duration = Duration::from_millis(150);
/// One that grows from window to window for so long is fed by more than the upstream serves: no burst does that.
const GROWING_FOR: Duration = Duration::from_millis(250);
/// It is over when in-flight stays below this share of the knee for so long. A moment's lull is no relief: the burst
/// limit would let the queue in again.
const RELIEF: f64 = 0.9;
const RELIEF_AFTER: Duration = Duration::from_millis(200);
/// When no queue was seen for so long, what is in flight beyond Little's law is no remnant of one: the upstream is slow
/// with some requests.
const CLEAR_AFTER: Duration = Duration::from_secs(2);

/// What one window changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    Same,
    /// A queue has drained by itself, and requests had been refused for it.
    Drained,
    /// A queue stands from now on.
    Stands,
}

/// What is known of the queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// Since when there has been a queue, when there last was one, and since when it has filled the limit.
    busy_since: Option<Instant>,
    busy_at: Option<Instant>,
    full_since: Option<Instant>,
    /// Since when it has grown without a break, and how many were in flight when it last did.
    growing_since: Option<Instant>,
    grown_to: f64,
    /// Whether it cost anybody.
    refused: bool,
    stands: bool,
    /// It stands because nobody knows better, and is yet to be seen.
    suspected: bool,
    /// Since when it seems to be gone.
    calm_since: Option<Instant>,
}

impl Standing {
    /// As another leader left it.
    pub(super) fn resume(stands: bool) -> Self {
        Self {
            stands,
            ..Self::default()
        }
    }

    pub(super) const fn stands(&self) -> bool {
        self.stands
    }

    /// A queue is assumed to stand.
    pub(super) const fn assume(&mut self) {
        self.stands = true;
        self.suspected = false;
        self.calm_since = None;
        self.refused = false;
    }

    /// A queue may stand: until one is seen, or none.
    pub(super) const fn suspect(&mut self) {
        self.assume();
        self.suspected = true;
    }

    /// Nothing was in flight at the end of a window without an answer.
    pub(super) const fn run_empty(&mut self) {
        self.busy_since = None;
        self.full_since = None;
    }

    /// Whether latencies of this window may have a queue in them although most requests were fast: it has only just
    /// begun, or has only just drained. `carried` is what the upstream has in flight without one.
    pub(super) fn has_remnant(&self, figures: &Figures, carried: f64, now: Instant) -> bool {
        figures.in_flight.max(figures.in_flight_at_end) > carried
            && self
                .busy_at
                .is_some_and(|at| now.saturating_since(at) < CLEAR_AFTER)
    }

    /// One window under `limit`; `mean` is the no-load latency in seconds.
    pub(super) fn judge(
        &mut self,
        figures: &Figures,
        limit: f64,
        mean: f64,
        now: Instant,
    ) -> Change {
        let is_full = figures.refused && figures.in_flight_at_end >= limit * FULL;
        if !figures.busy {
            // A queue that is held at the knee has not drained by itself.
            let drained = self.busy_since.take().is_some()
                && core::mem::take(&mut self.refused)
                && !self.stands;
            self.refused |= figures.refused;
            self.full_since = is_full.then_some(now);
            self.growing_since = None;
            self.grown_to = figures.in_flight_at_end;
            return if drained {
                Change::Drained
            } else {
                Change::Same
            };
        }
        self.refused |= figures.refused;
        self.busy_at = Some(now);
        let busy_for = now.saturating_since(*self.busy_since.get_or_insert(now));
        let full_for = if is_full {
            now.saturating_since(*self.full_since.get_or_insert(now))
        } else {
            self.full_since = None;
            Duration::ZERO
        };
        let grows = figures.in_flight_at_end > self.grown_to;
        self.grown_to = figures.in_flight_at_end;
        let growing_for = if grows {
            now.saturating_since(*self.growing_since.get_or_insert(now))
        } else {
            self.growing_since = None;
            Duration::ZERO
        };
        let of_mean = Duration::try_from_secs_f64(mean * STANDING_OF_MEAN).unwrap_or_default();
        let lasts = busy_for >= STANDING_AFTER.max(of_mean)
            || full_for >= FULL_FOR.max(of_mean)
            || growing_for >= GROWING_FOR.max(of_mean);
        if !lasts || self.stands && !self.suspected || figures.queue() < Knee::MIN_HEADROOM {
            return Change::Same;
        }
        self.assume();
        Change::Stands
    }

    /// One round while a queue stands. Judged by rounds, not by windows: where traffic comes in packs, a whole window is
    /// never calm.
    pub(super) fn relieve(&mut self, sample: &Sample, knee: f64, now: Instant) {
        let is_calm = sample.tally.refused_for_load() == 0
            && f64::from(sample.in_flight) < knee
            && sample.mean_in_flight() < knee * RELIEF;
        if !is_calm {
            self.calm_since = None;
            return;
        }
        let since = *self.calm_since.get_or_insert(now);
        if now.saturating_since(since) >= RELIEF_AFTER {
            self.stands = false;
            self.calm_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::baseline::Baseline;

    const LIMIT: f64 = 90.0;
    const MEAN: f64 = 0.04;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A window of a tenth of a second whose requests waited for `delay` seconds, and that ended with `in_flight`.
    fn window(delay: f64, in_flight: u32) -> Figures {
        let mut sample = Sample::empty(Duration::from_millis(100));
        sample.in_flight = in_flight;
        for _ in 0..20 {
            sample.tally.latency.record(Duration::from_millis(40));
        }
        Figures::of(&sample, 0.02 + delay, &Baseline::believed(0.02, MEAN, 0.1))
    }

    /// When a queue is found to stand, in milliseconds, if so many are in flight at the end of each window.
    fn stands_after(standing: &mut Standing, in_flight: &[u32]) -> Option<usize> {
        (0..in_flight.len()).map(|i| i * 100).find(|millis| {
            let now = at(u64::try_from(*millis).unwrap());
            let figures = window(0.1, *in_flight.get(*millis / 100).unwrap());
            standing.judge(&figures, LIMIT, MEAN, now) == Change::Stands
        })
    }

    #[test]
    fn a_queue_that_grows_without_a_break_stands_sooner_than_one_that_does_not() {
        let growing = [20, 30, 40, 50, 60, 70, 80];
        assert_eq!(stands_after(&mut Standing::default(), &growing), Some(300));
        let draining = [60, 50, 40, 30, 20, 19, 18];
        assert_eq!(stands_after(&mut Standing::default(), &draining), Some(500));
    }

    #[test]
    fn a_suspected_queue_can_still_be_found() {
        let steady = [30; 7];
        let mut standing = Standing::default();
        standing.suspect();
        assert!(standing.stands());
        assert_eq!(stands_after(&mut standing, &steady), Some(500));
        assert_eq!(stands_after(&mut standing, &steady), None, "it is known");
    }
}
