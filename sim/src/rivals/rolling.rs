//! Successes and requests of a trailing window, in buckets of equal length.
//!
//! Envoy's admission control, Hystrix and Linkerd's breaker all judge such a window. A bucket leaves when its
//! time has passed out of the window, so that the window's true length is between one bucket less and its own.

use std::collections::VecDeque;
use std::time::Duration;

use tidegate_core::Instant;

/// Requests of a window, and how many of them succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OutcomeCounts {
    /// All of them.
    pub(super) requests: u32,
    /// Those that succeeded.
    pub(super) successes: u32,
}

/// A trailing window.
#[derive(Debug, Clone)]
pub(super) struct Rolling {
    length: Duration,
    bucket: Duration,
    buckets: VecDeque<(Instant, OutcomeCounts)>,
    sum: OutcomeCounts,
}

impl Rolling {
    /// A window of `length` in buckets of length `bucket`.
    pub(super) const fn new(length: Duration, bucket: Duration) -> Self {
        Self {
            length,
            bucket,
            buckets: VecDeque::new(),
            sum: OutcomeCounts {
                requests: 0,
                successes: 0,
            },
        }
    }

    /// Counts one request.
    pub(super) fn record(&mut self, is_success: bool, now: Instant) {
        self.purge(now);
        let newest = self.buckets.back().map(|(start, _)| *start);
        if newest.is_none_or(|start| now.saturating_since(start) >= self.bucket) {
            self.buckets.push_back((now, OutcomeCounts::default()));
        }
        let successes = u32::from(is_success);
        if let Some((_, counts)) = self.buckets.back_mut() {
            counts.requests += 1;
            counts.successes += successes;
        }
        self.sum.requests += 1;
        self.sum.successes += successes;
    }

    /// What is in the window.
    pub(super) fn counts(&mut self, now: Instant) -> OutcomeCounts {
        self.purge(now);
        self.sum
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.buckets.clear();
        self.sum = OutcomeCounts::default();
    }

    fn purge(&mut self, now: Instant) {
        while let Some((start, counts)) = self.buckets.front().copied() {
            if now.saturating_since(start) < self.length {
                return;
            }
            self.buckets.pop_front();
            self.sum.requests -= counts.requests;
            self.sum.successes -= counts.successes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::at;
    use super::*;

    #[test]
    fn a_bucket_leaves_with_its_time() {
        let mut rolling = Rolling::new(Duration::from_secs(10), Duration::from_secs(1));
        rolling.record(true, at(0));
        rolling.record(false, at(999));
        rolling.record(false, at(1_000));
        let counts = |requests, successes| OutcomeCounts {
            requests,
            successes,
        };
        assert_eq!(rolling.counts(at(9_999)), counts(3, 1));
        assert_eq!(
            rolling.counts(at(10_000)),
            counts(1, 0),
            "both of the first second go together"
        );
        assert_eq!(rolling.counts(at(11_000)), counts(0, 0));
    }
}
