//! AIMD: one more as long as nothing is lost, a tenth less when something is.
//!
//! Loss is the only signal; a request that takes longer than the timeout counts as lost. Latency below the timeout is
//! ignored, so that a service that queues instead of failing is noticed only when callers go away.
//!
//! Formula: after a loss `limit = max(1, min(limit - 1, floor(limit x 0.9)))`; else, when at least half of the
//! limit was in flight, `limit + 1`; clamped to 20..=200.
//!
//! Source: Netflix concurrency-limits, `AIMDLimit` (initial and least limit 20, greatest 200, backoff ratio 0.9,
//! timeout 5 s), <https://github.com/Netflix/concurrency-limits>.

use std::time::Duration;

use super::limiter::{LatencySample, LimitAlgorithm, LimitContender};
use crate::contender::Made;
use crate::kind::{ContenderKind, Make};
use crate::scenario::Scenario;

pub(super) const KIND: ContenderKind = ContenderKind {
    name: "aimd",
    title: "AIMD (Netflix AIMDLimit)",
    make: Make::Published(make),
};

const MIN_LIMIT: f64 = 20.0;
const MAX_LIMIT: f64 = 200.0;
const BACKOFF: f64 = 0.9;
const TIMEOUT: Duration = Duration::from_secs(5);

fn make(scenario: &Scenario, _seed: u64) -> Made {
    let limits = scenario.upstreams.iter().map(|_| Aimd::new()).collect();
    Ok(Box::new(LimitContender::new(limits)))
}

/// The algorithm.
struct Aimd {
    limit: f64,
}

impl Aimd {
    const fn new() -> Self {
        Self { limit: MIN_LIMIT }
    }
}

impl LimitAlgorithm for Aimd {
    fn limit(&self) -> f64 {
        self.limit
    }

    fn on_sample(&mut self, sample: &LatencySample) {
        let limit = if sample.is_drop || sample.rtt > TIMEOUT {
            (self.limit - 1.0).min((self.limit * BACKOFF).floor())
        } else if f64::from(sample.in_flight) * 2.0 >= self.limit {
            self.limit + 1.0
        } else {
            self.limit
        };
        self.limit = limit.clamp(MIN_LIMIT, MAX_LIMIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::Instant;

    fn after(limit: f64, in_flight: u32, rtt_ms: u64, is_drop: bool) -> f64 {
        let mut aimd = Aimd { limit };
        aimd.on_sample(&LatencySample {
            rtt: Duration::from_millis(rtt_ms),
            in_flight,
            is_drop,
            now: Instant::ZERO,
        });
        aimd.limit()
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "whole numbers")]
    fn moves_as_published() {
        assert_eq!(after(50.0, 25, 40, false), 51.0);
        assert_eq!(
            after(50.0, 24, 40, false),
            50.0,
            "too few in flight to learn from"
        );
        assert_eq!(after(50.0, 50, 40, true), 45.0);
        assert_eq!(
            after(50.0, 50, 5_001, false),
            45.0,
            "beyond the timeout is a loss"
        );
        assert_eq!(
            after(21.0, 21, 40, true),
            20.0,
            "18 is below the least limit"
        );
        assert_eq!(after(200.0, 200, 40, false), 200.0);
    }
}
