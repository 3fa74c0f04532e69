//! How much of the headroom the objective leaves.
//!
//! A short queue keeps the upstream busy, and delays everybody by its length. Where the objective is far above what serving
//! takes nobody minds; where it is near, a queue of two is two too many. So at the knee the answers that came too late, and
//! would not have without the queue, are held against the throughput that a shorter queue would cost: while they are more
//! than a few the headroom is cut, and it is given back when by the latencies that were measured it would make few late.

use crate::ablation::{Mechanism, is_off};
use crate::histogram::Histogram;

/// Share of the answers that a queue may make late: what a knee without headroom loses in throughput at the least.
const LATE: f64 = 0.05;
/// What is left of the headroom after a measurement with more, and the least that ever is.
const CUT: f64 = 0.7;
const MIN: f64 = 0.1;
/// What is given back after one with less.
const STEP: f64 = 0.1;

/// The share of the headroom that is in use, in 0.1..=1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Room(f64);

/// What requests wait for, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// In the queue that there is.
    pub(super) delay: f64,
    /// In a queue that fills the whole headroom.
    pub(super) whole: f64,
}

impl Room {
    pub(super) const WHOLE: Self = Self(1.0);

    pub(super) const fn share(self) -> f64 {
        self.0
    }

    /// One measurement at the knee, against the objective's latency of `target` seconds. True when the headroom is cut.
    pub(super) fn weigh(&mut self, latency: &Histogram, wait: Wait, target: f64) -> bool {
        if latency.is_empty() {
            return false;
        }
        let late = latency.share_above(target);
        let due = late - latency.share_above(target + wait.delay);
        if due > LATE && !is_off(Mechanism::Room) {
            self.0 = (self.0 * CUT).max(MIN);
            return true;
        }
        let next = (self.0 + STEP).min(1.0);
        let longer = (next - self.0) * wait.whole;
        let more = latency.share_above(target - longer) - late;
        if due + more <= LATE {
            self.0 = next;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    const TARGET: f64 = 0.1;
    const WAIT: Wait = Wait {
        delay: 0.04,
        whole: 0.05,
    };

    fn latencies(ms: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        for ms in ms {
            histogram.record(Duration::from_millis(ms));
        }
        histogram
    }

    /// The share after so many measurements of these latencies.
    fn after(measurements: u32, room: &mut Room, latency: &Histogram) -> f64 {
        for _ in 0..measurements {
            room.weigh(latency, WAIT, TARGET);
        }
        room.share()
    }

    fn stays_whole(latency: &Histogram) -> bool {
        let mut room = Room::WHOLE;
        after(20, &mut room, latency);
        room == Room::WHOLE
    }

    #[test]
    fn a_queue_that_makes_answers_late_is_made_shorter_and_given_back_when_it_would_not() {
        let mut room = Room::WHOLE;
        assert!(after(3, &mut room, &latencies([120; 60])) < 0.4);
        assert!((after(50, &mut room, &latencies([120; 60])) - MIN).abs() < 1e-9);
        let near = after(50, &mut room, &latencies([94; 60]));
        assert!(
            (near - MIN).abs() < 1e-9,
            "one step more would make them late"
        );
        assert!((after(50, &mut room, &latencies([50; 60])) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_late_without_a_queue_and_a_few_that_are_late_with_one_leave_it_alone() {
        assert!(stays_whole(&latencies(
            [50; 48].into_iter().chain([540; 12])
        )));
        assert!(stays_whole(&latencies(
            [50; 58].into_iter().chain([120; 2])
        )));
        assert!(stays_whole(&latencies([])));
    }
}
