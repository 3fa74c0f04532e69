//! Merges the reports of an upstream's workers into one sample for the laws.

use core::time::Duration;

use super::Controller;
use crate::breaker::LocalTrip;
use crate::exchange::Report;
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;

/// Counts that began less than this before their first report count in full.
const YOUNG: Duration = Duration::from_secs(1);

/// What reports say that holds until the next one.
#[derive(Clone, Copy, Debug)]
pub(in crate::leader) struct LastSaid {
    last_response: Instant,
    endpoints: u32,
}

impl LastSaid {
    pub(in crate::leader) const NOTHING: Self = Self {
        last_response: Instant::ZERO,
        endpoints: 0,
    };

    pub(in crate::leader) fn and(self, other: Self) -> Self {
        Self {
            last_response: self.last_response.max(other.last_response),
            endpoints: self.endpoints.max(other.endpoints),
        }
    }

    pub(in crate::leader) fn tell(self, sample: &mut Sample) {
        sample.last_response = sample.last_response.max(self.last_response);
        sample.endpoints = sample.endpoints.max(self.endpoints);
    }
}

/// The requests that the live workers have under way with one upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestsUnderWay {
    /// Requests in flight, and uploads that may soon be.
    pub in_flight: u64,
    /// Requests that have not ended and do not count as load.
    pub open: u64,
    /// The fewest requests of other workers in flight that an arrival met, by the shared count; below zero if that count is
    /// too low, `None` if no request came.
    pub others: Option<i32>,
}

impl RequestsUnderWay {
    /// Requests that have not ended.
    pub(super) fn unended(&self) -> u32 {
        u32::try_from(self.in_flight.saturating_add(self.open)).unwrap_or(u32::MAX)
    }
}

/// One upstream's merged reports of a round.
pub(crate) struct MergedReports {
    pub(in crate::leader) sample: Sample,
    pub(super) trips: Vec<LocalTrip>,
    pub(in crate::leader) under_way: RequestsUnderWay,
    /// The latest admission among the requests that were answered.
    pub(super) answered_up_to: Instant,
    /// Whether any report came. Without one, there is nothing but what resting workers [said last](LastSaid).
    has_reports: bool,
}

impl MergedReports {
    /// Nothing yet.
    pub(crate) fn empty() -> Self {
        Self {
            sample: Sample::empty(Duration::ZERO),
            trips: Vec::new(),
            under_way: RequestsUnderWay::default(),
            answered_up_to: Instant::ZERO,
            has_reports: false,
        }
    }

    /// Forgets all of it: a round of this `span`, without any report yet.
    pub(in crate::leader) fn clear(&mut self, span: Duration) {
        if core::mem::take(&mut self.has_reports) {
            self.sample.clear(span);
            self.trips.clear();
            self.under_way = RequestsUnderWay::default();
            self.answered_up_to = Instant::ZERO;
        } else {
            self.sample.restart(span);
        }
    }

    #[cfg(test)]
    pub(crate) fn arrivals(&self) -> u64 {
        self.sample.tally.get(Count::Arrivals)
    }

    /// Whether requests have not ended that do not count as load.
    pub(crate) const fn has_open(&self) -> bool {
        self.under_way.open > 0
    }

    /// Whether any worker had a request for the upstream.
    pub(crate) fn is_active(&self) -> bool {
        self.sample.tally.get(Count::Arrivals) > 0 || self.sample.in_flight > 0
    }
}

/// The last report of one worker.
#[derive(Debug)]
pub(in crate::leader) struct WorkerRecord {
    pub(in crate::leader) worker: u64,
    began: Instant,
    /// The sequence of the last trip that was reported; 0 before the first.
    trip: u32,
    endpoints: u32,
    /// The counts, packed.
    counts: Box<[u8]>,
    last_response: Instant,
}

impl Controller {
    pub(in crate::leader) fn record(
        &mut self,
        worker: u64,
        at: Instant,
        report: &Report<'_>,
        round: &mut MergedReports,
    ) {
        let place = self.seen.iter().position(|seen| seen.worker == worker);
        // An upstream that left the worker's registry and came back counts from zero.
        let seen = place
            .and_then(|place| self.seen.get(place))
            .filter(|seen| seen.began == report.began);
        let is_young = at.saturating_since(report.began) < YOUNG;
        round.has_reports = true;
        let sample = &mut round.sample;
        let arrivals = sample.tally.get(Count::Arrivals);
        match seen {
            Some(seen) => report.add_news(&mut sample.tally, &seen.counts),
            None if is_young => report.add_news(&mut sample.tally, &[]),
            None => {}
        }
        if let Some(trip) = report.trip {
            let is_heard = match seen {
                Some(seen) => seen.trip == trip.sequence,
                // An old trip was for the leader before.
                None => !is_young && trip.epoch != self.judge.epoch(),
            };
            if !is_heard {
                round.trips.push(trip);
            }
        }
        if sample.tally.get(Count::Arrivals) != arrivals || report.in_flight > 0 {
            sample.workers = sample.workers.saturating_add(1);
        }
        sample.in_flight = sample.in_flight.saturating_add(report.in_flight);
        sample.overdue = sample.overdue.saturating_add(report.overdue);
        sample.peak = sample.peak.max(report.peak);
        sample.last_response = sample.last_response.max(report.last_response);
        sample.endpoints = sample.endpoints.max(report.endpoints);
        sample.retry_after = sample
            .retry_after
            .max(Duration::from_millis(u64::from(report.retry_after_ms)));
        sample.uploading = sample.uploading.saturating_add(report.uploading);
        round.under_way.in_flight += u64::from(report.in_flight) + u64::from(report.uploading);
        round.under_way.open += u64::from(report.open);
        round.answered_up_to = round.answered_up_to.max(report.answered_up_to);
        let others = [round.under_way.others, report.others];
        round.under_way.others = others.into_iter().flatten().min();
        self.remember(place, worker, report);
    }

    /// What a worker said last that still holds while it has nothing to report.
    #[cold]
    pub(in crate::leader) fn last_said(&self, worker: u64) -> LastSaid {
        let seen = self.seen.iter().find(|seen| seen.worker == worker);
        seen.map_or(LastSaid::NOTHING, |seen| LastSaid {
            last_response: seen.last_response,
            endpoints: seen.endpoints,
        })
    }

    fn remember(&mut self, place: Option<usize>, worker: u64, report: &Report<'_>) {
        let trip = report.trip.map_or(0, |trip| trip.sequence);
        match place.and_then(|place| self.seen.get_mut(place)) {
            Some(seen) => {
                (seen.began, seen.trip) = (report.began, trip);
                (seen.last_response, seen.endpoints) = (report.last_response, report.endpoints);
                if seen.counts.len() == report.counts.len() {
                    seen.counts.copy_from_slice(report.counts);
                } else {
                    seen.counts = report.counts.into();
                }
            }
            None => {
                self.seen.reserve_exact(1);
                self.seen.push(WorkerRecord {
                    worker,
                    began: report.began,
                    trip,
                    endpoints: report.endpoints,
                    counts: report.counts.into(),
                    last_response: report.last_response,
                });
            }
        }
    }
}
