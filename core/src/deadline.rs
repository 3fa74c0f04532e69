//! Requests whose callers wait for less time than nearly all answers take.
//!
//! Their answers would come too late, so the upstream would work for nothing. They are shed, but only near the limit and for a
//! while after, because the work is not missed elsewhere.
//!
//! What nearly all answers take says little about a class of requests that is faster than the rest. So one in
//! [`EXPLORED`] of these requests is admitted to find out. If more than a few of these are answered in time, all are admitted.

use core::time::Duration;

use crate::limit::LimitCheckpoint;
use crate::time::Instant;

/// Deadlines are heeded for this long after the last request that found the upstream near its limit. Without these requests the
/// load falls below the limit, and with them it rises again at once.
const HEEDED_FOR: Duration = Duration::from_secs(10);
/// Of this many hopeless requests one is explored: it is admitted to find out whether it is answered in time.
const EXPLORED: u32 = 20;
/// If a greater share of the explored requests was answered in time, no request is hopeless.
const MOST_KEPT: f64 = 0.1;
/// Weight of the newest explored request in that share.
const NEWEST: f64 = 0.1;

/// What is known of an upstream's requests with short deadlines; of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Deadlines {
    /// When a request last found the upstream near its limit.
    pressed_at: Option<Instant>,
    /// Share of the explored requests that were answered in time, 0..=1.
    kept: f64,
    /// Hopeless requests since the last one that was explored.
    unexplored: u32,
}

/// What happens to a request because of its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// It may be answered in time, or says no deadline.
    Good,
    /// It would hardly be answered in time.
    Hopeless,
    /// The same, and it is admitted to find out; its caller waits for this long.
    Explored(Duration),
}

impl Deadlines {
    /// Whether deadlines matter. `is_pressed`: this request finds the upstream near its limit.
    pub(crate) fn are_heeded(&mut self, is_pressed: bool, now: Instant) -> bool {
        if is_pressed {
            self.pressed_at = Some(now);
        }
        self.pressed_at
            .is_some_and(|at| now.saturating_since(at) < HEEDED_FOR)
    }

    /// Judges a request whose caller waits for `left`, where nearly all answers take `least` seconds or more.
    pub(crate) fn judge(&mut self, left: Duration, least: f64) -> Prospect {
        if left.as_secs_f64() >= least {
            return Prospect::Good;
        }
        self.unexplored = self.unexplored.saturating_add(1);
        if self.kept < MOST_KEPT && self.unexplored < EXPLORED {
            return Prospect::Hopeless;
        }
        self.unexplored = 0;
        Prospect::Explored(left)
    }

    /// Learns whether an explored request was answered in time.
    pub(crate) fn learn(&mut self, in_time: bool) {
        let news = f64::from(u8::from(in_time));
        self.kept += (news - self.kept) * NEWEST;
    }
}

/// Seconds that nine of ten answers take or more if the request finds `load` in flight; 0 while unknown. The time in a queue
/// follows from Little's law: latencies of the last answers would be those of the requests that were not shed.
pub(crate) fn least_latency(known: &LimitCheckpoint, load: u32) -> f64 {
    let (floor, capacity) = (known.floor, known.capacity.get());
    let wait = if capacity > 0.0 && floor.mean.get() > 0.0 {
        (f64::from(load) / capacity - floor.mean.get()).max(0.0)
    } else {
        0.0
    };
    floor.low.get() + wait
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::FloorCheckpoint;
    use crate::units::{PerSecond, Seconds};

    const SHORT: Duration = Duration::from_millis(20);

    /// Of a hundred hopeless requests, how many are shed if these of the explored ones are answered in time.
    fn shed_if(in_time: impl Fn(u32) -> bool) -> usize {
        let mut deadlines = Deadlines::default();
        let shed = (0..400).filter(|request| match deadlines.judge(SHORT, 0.05) {
            Prospect::Hopeless => true,
            Prospect::Explored(left) => {
                assert_eq!(left, SHORT);
                deadlines.learn(in_time(*request));
                false
            }
            Prospect::Good => panic!("20 ms are less than 50"),
        });
        shed.count() / 4
    }

    #[test]
    fn hopeless_requests_are_shed_unless_explored_ones_show_otherwise() {
        assert_eq!(shed_if(|_| false), 95);
        assert!(shed_if(|_| true) < 6);
        assert!(shed_if(|request| request / 7 % 2 == 0) < 40);
    }

    #[test]
    fn a_request_with_enough_time_is_not_hopeless_nor_any_while_latencies_are_unknown() {
        let mut deadlines = Deadlines::default();
        for (left, least) in [(50, 0.05), (60, 0.05), (1, 0.0)] {
            let found = deadlines.judge(Duration::from_millis(left), least);
            assert_eq!(found, Prospect::Good, "{left} ms, {least} s");
        }
    }

    #[test]
    fn deadlines_matter_near_the_limit_and_for_a_while_after() {
        let mut deadlines = Deadlines::default();
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        for (is_pressed, now, expected) in [
            (false, 0, false),
            (true, 1, true),
            (false, 10, true),
            (false, 11, false),
        ] {
            let heeded = deadlines.are_heeded(is_pressed, at(now));
            assert_eq!(heeded, expected, "at {now} s");
        }
    }

    #[test]
    fn the_wait_follows_from_the_load() {
        let known = LimitCheckpoint {
            floor: FloorCheckpoint {
                low: Seconds::new(0.03),
                mean: Seconds::new(0.05),
                tail: Seconds::new(0.2),
            },
            capacity: PerSecond::new(100.0),
            ..LimitCheckpoint::default()
        };
        // Five in flight need no queue; fifteen wait for a tenth of a second.
        for (load, expected) in [(1, 0.03), (5, 0.03), (15, 0.13)] {
            let found = least_latency(&known, load);
            assert!((found - expected).abs() < 1e-6, "{load}: {found}");
        }
        assert!(least_latency(&LimitCheckpoint::default(), 90) <= 0.0);
    }
}
