//! Samples gathered into windows before a limit algorithm sees them.
//!
//! Gradient algorithms compare averages, not single requests: Netflix wraps them so that they see one sample a
//! window, with the window's mean time, its greatest in-flight count, and whether anything was lost in it.
//!
//! Source: Netflix concurrency-limits, `WindowedLimit` and `AverageSampleWindowFactory`,
//! <https://github.com/Netflix/concurrency-limits>. Defaults: windows of 1 s (both `minWindowTime` and
//! `maxWindowTime`), at least 10 samples, and none below 100 microseconds.

use std::time::Duration;

use tidegate_core::Instant;

use super::limiter::{LatencySample, LimitAlgorithm};
use crate::number;

/// Length of a window.
const WINDOW: Duration = Duration::from_secs(1);
/// A window of fewer samples is thrown away.
const MIN_SAMPLES: u32 = 10;
/// A faster answer says nothing about the service.
const MIN_RTT: Duration = Duration::from_micros(100);

/// A limit algorithm that sees windows instead of single requests.
pub(super) struct Windowed<L> {
    inner: L,
    next_update: Instant,
    sum: Duration,
    count: u32,
    max_in_flight: u32,
    is_drop: bool,
}

impl<L: LimitAlgorithm> Windowed<L> {
    /// Windows in front of `inner`.
    pub(super) const fn new(inner: L) -> Self {
        Self {
            inner,
            next_update: Instant::ZERO,
            sum: Duration::ZERO,
            count: 0,
            max_in_flight: 0,
            is_drop: false,
        }
    }
}

impl<L: LimitAlgorithm> LimitAlgorithm for Windowed<L> {
    fn limit(&self) -> f64 {
        self.inner.limit()
    }

    fn on_sample(&mut self, sample: &LatencySample) {
        if sample.rtt < MIN_RTT {
            return;
        }
        self.sum += sample.rtt;
        self.count += 1;
        self.max_in_flight = self.max_in_flight.max(sample.in_flight);
        self.is_drop |= sample.is_drop;
        if sample.now <= self.next_update {
            return;
        }
        self.next_update = sample.now + WINDOW;
        if self.count >= MIN_SAMPLES {
            self.inner.on_sample(&LatencySample {
                rtt: number::seconds(self.sum.as_secs_f64() / f64::from(self.count)),
                in_flight: self.max_in_flight,
                is_drop: self.is_drop,
                now: sample.now,
            });
        }
        (self.sum, self.count) = (Duration::ZERO, 0);
        (self.max_in_flight, self.is_drop) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Spy(Vec<LatencySample>);

    impl LimitAlgorithm for Spy {
        fn limit(&self) -> f64 {
            1.0
        }

        fn on_sample(&mut self, sample: &LatencySample) {
            self.0.push(*sample);
        }
    }

    fn sample(at_ms: u64, rtt_ms: u64, in_flight: u32) -> LatencySample {
        LatencySample {
            rtt: Duration::from_millis(rtt_ms),
            in_flight,
            is_drop: false,
            now: Instant::ZERO + Duration::from_millis(at_ms),
        }
    }

    #[test]
    fn a_window_becomes_one_sample_of_its_mean() {
        let mut windowed = Windowed::new(Spy::default());
        // The first sample ends a window of its own, which is too small to count.
        windowed.on_sample(&sample(1, 999, 50));
        for at in 0..9 {
            windowed.on_sample(&sample(100 * (at + 1), 40, 3));
        }
        windowed.on_sample(&sample(1_002, 50, 7));
        let seen = &windowed.inner.0;
        assert_eq!(seen.len(), 1);
        // (9 x 40 + 50) / 10
        assert_eq!(seen[0].rtt, Duration::from_millis(41));
        assert_eq!(seen[0].in_flight, 7);
    }

    #[test]
    fn answers_faster_than_100_microseconds_are_no_samples() {
        let mut windowed = Windowed::new(Spy::default());
        for at in 0..100 {
            windowed.on_sample(&sample(at * 100, 0, 1));
        }
        assert!(windowed.inner.0.is_empty());
    }
}
