//! A ceiling from failures that load causes.
//!
//! An upstream that refuses when its queue is full, or breaks under load, says where its bound is: failed
//! requests were admitted at higher load than successful ones. "Too busy" answers (429, RESOURCE_EXHAUSTED) say
//! it outright. The ceiling goes just below that load and rises again slowly, as TCP does after a loss; failures
//! that do not depend on load leave it alone, because shedding would not help.

use core::time::Duration;

use crate::breaker::{Loads, is_caused_by_load};
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;

/// Just below the load at which requests failed.
const BELOW_FAILURES: f64 = 0.9;
/// When all that answers says "too busy", no load is known to be right: less.
const BELOW_OVERLOAD: f64 = 0.8;
/// Overload signals below this share of the answers are a few unlucky callers.
const OVERLOAD_SHARE: f64 = 0.02;
/// A cut needs a round trip to show; no second one before.
const SETTLE: Duration = Duration::from_millis(300);
/// After so long without load-caused failures the ceiling rises.
const QUIET: Duration = Duration::from_secs(1);
/// How fast, a second.
const RISE: f64 = 0.1;
/// Evidence is kept for so long.
const MEMORY: Duration = Duration::from_secs(1);

/// The ceiling, while there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ceiling {
    value: Option<f64>,
    cut_at: Instant,
    failed_at: Instant,
    successes: Loads,
    failures: Loads,
    overloads: f64,
    since: Instant,
}

impl Ceiling {
    /// One round. `wanted` is the limit without a ceiling.
    pub(crate) fn update(&mut self, sample: &Sample, wanted: f64, now: Instant) {
        if now.saturating_since(self.since) >= MEMORY {
            self.forget(now);
        }
        self.successes.merge(&sample.success_loads());
        self.failures.merge(&sample.failure_loads());
        self.overloads += sample.count(Count::Overloads);
        let by_load = is_caused_by_load(&self.failures, &self.successes);
        let too_busy = self.overloads > 1.0 + OVERLOAD_SHARE * self.successes.n;
        if by_load || too_busy {
            self.failed_at = now;
            if now.saturating_since(self.cut_at) >= SETTLE || self.value.is_none() {
                let factor = if by_load {
                    BELOW_FAILURES
                } else {
                    BELOW_OVERLOAD
                };
                let load = self.failures.mean() * factor;
                self.value = Some(self.value.map_or(load, |value| load.min(value)).max(1.0));
                self.cut_at = now;
                self.forget(now);
            }
            return;
        }
        if let Some(value) = self.value
            && now.saturating_since(self.failed_at) >= QUIET
        {
            let risen = value + (value * RISE).max(1.0) * sample.span.as_secs_f64();
            self.value = (risen < wanted).then_some(risen);
        }
    }

    /// `limit`, held below the ceiling.
    pub(crate) fn hold(&self, limit: f64) -> f64 {
        self.value.map_or(limit, |value| limit.min(value))
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.value = self.value.map(|value| value * factor);
    }

    fn forget(&mut self, now: Instant) {
        self.successes = Loads::default();
        self.failures = Loads::default();
        self.overloads = 0.0;
        self.since = now;
    }
}
