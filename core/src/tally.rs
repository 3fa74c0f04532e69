//! What one worker counted for one upstream since its VM began.
//!
//! Every count only grows (and wraps). A reader takes the difference to what it saw last, so a report that is
//! overwritten before anybody read it loses nothing, and reading twice counts once.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::level::Level;
use crate::shed::ShedReason;

/// One growing count. The order is part of the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Count {
    /// Requests that asked for admission.
    Arrivals,
    /// Requests let in.
    Admitted,
    /// Successful answers.
    Successes,
    /// Failures.
    Failures,
    /// Overload signals.
    Overloads,
    /// Outcomes that say nothing.
    Ignored,
    /// Callers that went away.
    Cancelled,
    /// Outcomes of requests admitted before the breaker's last transition.
    Stale,
    /// Answers, or waits of callers who gave up, beyond the SLO's latency target.
    Slow,
    /// Sum of in-flight over time, request-microseconds.
    InFlightMicros,
    /// Sum of the load at admission of successful requests.
    SuccessLoad,
    /// Sum of the load at admission of failed requests and overload signals.
    FailureLoad,
    /// Sum of the squares of `FailureLoad`'s terms.
    FailureLoadSquares,
    /// Sum of the squares of `SuccessLoad`'s terms.
    SuccessLoadSquares,
    /// Probes let in.
    ProbesSent,
    /// Probes answered well.
    ProbeSuccesses,
    /// Probes that failed.
    ProbeFailures,
    /// Requests of health checkers, let in whatever the state.
    Exempt,
    /// Requests admitted only because the cap on the share shed was reached.
    Spared,
}

const COUNTS: usize = 19;
const REASONS: usize = ShedReason::ALL.len();

/// Counts, demand by level, sheds by reason and latencies of one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    counts: [u64; COUNTS],
    demand: [u64; Level::COUNT],
    shed: [u64; REASONS],
    would_shed: [u64; REASONS],
    /// Time to the response headers of answers that were no failures.
    pub latency: Histogram,
}

impl Tally {
    /// The value of one count.
    #[must_use]
    pub fn get(&self, count: Count) -> u64 {
        self.counts.get(count as usize).copied().unwrap_or_default()
    }

    /// Arrivals of one level, of those whose level had to be asked for.
    #[must_use]
    pub fn demand(&self, level: Level) -> u64 {
        self.demand.get(level.index()).copied().unwrap_or_default()
    }

    /// Requests shed for `reason`.
    #[must_use]
    pub fn shed(&self, reason: ShedReason) -> u64 {
        self.shed.get(reason as usize).copied().unwrap_or_default()
    }

    /// Requests that would have been shed for `reason`, were it enforced.
    #[must_use]
    pub fn would_shed(&self, reason: ShedReason) -> u64 {
        self.would_shed
            .get(reason as usize)
            .copied()
            .unwrap_or_default()
    }

    /// All requests shed.
    #[must_use]
    pub fn shed_total(&self) -> u64 {
        self.shed.iter().fold(0, |sum, n| sum.wrapping_add(*n))
    }

    /// All requests shed or that would have been for want of room (not by the breaker).
    #[must_use]
    pub fn refused_for_load(&self) -> u64 {
        [
            ShedReason::Limit,
            ShedReason::Criticality,
            ShedReason::Retry,
        ]
        .into_iter()
        .fold(0, |sum, reason| {
            sum.wrapping_add(self.shed(reason))
                .wrapping_add(self.would_shed(reason))
        })
    }

    pub(crate) fn add(&mut self, count: Count, n: u64) {
        if let Some(value) = self.counts.get_mut(count as usize) {
            *value = value.wrapping_add(n);
        }
    }

    /// Adds one request's load at admission, and its square.
    pub(crate) fn add_load(&mut self, sum: Count, squares: Count, load: u32) {
        let load = u64::from(load);
        self.add(sum, load);
        self.add(squares, load.wrapping_mul(load));
    }

    pub(crate) fn add_demand(&mut self, level: Level) {
        if let Some(value) = self.demand.get_mut(level.index()) {
            *value = value.wrapping_add(1);
        }
    }

    pub(crate) fn add_shed(&mut self, reason: ShedReason, enforced: bool) {
        let counts = if enforced {
            &mut self.shed
        } else {
            &mut self.would_shed
        };
        if let Some(value) = counts.get_mut(reason as usize) {
            *value = value.wrapping_add(1);
        }
    }

    pub(crate) fn add_latency(&mut self, latency: Duration) {
        self.latency.record(latency);
    }

    /// What came since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        difference.combine(earlier, u64::wrapping_sub);
        difference.latency = self.latency.since(&earlier.latency);
        difference
    }

    /// Adds what another worker counted. Sums commute: the order of workers does not matter.
    pub fn merge(&mut self, other: &Self) {
        self.combine(other, u64::wrapping_add);
        self.latency.merge(&other.latency);
    }

    fn combine(&mut self, other: &Self, operation: impl Fn(u64, u64) -> u64) {
        let pairs = [
            (self.counts.as_mut_slice(), other.counts.as_slice()),
            (self.demand.as_mut_slice(), other.demand.as_slice()),
            (self.shed.as_mut_slice(), other.shed.as_slice()),
            (self.would_shed.as_mut_slice(), other.would_shed.as_slice()),
        ];
        for (mine, theirs) in pairs {
            for (value, n) in mine.iter_mut().zip(theirs) {
                *value = operation(*value, *n);
            }
        }
    }
}
