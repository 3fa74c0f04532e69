//! Whether what was cut was a queue.
//!
//! By Little's law throughput, latency and what is in flight are bound: where a queue is cut, throughput stays and latency
//! falls with what is in flight; where a slower service is asked for less, latency stays and throughput falls. Both are
//! looked at: a proxy with a small share of the load loses throughput to others whatever it is, yet sees the latency of
//! all of them. Half of the cut, on a logarithmic scale, is the mark; it must be passed by more than chance.

use crate::sample::Sample;

/// Standard errors by which a mark must be passed.
const SURE: f64 = 1.5;
/// Latencies vary by this part of their mean at the least, whatever a histogram shows.
const MIN_VARIATION: f64 = 0.2;
/// Throughput that is greater by less than this share is the same.
const MORE: f64 = 0.05;

/// What was measured at one limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Mean requests in flight.
    pub(super) in_flight: f64,
    /// Answers a second.
    pub(super) throughput: f64,
    /// Mean latency, seconds.
    pub(super) latency: f64,
    /// Answers.
    pub(super) answers: f64,
    /// Standard deviation of the latencies by their mean.
    pub(super) variation: f64,
}

impl Point {
    /// None where nothing was answered or in flight.
    pub(super) fn of(measured: &Sample) -> Option<Self> {
        let latency = measured.mean_latency().filter(|latency| *latency > 0.0)?;
        let in_flight = measured.mean_in_flight();
        let throughput = measured.throughput();
        (in_flight > 0.0).then(|| Self {
            in_flight,
            throughput,
            latency,
            answers: throughput * measured.span.as_secs_f64(),
            variation: measured.tally.latency.variation().unwrap_or(1.0),
        })
    }
}

impl Point {
    /// Whether more was carried than at another point, by more than chance.
    pub(super) fn carries_more_than(&self, other: &Self) -> bool {
        let gain = libm::log(self.throughput / other.throughput);
        gain > MORE.max(error(self, other))
    }
}

/// What a cut says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// There was a queue.
    Queue,
    /// There was none.
    Slower,
    /// It may be chance.
    Undecided,
}

/// What the step from one point down to the other says.
pub(super) fn judge(before: &Point, after: &Point) -> Finding {
    let mark = libm::log(after.in_flight / before.in_flight) / 2.0;
    let throughput = libm::log(after.throughput / before.throughput);
    let latency = libm::log(after.latency / before.latency);
    let error = error(before, after);
    let kept = throughput > mark + error;
    let fell = latency < mark - error;
    let lost = throughput < mark - error;
    let stayed = latency > mark + error;
    if kept || fell {
        Finding::Queue
    } else if lost && stayed {
        Finding::Slower
    } else {
        Finding::Undecided
    }
}

/// What may be chance in the logarithm of a ratio. What is in flight is held by the limit, so that by Little's law
/// throughput is as sure as the mean latency.
fn error(one: &Point, other: &Point) -> f64 {
    let variation = one.variation.max(other.variation).max(MIN_VARIATION);
    SURE * variation * (1.0 / one.answers + 1.0 / other.answers).sqrt()
}
