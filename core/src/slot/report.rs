//! What the leader is told of an upstream, and when.
//!
//! A report may be overwritten before it is read. Counts lose nothing by that, as they only grow; extremes are those of
//! this tick and the one before.

use core::time::Duration;

use super::{PartOfWhole, Slot};
use crate::breaker::BreakerState;
use crate::exchange::{Introduction, Report};
use crate::time::Instant;

/// An upstream that was used this recently is reported to the leader.
const REPORTED_FOR: Duration = Duration::from_secs(5);
/// A leader that has not answered for an upstream in so many ticks is told its name again.
const INTRODUCED_FOR: u8 = 10;

/// The greatest of this tick and the one before, so that a report that is overwritten loses nothing.
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
    /// A request asked for admission when it would make so many in flight in the whole proxy.
    pub(crate) fn see_load(&mut self, load: u32) {
        self.peak.see(load);
        let met = i64::from(load) - 1 - i64::from(self.held());
        self.others.see(i32::try_from(met).unwrap_or(i32::MAX));
    }

    pub(crate) fn see_retry_after(&mut self, wait: Duration) {
        self.retry_after_ms
            .see(u32::try_from(wait.as_millis()).unwrap_or(u32::MAX));
    }

    /// The leader that is followed has answered for it.
    pub(crate) const fn mark_introduced(&mut self) {
        self.introduced = INTRODUCED_FOR;
    }

    /// Another leader may not know it.
    pub(crate) const fn mark_unknown(&mut self) {
        self.introduced = 0;
    }

    /// What the leader needs to be told besides the report.
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
        self.refused_share = PartOfWhole::default();
    }

    /// What the leader needs to know. `packed` is room for the counts.
    pub(crate) fn report<'a>(&mut self, packed: &'a mut Vec<u8>, now: Instant) -> Report<'a> {
        self.integrate(now);
        let overdue = self.waiting.at_least(self.hang_after, now);
        let overdue = overdue.saturating_add(self.given_up.since(self.hang_after, now));
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
            endpoints: self.endpoints,
            retry_after_ms: self.retry_after_ms.value(),
            trip: self.gate.trip(),
            counts: &[],
        };
        report.with_counts(&self.tally, packed)
    }

    /// Until when the leader hears of it if nobody asks for it any more.
    pub(crate) fn reported_until(&self) -> Instant {
        self.last_used + REPORTED_FOR
    }

    /// Whether the leader should hear of it.
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
