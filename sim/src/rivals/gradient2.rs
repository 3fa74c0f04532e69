//! Gradient2: compares the time now with the time over many windows.
//!
//! The long average slowly follows the service; a window's mean of up to 1.5 times the average does not lower the limit.
//!
//! Formula, for each window: `long` = exponential average over 600 windows (the plain mean of the first 10),
//! x 0.95 when it is more than twice the window's mean `short`; when at least half the limit was in flight,
//! `gradient = clamp(1.5 x long / short, 0.5, 1)`, `new = limit x gradient + 4`,
//! `limit = 0.8 x limit + 0.2 x new`, clamped to 20..=200.
//!
//! Source: Netflix concurrency-limits, `Gradient2Limit` inside `WindowedLimit`,
//! <https://github.com/Netflix/concurrency-limits>.
//!
//! Edges: losses are not looked at. At a moderate overload the gradient stays near 1 while `queue` is added, and
//! the limit grows without end (pull request 134 there); a time that is always the same looks healthy (issue 137).

use super::limiter::{LatencySample, LimitAlgorithm, LimitContender};
use super::windowed::Windowed;
use crate::contender::Made;
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "gradient2",
    title: "Gradient2 (Netflix Gradient2Limit)",
    make: Make::Published(make),
};

const MIN_LIMIT: f64 = 20.0;
const MAX_LIMIT: f64 = 200.0;
const TOLERANCE: f64 = 1.5;
const QUEUE: f64 = 4.0;
const SMOOTHING: f64 = 0.2;
const LONG_WINDOW: f64 = 600.0;
const WARM_UP: f64 = 10.0;
/// Factor for the long average when it is far too long.
const DRIFT: f64 = 0.95;

fn make(scenario: &Scenario, _seed: u64) -> Made {
    let limits = scenario.upstreams.iter();
    let limits = limits.map(|_| Windowed::new(Gradient2::new())).collect();
    Ok(Box::new(LimitContender::new(limits)))
}

/// An exponential average that starts as a plain mean.
#[derive(Default)]
struct LongAverage {
    value: f64,
    count: f64,
}

impl LongAverage {
    fn add(&mut self, sample: f64) -> f64 {
        if self.count < WARM_UP {
            self.value = (self.value * self.count + sample) / (self.count + 1.0);
            self.count += 1.0;
        } else {
            let factor = 2.0 / (LONG_WINDOW + 1.0);
            self.value = self.value * (1.0 - factor) + sample * factor;
        }
        self.value
    }
}

/// The algorithm.
struct Gradient2 {
    limit: f64,
    long: LongAverage,
}

impl Gradient2 {
    fn new() -> Self {
        Self {
            limit: MIN_LIMIT,
            long: LongAverage::default(),
        }
    }
}

impl LimitAlgorithm for Gradient2 {
    fn limit(&self) -> f64 {
        self.limit
    }

    fn on_sample(&mut self, sample: &LatencySample) {
        let short = sample.rtt.as_secs_f64();
        let long = self.long.add(short);
        if long / short > 2.0 {
            self.long.value *= DRIFT;
        }
        if f64::from(sample.in_flight) < self.limit / 2.0 {
            return;
        }
        let gradient = (TOLERANCE * long / short).clamp(0.5, 1.0);
        let new = self.limit * gradient + QUEUE;
        let smoothed = self.limit * (1.0 - SMOOTHING) + new * SMOOTHING;
        self.limit = smoothed.clamp(MIN_LIMIT, MAX_LIMIT);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use tidegate_core::Instant;

    fn sample(rtt_ms: u64, in_flight: u32) -> LatencySample {
        LatencySample {
            rtt: Duration::from_millis(rtt_ms),
            in_flight,
            is_drop: false,
            now: Instant::ZERO,
        }
    }

    #[test]
    fn moves_as_published() {
        let mut gradient2 = Gradient2::new();
        // No queue: 0.8 x 20 + 0.2 x (20 + 4) = 20.8.
        gradient2.on_sample(&sample(40, 20));
        assert!((gradient2.limit() - 20.8).abs() < 1e-9);
        // Too few in flight: held.
        gradient2.on_sample(&sample(40, 10));
        assert!((gradient2.limit() - 20.8).abs() < 1e-9);
        // long = (40 + 40 + 160) / 3 = 80; gradient 1.5 x 80 / 160 = 0.75;
        // at 100: 0.8 x 100 + 0.2 x (75 + 4) = 95.8.
        gradient2.limit = 100.0;
        gradient2.on_sample(&sample(160, 100));
        assert!(
            (gradient2.limit() - 95.8).abs() < 1e-9,
            "{}",
            gradient2.limit()
        );
        // One window may at most halve: 0.8 x 100 + 0.2 x (50 + 4) = 90.8.
        gradient2.limit = 100.0;
        gradient2.on_sample(&sample(9_000, 100));
        assert!(
            (gradient2.limit() - 90.8).abs() < 1e-9,
            "{}",
            gradient2.limit()
        );
    }

    #[test]
    fn long_average_is_a_plain_mean_first_and_drifts_then() {
        let mut long = LongAverage::default();
        for _ in 0..10 {
            long.add(40.0);
        }
        // 40 x (1 - 2 / 601) + 641 x 2 / 601 = 40 + 601 x 2 / 601.
        assert!((long.add(641.0) - 42.0).abs() < 1e-9);
    }

    #[test]
    fn a_long_average_that_is_twice_too_long_is_cut() {
        let mut gradient2 = Gradient2::new();
        gradient2.long = LongAverage {
            value: 1.0,
            count: 10.0,
        };
        gradient2.on_sample(&sample(40, 0));
        // (1 - 2 / 601 + 0.04 x 2 / 601) x 0.95
        assert!(
            (gradient2.long.value - 0.946_965).abs() < 1e-6,
            "{}",
            gradient2.long.value
        );
    }
}
