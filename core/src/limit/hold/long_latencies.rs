//! Latencies that stay long while the fast requests show no queue.
//!
//! If a queue stood, latencies would fall to about `T + w` under the limit of the formula. They may stay some times as long, while the fast
//! requests are as fast as ever. Then most requests are slow by themselves, such as long polls. The tests of [steps](super::steps) cannot
//! tell: a low limit has few answers, and their latencies vary. So hold ends after some seconds.
//!
//! ```text
//!           mean > LONG (T + w)             for AFTER, and the fast requests show no queue
//!   no row ---------------------> LongRow --------------------------------------------------> no hold
//!     ^                             |
//!     |  the mean falls, nothing    |
//!     |  is refused, or the fast    |
//!     |  requests show a queue      |
//!     +-----------------------------+
//! ```

use core::time::Duration;

use super::{BEAT, FEW, HoldTarget};
use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;

/// Hold ends after this time, or after one mean latency if that is longer. All proxies have made a trial by then.
const AFTER: Duration = BEAT.saturating_mul(2);
/// A mean latency of more than this many times `T + w` is long. A queue that a limit holds is shorter, even if it falls slowly.
const LONG: f64 = 6.0;

/// Windows in a row whose mean latency is long.
#[derive(Clone, Debug)]
struct LongRow {
    /// When the first of them ended.
    since: Instant,
    windows: Sample,
}

/// Looks for long latencies without a queue. Boxed, because most upstreams have none.
#[derive(Clone, Debug)]
pub(super) struct LongLatencies(Option<Box<LongRow>>);

impl LongLatencies {
    /// None were seen.
    pub(super) const NONE: Self = Self(None);

    /// Learns from one window. Returns the windows of the row if they show that there is no queue. `target` tells what hold wants of a
    /// measurement.
    pub(super) fn add(
        &mut self,
        window: &Sample,
        clock: Instant,
        target: impl Fn(&Sample) -> HoldTarget,
    ) -> Option<Box<Sample>> {
        if window.count(Count::Answers) <= 0.0 || is_off(Mechanism::LongLatencies) {
            return None;
        }
        let row = self.0.take().map(|mut row| {
            row.windows.extend(window);
            row
        });
        let windows = row.as_ref().map_or(window, |row| &row.windows);
        let mean = windows.mean_latency().unwrap_or_default();
        let target = target(windows);
        let is_long = mean > LONG * (target.latency + target.wait);
        if !is_long || window.tally.refused_for_load() == 0 {
            return None;
        }
        let row = row.unwrap_or_else(|| {
            Box::new(LongRow {
                since: clock,
                windows: window.clone(),
            })
        });
        let lasts = clock.saturating_since(row.since);
        let is_short = lasts < AFTER || lasts.as_secs_f64() < mean;
        if is_short || row.windows.count(Count::Answers) < FEW {
            self.0 = Some(row);
            return None;
        }
        let shows_queue = target.delay > target.wait.max(target.latency);
        (!shows_queue).then(|| Box::new(row.windows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::testing::{at, window};

    /// 100 ms without a queue, and a queue of 20 ms is wanted: more than 720 ms are long.
    fn target(delay: f64) -> HoldTarget {
        HoldTarget {
            capacity: 100.0,
            latency: 0.1,
            in_doubt: false,
            objective: 0.3,
            wait: 0.02,
            is_contended: false,
            delay,
            harmless: 0.2,
            most: 50.0,
            hides_queues: false,
        }
    }

    /// How many seconds like this one show that there is no queue.
    fn seconds_without_a_queue(second: &Sample, delay: f64) -> Option<u64> {
        let mut long = LongLatencies::NONE;
        (1..40).find(|n| {
            let found = long.add(second, at(n * 1_000), |_| target(delay));
            found.is_some_and(|measured| measured.span == Duration::from_secs(*n))
        })
    }

    #[test]
    fn latencies_that_stay_long_are_no_queue_if_the_fast_requests_show_none() {
        for (name, answers, millis, refused, delay, expected) in [
            ("long polls", 2, 2_000, 50, 0.0, Some(9)),
            ("longer ones", 2, 20_000, 50, 0.0, Some(21)),
            ("a little wait of the fast ones", 2, 2_000, 50, 0.1, Some(9)),
            ("a queue", 2, 2_000, 50, 0.2, None),
            ("not long", 2, 700, 50, 0.0, None),
            ("no refusal", 2, 2_000, 0, 0.0, None),
            ("no answer", 0, 0, 50, 0.0, None),
        ] {
            let second = window(1_000, answers, millis).refusing(refused);
            assert_eq!(seconds_without_a_queue(&second, delay), expected, "{name}");
        }
    }

    #[test]
    fn a_pause_of_the_refusals_and_a_fall_of_the_latencies_end_the_row() {
        let polls = window(1_000, 2, 2_000).refusing(50);
        for ends in [window(1_000, 2, 2_000), window(1_000, 90, 100).refusing(50)] {
            let mut long = LongLatencies::NONE;
            let mut add = |second: &Sample, n: u64| {
                let found = long.add(second, at(n * 1_000), |_| target(0.0));
                found.is_some()
            };
            assert!(!(1..8).any(|n| add(&polls, n)));
            assert!(!add(&ends, 8));
            assert!(!(9..17).any(|n| add(&polls, n)), "it starts over");
            assert!(add(&polls, 17));
        }
    }
}
