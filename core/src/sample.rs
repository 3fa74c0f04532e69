//! One interval of one upstream, as all workers together saw it.

use core::time::Duration;

use crate::loads::Loads;
use crate::on_demand::{Blank as _, OnDemand};
use crate::tally::{Count, Tally};
use crate::time::Instant;

/// What happened between two rounds of the control laws.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// How long the interval was; never zero.
    pub(crate) span: Duration,
    /// What was counted in it.
    pub(crate) tally: OnDemand<Tally>,
    /// In flight at its end.
    pub(crate) in_flight: u32,
    /// Uploads under way that may soon be in flight.
    pub(crate) uploading: u32,
    /// Of those in flight, waiting far beyond the latency target.
    pub(crate) overdue: u32,
    /// The most in flight that an arrival met.
    pub(crate) peak: u32,
    /// When an answer last came.
    pub(crate) last_response: Instant,
    /// Endpoints behind the upstream, 0 when unknown.
    pub(crate) endpoints: u32,
    /// The longest Retry-After.
    pub(crate) retry_after: Duration,
    /// Workers that serve this upstream.
    pub(crate) workers: u16,
}

impl Sample {
    /// An interval of `span` in which nothing happened yet.
    pub(crate) fn empty(span: Duration) -> Self {
        Self {
            span: span.max(Duration::from_micros(1)),
            tally: OnDemand::default(),
            in_flight: 0,
            uploading: 0,
            overdue: 0,
            peak: 0,
            last_response: Instant::ZERO,
            endpoints: 0,
            retry_after: Duration::ZERO,
            workers: 0,
        }
    }

    /// Starts an interval of `span` in which nothing happened yet. The room for counts is kept.
    pub(crate) fn clear(&mut self, span: Duration) {
        let mut tally = core::mem::take(&mut self.tally);
        tally.clear();
        *self = Self {
            tally,
            ..Self::empty(span)
        };
    }

    /// Starts an interval of `span`, where nothing was told but the last response and the endpoints.
    pub(crate) fn restart(&mut self, span: Duration) {
        self.span = span.max(Duration::from_micros(1));
        self.last_response = Instant::ZERO;
        self.endpoints = 0;
    }

    /// A count as a number to calculate with.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of one interval stay far below 2^53"
    )]
    pub(crate) fn count(&self, count: Count) -> f64 {
        self.tally.get(count) as f64
    }

    /// Answers a second whose latency was measured and that were no failures, client errors among them: Little's law
    /// needs all that were in flight.
    pub(crate) fn throughput(&self) -> f64 {
        self.count(Count::Answers) / self.span.as_secs_f64()
    }

    /// Their exact mean latency, seconds; `None` without any.
    pub(crate) fn mean_latency(&self) -> Option<f64> {
        let answers = self.count(Count::Answers);
        (answers > 0.0).then(|| self.count(Count::LatencyMicros) / 1e6 / answers)
    }

    /// How long the requests of stale answers waited on average; `None` without any.
    pub(crate) fn stale_wait(&self) -> Option<Duration> {
        let micros = self.tally.get(Count::StaleMicros);
        let mean = micros.checked_div(self.tally.get(Count::StaleAnswers));
        mean.map(Duration::from_micros)
    }

    /// Mean in-flight over the interval.
    pub(crate) fn mean_in_flight(&self) -> f64 {
        self.count(Count::InFlightMicros) / (self.span.as_secs_f64() * 1e6)
    }

    /// Successes, less those that failed after their headers.
    pub(crate) fn successes(&self) -> f64 {
        (self.count(Count::Successes) - self.count(Count::Retracted)).max(0.0)
    }

    /// The loads at which requests that succeeded were admitted.
    pub(crate) fn success_loads(&self) -> Loads {
        let n = self.successes();
        // The loads of those that were taken back are among the others.
        let kept = n / self.count(Count::Successes).max(1.0);
        Loads {
            n,
            sum: self.count(Count::SuccessLoad) * kept,
            squares: self.count(Count::SuccessLoadSquares) * kept,
        }
    }

    /// The loads at which requests that failed, or were answered "too busy", were admitted.
    pub(crate) fn failure_loads(&self) -> Loads {
        Loads {
            n: self.count(Count::Failures) + self.count(Count::Overloads),
            sum: self.count(Count::FailureLoad),
            squares: self.count(Count::FailureLoadSquares),
        }
    }

    /// Joins the interval that followed this one.
    pub(crate) fn extend(&mut self, later: &Self) {
        self.span += later.span;
        // That of an upstream at rest takes no room.
        if !later.tally.is_blank() {
            self.tally.merge(&later.tally);
        }
        self.in_flight = later.in_flight;
        self.uploading = later.uploading;
        self.overdue = later.overdue;
        self.peak = self.peak.max(later.peak);
        self.last_response = self.last_response.max(later.last_response);
        self.endpoints = later.endpoints;
        self.retry_after = self.retry_after.max(later.retry_after);
        self.workers = self.workers.max(later.workers);
    }
}
