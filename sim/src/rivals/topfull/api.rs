//! One API at the entry: what asked in the last second, how it ended, and the admitted rate.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_core::Instant;

use crate::number;

/// Lowest limit of an API, in requests a second.
const MIN_RATE: f64 = 10.0;
/// Greatest share of failures at which an API counts as well.
const FAILURES: f64 = 0.1;
/// A rate grows to at most this multiple of what is asked for.
const MARGIN: f64 = 1.1;
/// The latency that is compared with the objective.
const QUANTILE: f64 = 0.95;

/// One API.
#[derive(Debug)]
pub(super) struct EntryApi {
    passes: BTreeSet<usize>,
    now: ApiSecond,
    last: ApiSecond,
    limit: Option<RateBucket>,
}

/// What happened in one second.
#[derive(Debug, Default)]
struct ApiSecond {
    asked: u32,
    succeeded: u32,
    latencies: Vec<Duration>,
}

/// A token bucket: a rate, and the requests that are left of it.
#[derive(Debug)]
struct RateBucket {
    /// Requests a second; also the most that are left.
    rate: f64,
    left: f64,
    at: Instant,
}

impl RateBucket {
    fn take(&mut self, now: Instant) -> bool {
        let gained = now.saturating_since(self.at).as_secs_f64() * self.rate;
        self.left = (self.left + gained).min(self.rate);
        self.at = now;
        let is_enough = self.left >= 1.0;
        if is_enough {
            self.left -= 1.0;
        }
        is_enough
    }
}

impl EntryApi {
    /// An API that passes these services and is not limited.
    pub(super) fn new(passes: BTreeSet<usize>) -> Self {
        Self {
            passes,
            now: ApiSecond::default(),
            last: ApiSecond::default(),
            limit: None,
        }
    }

    pub(super) fn passes(&self, service: usize) -> bool {
        self.passes.contains(&service)
    }

    /// Counts a request; returns whether it is admitted.
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        self.now.asked += 1;
        self.limit.as_mut().is_none_or(|limit| limit.take(now))
    }

    /// Counts the end of an admitted request.
    pub(super) fn complete(&mut self, latency: Duration, is_success: bool) {
        self.now.succeeded += u32::from(is_success);
        self.now.latencies.push(latency);
    }

    /// Ends a second.
    pub(super) fn roll(&mut self) {
        self.last = std::mem::take(&mut self.now);
        self.last.latencies.sort_unstable();
    }

    /// Requests in the last second.
    pub(super) fn asked(&self) -> f64 {
        f64::from(self.last.asked)
    }

    /// Successes in the last second.
    pub(super) fn succeeded(&self) -> f64 {
        f64::from(self.last.succeeded)
    }

    /// The latency of the last second that is compared with the objective; zero where nothing has ended.
    pub(super) fn latency(&self) -> Duration {
        let count = number::float_len(self.last.latencies.len());
        let index = number::floor(count * QUANTILE);
        let latency = self.last.latencies.get(index);
        latency.copied().unwrap_or_default()
    }

    /// The admitted rate; without a limit, what is asked for.
    pub(super) fn rate(&self) -> f64 {
        self.limit
            .as_ref()
            .map_or_else(|| self.asked(), |limit| limit.rate)
    }

    /// Whether it needs no limit any more.
    pub(super) fn is_well(&self) -> bool {
        let failed = self.asked() - self.succeeded();
        self.asked() <= 0.0 || (failed <= FAILURES * self.asked() && self.rate() >= self.asked())
    }

    /// Limits the API to what is asked for, if it is not limited yet.
    pub(super) fn begin_limit(&mut self, now: Instant) {
        if self.limit.is_none() {
            let rate = self.asked().max(MIN_RATE);
            self.limit = Some(RateBucket {
                rate,
                left: rate,
                at: now,
            });
        }
    }

    pub(super) fn end_limit(&mut self) {
        self.limit = None;
    }

    /// Changes the rate by up to `by`; returns how much of it has no room.
    pub(super) fn change(&mut self, by: f64, now: Instant) -> f64 {
        let most = self.asked() * MARGIN;
        let Some(limit) = &mut self.limit else {
            return by;
        };
        // Fill the bucket at the old rate before the rate changes.
        let gained = now.saturating_since(limit.at).as_secs_f64() * limit.rate;
        limit.left = (limit.left + gained).min(limit.rate);
        limit.at = now;
        let before = limit.rate;
        let wanted = before + by;
        let rate = if by > 0.0 {
            wanted.min(most.max(before))
        } else {
            wanted
        };
        limit.rate = rate.max(MIN_RATE);
        wanted - limit.rate
    }
}
