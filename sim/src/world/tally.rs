//! The record of a run of which no request is kept: counts and latencies by tenths of a second, levels at their ends, and
//! what each caller sent and got in each second.

use std::time::Duration;

use tidegate_core::{BreakerPhase, Histogram, Instant, ShedReason};

use super::clock::{SAMPLE_EVERY, START};

use crate::contender::ContenderView;
use crate::number;
use crate::record::Answer;
use crate::scenario::Scenario;
use crate::series::SeriesSample;

/// Length of a bin in seconds: that of a sample.
pub(crate) const BIN_S: f64 = 0.1;
/// Bins in a second.
pub(crate) const BINS_PER_SECOND: usize = 10;

/// The record.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunTally {
    pub(crate) bins: Vec<Bin>,
    /// By second, then by caller.
    pub(crate) shares: Vec<Vec<Share>>,
    /// How often a breaker opened.
    pub(crate) trips: u64,
    /// Attempts that had reached the upstreams by the last sample.
    received: u64,
}

/// A tenth of a second.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bin {
    pub(crate) counts: BinCounts,
    /// Of answers 200, as their callers saw them.
    pub(crate) latency: Histogram,
    pub(crate) levels: Levels,
}

/// What happened in it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BinCounts {
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
    pub(crate) shed_by_limit: u64,
    pub(crate) shed_by_breaker: u64,
    /// Answers 200 within the objective's latency.
    pub(crate) good: u64,
    pub(crate) late: u64,
    pub(crate) failed: u64,
    pub(crate) gave_up: u64,
    pub(crate) received: u64,
}

/// The levels at its end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Levels {
    /// Requests that proxies hold.
    pub(crate) held: u64,
    /// Requests in slots, and in lines before them.
    pub(crate) in_service: u64,
    pub(crate) waiting: u64,
    /// Sum of the proxies' limits; looked at once a second.
    pub(crate) limit: u64,
    /// Proxies whose breaker is not closed; likewise.
    pub(crate) not_closed: u64,
}

/// What one caller sent and got.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share {
    pub(crate) offered: u32,
    pub(crate) admitted: u32,
}

impl RunTally {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let bins = scenario.duration.as_nanos() / SAMPLE_EVERY.as_nanos();
        let bins = usize::try_from(bins).unwrap_or(usize::MAX);
        let callers = scenario.callers.map_or(1, |callers| callers.count);
        let callers = usize::try_from(callers).unwrap_or(usize::MAX);
        Self {
            bins: vec![Bin::default(); bins],
            shares: vec![vec![Share::default(); callers]; bins.div_ceil(BINS_PER_SECOND)],
            ..Self::default()
        }
    }

    /// A request asks its proxy.
    pub(super) fn ask(&mut self, now: Instant, caller: usize) {
        self.count(now, |counts| counts.offered += 1);
        if let Some(share) = self.share(now, caller) {
            share.offered += 1;
        }
    }

    pub(super) fn admit(&mut self, now: Instant, caller: usize) {
        self.count(now, |counts| counts.admitted += 1);
        if let Some(share) = self.share(now, caller) {
            share.admitted += 1;
        }
    }

    pub(super) fn shed(&mut self, now: Instant, reason: &str) {
        let by_breaker = [ShedReason::BreakerOpen, ShedReason::BreakerHalfOpen];
        if by_breaker.iter().any(|breaker| breaker.as_str() == reason) {
            self.count(now, |counts| counts.shed_by_breaker += 1);
        } else {
            self.count(now, |counts| counts.shed_by_limit += 1);
        }
    }

    /// A caller's request ends.
    pub(super) fn conclude(
        &mut self,
        now: Instant,
        answer: &Answer,
        latency: Duration,
        is_good: bool,
    ) {
        let Some(bin) = self.bins.get_mut(bin_at(now)) else {
            return;
        };
        match answer {
            Answer::Ok => {
                bin.latency.record(latency);
                if is_good {
                    bin.counts.good += 1;
                } else {
                    bin.counts.late += 1;
                }
            }
            Answer::Failed(_) | Answer::Broken => bin.counts.failed += 1,
            Answer::GaveUp => bin.counts.gave_up += 1,
            // Counted when it was shed.
            Answer::Shed(_) => {}
        }
    }

    /// Closes the bin that ends with a sample. `views` of the proxies are taken only at the end of a second.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        sample: &SeriesSample,
        views: impl Iterator<Item = ContenderView>,
    ) {
        let received = sample.received - std::mem::replace(&mut self.received, sample.received);
        let Some(index) = bin_at(now).checked_sub(1) else {
            return;
        };
        let Some(bin) = self.bins.get_mut(index) else {
            return;
        };
        bin.counts.received = received;
        bin.levels = Levels {
            held: sample.in_flight.unwrap_or(0),
            in_service: sample.in_service,
            waiting: sample.waiting,
            ..Levels::default()
        };
        if (index + 1).is_multiple_of(BINS_PER_SECOND) {
            for view in views {
                let limit = number::floor(view.limit.unwrap_or(0.0));
                bin.levels.limit += u64::try_from(limit).unwrap_or(u64::MAX);
                let breaker = view.breaker.unwrap_or(BreakerPhase::Closed);
                bin.levels.not_closed += u64::from(breaker != BreakerPhase::Closed);
            }
        }
    }

    fn count(&mut self, now: Instant, count: impl FnOnce(&mut BinCounts)) {
        if let Some(bin) = self.bins.get_mut(bin_at(now)) {
            count(&mut bin.counts);
        }
    }

    fn share(&mut self, now: Instant, caller: usize) -> Option<&mut Share> {
        let second = self.shares.get_mut(bin_at(now) / BINS_PER_SECOND)?;
        second.get_mut(caller)
    }
}

impl Share {
    /// The share of its requests that was admitted.
    pub(crate) fn served(&self) -> f64 {
        f64::from(self.admitted) / f64::from(self.offered.max(1))
    }
}

impl BinCounts {
    /// Adds those of another bin.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.admitted += other.admitted;
        self.shed_by_limit += other.shed_by_limit;
        self.shed_by_breaker += other.shed_by_breaker;
        self.good += other.good;
        self.late += other.late;
        self.failed += other.failed;
        self.gave_up += other.gave_up;
        self.received += other.received;
    }
}

/// The bin of a time.
fn bin_at(now: Instant) -> usize {
    let since = now.saturating_since(START).as_nanos() / SAMPLE_EVERY.as_nanos();
    usize::try_from(since).unwrap_or(usize::MAX)
}
