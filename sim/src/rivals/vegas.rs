//! Vegas: keeps the queue that it computes from latency between two bounds.
//!
//! The least time seen since the last look counts as that of a service without a queue; how much longer a request takes
//! shows how many of those in flight are waiting.
//!
//! Formula, for each request: `queue = ceil(limit x (1 - rtt_noload / rtt))`; with `log = max(1, floor(log10 limit))`
//! the limit grows by `6 log` while the queue is at most `log`, by `log` while it is below `3 log`, and shrinks
//! by `log` when it is above `6 log` or the request was lost. Unless it was lost, it changes nothing with less than half
//! the limit in flight. Every 30 x limit samples, times a random 0.5..1, the next request's time becomes `rtt_noload`.
//!
//! Source: Netflix concurrency-limits, `VegasLimit` (initial limit 20, greatest 1000, smoothing 1, probe
//! multiplier 30), after L. Brakmo, L. Peterson, "TCP Vegas", 1995,
//! <https://github.com/Netflix/concurrency-limits>.
//!
//! Edges: with widely spread service times the least time is far below the mean, and a queue is seen where there is none;
//! under load a new `rtt_noload` includes the queue. Both are properties of the algorithm.

use std::time::Duration;

use rand::{Rng, SeedableRng};

use super::limiter::{LatencySample, LimitAlgorithm, LimitContender};
use super::windowed::Windowed;
use crate::contender::Made;
use crate::kind::{ContenderKind, Make};
use crate::rng::Generator;
use crate::scenario::Scenario;

/// As the library makes it by default: it looks at every request.
pub(super) const KIND: ContenderKind = ContenderKind {
    name: "vegas",
    title: "Vegas (Netflix VegasLimit)",
    make: Make::Published(make),
};

/// Behind the library's windows of a second.
pub(super) const WINDOWED: ContenderKind = ContenderKind {
    name: "vegas-windowed",
    title: "Vegas in windows of 1 s (Netflix WindowedLimit)",
    make: Make::Published(make_windowed),
};

const INITIAL_LIMIT: f64 = 20.0;
const MAX_LIMIT: f64 = 1_000.0;
const PROBE_MULTIPLIER: f64 = 30.0;

fn make(scenario: &Scenario, seed: u64) -> Made {
    Ok(Box::new(LimitContender::new(
        each(scenario, seed).collect(),
    )))
}

fn make_windowed(scenario: &Scenario, seed: u64) -> Made {
    let limits = each(scenario, seed).map(Windowed::new);
    Ok(Box::new(LimitContender::new(limits.collect())))
}

/// One limit for each upstream, each with its own random numbers.
fn each(scenario: &Scenario, seed: u64) -> impl Iterator<Item = Vegas> {
    let upstreams = (0..).zip(&scenario.upstreams);
    upstreams.map(move |(index, _)| Vegas::new(seed.wrapping_add(index)))
}

/// The algorithm.
pub(super) struct Vegas {
    limit: f64,
    rtt_noload: Option<Duration>,
    samples_since_probe: f64,
    /// Share of the full distance to the next look, drawn again each time.
    jitter: f64,
    rng: Generator,
}

/// The whole part of the decimal logarithm, at least 1; by comparison, so that it is the same on every machine.
fn log10(limit: f64) -> f64 {
    if limit >= 1_000.0 {
        3.0
    } else if limit >= 100.0 {
        2.0
    } else {
        1.0
    }
}

/// The limit after a window or request with this queue.
fn next_limit(limit: f64, queue: f64, is_drop: bool) -> f64 {
    let log = log10(limit);
    let next = if is_drop {
        limit - log
    } else if queue <= log {
        limit + 6.0 * log
    } else if queue < 3.0 * log {
        limit + log
    } else if queue > 6.0 * log {
        limit - log
    } else {
        limit
    };
    next.clamp(1.0, MAX_LIMIT)
}

impl Vegas {
    /// The algorithm at its start.
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Generator::seed_from_u64(seed);
        Self {
            limit: INITIAL_LIMIT,
            rtt_noload: None,
            samples_since_probe: 0.0,
            jitter: rng.random_range(0.5..1.0),
            rng,
        }
    }
}

impl LimitAlgorithm for Vegas {
    fn limit(&self) -> f64 {
        self.limit
    }

    fn on_sample(&mut self, sample: &LatencySample) {
        self.samples_since_probe += 1.0;
        if self.jitter * PROBE_MULTIPLIER * self.limit <= self.samples_since_probe {
            self.jitter = self.rng.random_range(0.5..1.0);
            self.samples_since_probe = 0.0;
            self.rtt_noload = Some(sample.rtt);
            return;
        }
        let floor = match self.rtt_noload {
            Some(floor) if floor <= sample.rtt => floor,
            _ => {
                self.rtt_noload = Some(sample.rtt);
                return;
            }
        };
        if !sample.is_drop && f64::from(sample.in_flight) * 2.0 < self.limit {
            return;
        }
        let ratio = floor.as_secs_f64() / sample.rtt.as_secs_f64().max(f64::MIN_POSITIVE);
        let queue = (self.limit * (1.0 - ratio)).ceil();
        self.limit = next_limit(self.limit, queue, sample.is_drop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Instant;

    #[test]
    #[expect(clippy::float_cmp, reason = "whole numbers")]
    fn moves_as_published() {
        // log10(20) = 1.3: log is 1, alpha 3, beta 6.
        assert_eq!(next_limit(20.0, 1.0, false), 26.0);
        assert_eq!(next_limit(20.0, 2.0, false), 21.0);
        assert_eq!(next_limit(20.0, 3.0, false), 20.0);
        assert_eq!(next_limit(20.0, 6.0, false), 20.0);
        assert_eq!(next_limit(20.0, 7.0, false), 19.0);
        assert_eq!(next_limit(20.0, 0.0, true), 19.0);
        // log10(150) = 2.2: log is 2, so that 2 waiting are none, 12 are enough.
        assert_eq!(next_limit(150.0, 2.0, false), 162.0);
        assert_eq!(next_limit(150.0, 13.0, false), 148.0);
        assert_eq!(next_limit(1_000.0, 0.0, false), 1_000.0);
    }

    fn sample(rtt_ms: u64) -> LatencySample {
        LatencySample {
            rtt: Duration::from_millis(rtt_ms),
            in_flight: 100,
            is_drop: false,
            now: Instant::ZERO,
        }
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "whole numbers")]
    fn computes_the_queue_from_the_least_time() {
        let mut vegas = Vegas::new(7);
        vegas.on_sample(&sample(40));
        assert_eq!(vegas.limit(), 20.0, "the first only sets the floor");
        // ceil(20 x (1 - 40 / 60)) = 7 waiting, above 6.
        vegas.on_sample(&sample(60));
        assert_eq!(vegas.limit(), 19.0);
        // ceil(19 x (1 - 40 / 44)) = 2 waiting, below 3.
        vegas.on_sample(&sample(44));
        assert_eq!(vegas.limit(), 20.0);
    }

    #[test]
    fn looks_for_a_new_floor_within_30_times_the_limit() {
        let mut vegas = Vegas::new(7);
        vegas.on_sample(&sample(40));
        // 60 ms hold the limit: ceil(10 x (1 - 40 / 60)) = 4. From 20 it first sinks to 19, 18: ceil(18 / 3) = 6.
        let until = (1..700).find(|_| {
            vegas.on_sample(&sample(60));
            vegas.rtt_noload == Some(Duration::from_millis(60))
        });
        let until = until.unwrap();
        assert!(
            (270..600).contains(&until),
            "18 x 30 x 0.5..1, found {until}"
        );
    }
}
