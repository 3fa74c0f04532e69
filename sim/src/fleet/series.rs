//! A run second by second.

use serde::Serialize;

use crate::number;
use crate::world::tally::{BINS_PER_SECOND, Bin, RunTally, Share};

/// One second of a run; rates are per second, levels those at its end.
#[derive(Debug, Clone, Serialize)]
pub struct FleetPoint {
    /// Its end, from the start of the run.
    pub at_s: f64,
    /// What callers sent.
    pub offered: u64,
    /// What the service could have answered of that.
    pub possible: f64,
    /// What reached the service.
    pub received: u64,
    /// Good answers.
    pub good: u64,
    /// Requests shed by limits.
    pub shed_by_limit: u64,
    /// Requests shed by breakers.
    pub shed_by_breaker: u64,
    /// Answers beyond the objective.
    pub late: u64,
    /// Failed answers.
    pub failed: u64,
    /// Callers that gave up.
    pub gave_up: u64,
    /// 99th percentile of the latency of answers 200.
    pub p99_ms: Option<f64>,
    /// Requests that proxies hold.
    pub held: u64,
    /// Requests in slots.
    pub in_service: u64,
    /// Requests in queues.
    pub waiting: u64,
    /// Sum of the proxies' limits.
    pub limit: u64,
    /// Proxies whose breaker is not closed.
    pub not_closed: u64,
    /// Fairness of admitted rates in this second.
    pub fairness: Option<f64>,
    /// Fairness of the callers' shares served in this second.
    pub served_fairness: Option<f64>,
}

/// All seconds; `possible` is what could have been answered, by bin.
pub(super) fn series(tally: &RunTally, possible: &[f64]) -> Vec<FleetPoint> {
    let bins = tally.bins.chunks(BINS_PER_SECOND);
    let possible = possible.chunks(BINS_PER_SECOND);
    let seconds = bins.zip(possible).zip(&tally.shares).enumerate();
    let points = seconds.map(|(index, ((bins, possible), shares))| {
        let at_s = number::float_len(index + 1);
        FleetPoint::of(at_s, bins, possible, shares)
    });
    points.collect()
}

impl FleetPoint {
    fn of(at_s: f64, bins: &[Bin], possible: &[f64], shares: &[Share]) -> Self {
        let mut second = Bin::default();
        for bin in bins {
            second.counts.add(&bin.counts);
            second.latency.merge(&bin.latency);
            second.levels = bin.levels;
        }
        let asked = || shares.iter().filter(|share| share.offered > 0);
        let Bin {
            counts,
            latency,
            levels,
        } = second;
        Self {
            at_s,
            offered: counts.offered,
            possible: possible.iter().sum(),
            received: counts.received,
            good: counts.good,
            shed_by_limit: counts.shed_by_limit,
            shed_by_breaker: counts.shed_by_breaker,
            late: counts.late,
            failed: counts.failed,
            gave_up: counts.gave_up,
            p99_ms: latency.quantile(0.99).map(|seconds| seconds * 1e3),
            held: levels.held,
            in_service: levels.in_service,
            waiting: levels.waiting,
            limit: levels.limit,
            not_closed: levels.not_closed,
            fairness: number::fairness(asked().map(|share| f64::from(share.admitted))),
            served_fairness: number::fairness(asked().map(Share::served)),
        }
    }
}
