//! A run over time: what charts are drawn from.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::number;
use crate::oracle;
use crate::record::{Answer, Record};
use crate::scenario::Scenario;

/// One sample of the upstreams and the contender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesSample {
    /// When, in seconds from the start.
    pub at_s: f64,
    /// Attempts that have reached the upstreams so far.
    pub received: u64,
    /// Requests that hold a slot.
    pub in_service: u64,
    /// Requests that wait in an upstream.
    pub waiting: u64,
    /// Limits, summed over proxies and upstreams; none where the contender shows none.
    pub limit: Option<u64>,
    /// Requests in flight, of all proxies; none where they are not counted.
    pub in_flight: Option<u64>,
    /// The worst breaker state: 0 closed, 1 half-open, 2 open.
    pub breaker: Option<u64>,
}

/// One window of a run, by scheduled arrival.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RunWindow {
    /// Middle of the window, in seconds from the start.
    pub at_s: f64,
    /// Requests offered a second.
    pub offered: f64,
    /// Good answers a second.
    pub good: f64,
    /// The oracle's good answers a second.
    pub oracle: f64,
    /// Sheds a second.
    pub shed: f64,
    /// Other failures a second, given up ones included.
    pub failed: f64,
    /// 99th percentile of the answers 200, in milliseconds; none without any.
    pub p99_ms: Option<f64>,
}

/// Length of the windows.
pub const WINDOW: Duration = Duration::from_millis(500);

/// Sorts the records of a run into windows, without those of adversaries.
#[must_use]
pub fn windows(scenario: &Scenario, records: &[Record]) -> Vec<RunWindow> {
    windows_with(scenario, records, WINDOW, |at| scenario.latency_at(at))
}

/// The same with windows of another length and a latency target that changes over time.
#[must_use]
pub fn windows_with(
    scenario: &Scenario,
    records: &[Record],
    length: Duration,
    objective_at: impl Fn(Duration) -> Duration,
) -> Vec<RunWindow> {
    let mut records: Vec<&Record> = records.iter().collect();
    records.sort_by_key(|record| record.arrival.at);
    let arrivals: Vec<_> = records
        .iter()
        .map(|record| record.arrival.clone())
        .collect();
    let verdicts = oracle::judge(scenario, &arrivals);
    let length = length.as_secs_f64();
    let count = number::floor((scenario.duration.as_secs_f64() / length).ceil());
    let mut windows: Vec<(RunWindow, Vec<Duration>)> = (0..count)
        .map(|index| {
            (
                RunWindow {
                    at_s: (number::float_len(index) + 0.5) * length,
                    ..RunWindow::default()
                },
                Vec::new(),
            )
        })
        .collect();
    let honest = |record: &&Record| scenario.adversary(record.arrival.client).is_none();
    let judged = records.into_iter().zip(verdicts);
    for (record, verdict) in judged.filter(|(record, _)| honest(record)) {
        let index = number::floor(record.arrival.at.as_secs_f64() / length);
        let Some((window, latencies)) = windows.get_mut(index) else {
            continue;
        };
        window.offered += 1.0 / length;
        window.oracle += verdict.good / length;
        if verdict.is_good(record, objective_at(record.arrival.at)) {
            window.good += 1.0 / length;
        }
        match record.answer {
            Answer::Ok => latencies.push(record.latency),
            Answer::Shed(_) => window.shed += 1.0 / length,
            Answer::Failed(_) | Answer::GaveUp | Answer::Broken => window.failed += 1.0 / length,
        }
    }
    windows
        .into_iter()
        .map(|(window, mut latencies)| {
            latencies.sort_unstable();
            RunWindow {
                p99_ms: number::quantile(&latencies, 0.99).map(number::millis),
                ..window
            }
        })
        .collect()
}
