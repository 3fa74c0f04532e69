//! The reports about an upstream to the leader, and when they are sent.
//!
//! A report may be overwritten before it is read. No count is lost by that, because counts only grow. Extremes are those of
//! this tick and the one before.

use core::time::Duration;

use super::Slot;
use crate::breaker::BreakerState;
use crate::exchange::{Introduction, Report};
use crate::time::Instant;

/// An upstream that was used this recently is reported to the leader.
const REPORTED_FOR: Duration = Duration::from_secs(5);
/// If the leader has not decided about an upstream for this many ticks, it gets the name again.
const INTRODUCED_FOR: u8 = 10;

/// The greatest of this tick and the one before, so that an overwritten report loses nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recent {
    this: u32,
    before: u32,
}

/// The fewest of this tick and the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fewest {
    this: Option<i32>,
    before: Option<i32>,
}

impl Slot {
    /// A request asked for admission; with it, `load` would be in flight in the whole proxy.
    pub(crate) fn see_load(&mut self, load: u32) {
        self.peak.see(load);
        let met = i64::from(load) - 1 - i64::from(self.held());
        self.others.see(i32::try_from(met).unwrap_or(i32::MAX));
    }

    pub(crate) fn see_retry_after(&mut self, wait: Duration) {
        self.retry_after_ms
            .see(u32::try_from(wait.as_millis()).unwrap_or(u32::MAX));
    }

    /// The present leader has decided about the upstream.
    pub(crate) const fn mark_introduced(&mut self) {
        self.introduced = INTRODUCED_FOR;
    }

    /// There is a new leader, which may not know the upstream.
    pub(crate) const fn mark_unknown(&mut self) {
        self.introduced = 0;
    }

    /// The upstream's name, if the leader may need it.
    pub(crate) fn introduction(&self) -> Option<Introduction<'_>> {
        let tripped = self.gate.trip().is_some();
        (self.introduced == 0 || tripped).then(|| Introduction {
            cluster: &self.key.cluster,
            route: self.key.route.as_deref(),
            tripped,
        })
    }

    /// The end of a tick.
    pub(crate) fn roll(&mut self) {
        self.introduced = self.introduced.saturating_sub(1);
        self.peak.roll();
        self.others.roll();
        self.retry_after_ms.roll();
    }

    /// The report for the leader. `packed` is the buffer for the counts.
    pub(crate) fn report<'a>(&mut self, packed: &'a mut Vec<u8>, now: Instant) -> Report<'a> {
        self.integrate(now);
        let hang_after = self.hang_after.get();
        let overdue = self.waiting.at_least(hang_after, now);
        let overdue = overdue.saturating_add(self.given_up.since(hang_after, now));
        self.unended_reported = self.unended();
        let report = Report {
            upstream: self.hash,
            began: self.began,
            in_flight: self.in_flight,
            uploading: self.uploading,
            open: self.open,
            overdue,
            peak: self.peak.value(),
            others: self.others.value(),
            last_response: self.last_response,
            answered_up_to: self.answered_up_to,
            endpoints: self.endpoints,
            retry_after_ms: self.retry_after_ms.value(),
            trip: self.gate.trip(),
            counts: &[],
        };
        report.with_counts(&self.tally, packed)
    }

    /// Until when the upstream is reported if no more requests come.
    pub(crate) fn reported_until(&self) -> Instant {
        self.last_used + REPORTED_FOR
    }

    /// Whether the upstream is reported.
    pub(crate) fn is_reported(&self, now: Instant) -> bool {
        !self.is_idle()
            || now.saturating_since(self.last_used) < REPORTED_FOR
            || self.gate.state() != BreakerState::Closed
    }
}

impl Fewest {
    fn see(&mut self, value: i32) {
        self.this = Some(self.this.map_or(value, |fewest| fewest.min(value)));
    }

    const fn roll(&mut self) {
        self.before = self.this.take();
    }

    fn value(self) -> Option<i32> {
        [self.this, self.before].into_iter().flatten().min()
    }
}

impl Recent {
    fn see(&mut self, value: u32) {
        self.this = self.this.max(value);
    }

    const fn roll(&mut self) {
        self.before = self.this;
        self.this = 0;
    }

    fn value(self) -> u32 {
        self.this.max(self.before)
    }
}
