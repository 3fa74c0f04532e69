//! One API at the entry: what asked in the last second, how it ended, and the admitted rate.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_core::Instant;

use crate::number;

/// No API is limited to less, in requests a second.
const MIN_RATE: f64 = 10.0;
/// Share of failures at which an API still counts as well.
const FAILURES: f64 = 0.1;
/// A rate is at most so many times what is asked for.
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

/// A rate, and what is left of the last second's.
#[derive(Debug)]
struct RateBucket {
    /// Requests a second, and the most that are left.
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
    /// Passes these services, and is not limited.
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

    /// A request asks.
    pub(super) fn admit(&mut self, now: Instant) -> bool {
        self.now.asked += 1;
        self.limit.as_mut().is_none_or(|limit| limit.take(now))
    }

    /// A request that was admitted has ended.
    pub(super) fn complete(&mut self, latency: Duration, is_success: bool) {
        self.now.succeeded += u32::from(is_success);
        self.now.latencies.push(latency);
    }

    /// A second is over.
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

    /// It is limited to what is asked for, if it is not limited yet.
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
        // What has gathered so far has gathered at the rate so far.
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
