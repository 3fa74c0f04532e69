//! The result of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tidegate_report::table::Table;
use tidegate_sim::number::{float, quantile};
use tidegate_sim::record::{Answer, Record};

use super::contender::BalanceContender;
use super::plan::{BalancePlan, DEADLINE};

/// The result of one run, after its warm-up.
#[derive(Debug, Clone, Serialize)]
pub struct BalanceFigures {
    /// How load was spread.
    pub contender: BalanceContender,
    /// Good answers a second: 200 within the objective's latency.
    pub goodput: f64,
    /// The same as a share of all requests, 0 to 1.
    pub good_share: f64,
    /// The share of requests that a proxy shed, 0 to 1.
    pub shed_share: f64,
    /// The 99th percentile of the latency of requests that were not shed, in milliseconds. Any answer but 200 counts as the
    /// caller's deadline.
    pub p99_ms: f64,
    /// The share of requests that reached the slow server since the start, 0 to 1.
    pub slow_share: f64,
    /// Requests that reached each server since the start, the slow one last.
    pub received: Vec<u64>,
}

/// All runs, with the conditions.
#[derive(Debug, Clone, Serialize)]
pub struct BalanceReport {
    /// Machine, versions, commit, date.
    pub metadata: BTreeMap<String, String>,
    /// What was played.
    pub plan: BalancePlan,
    /// The result of each run.
    pub runs: Vec<BalanceFigures>,
}

impl BalanceFigures {
    pub(super) fn of(
        contender: BalanceContender,
        plan: &BalancePlan,
        records: &[Record],
        received: &[u64],
    ) -> Self {
        let counted: Vec<&Record> = records
            .iter()
            .filter(|record| record.arrival.at >= plan.warm_up)
            .collect();
        let share = |count: usize| float_of(count) / float_of(counted.len().max(1));
        let is_good = |record: &&&Record| record.is_good(plan.objective);
        let good = counted.iter().filter(is_good).count();
        let shed = counted.iter().filter(|record| record.is_shed()).count();
        let latency = |record: &&&Record| match record.answer {
            Answer::Ok => record.latency,
            _ => DEADLINE,
        };
        let sent_on = counted.iter().filter(|record| !record.is_shed());
        let mut latencies: Vec<Duration> = sent_on.map(|record| latency(&record)).collect();
        latencies.sort_unstable();
        let p99 = quantile(&latencies, 0.99).unwrap_or_default();
        let all: u64 = received.iter().sum();
        let slow = received.last().copied().unwrap_or_default();
        Self {
            contender,
            goodput: float_of(good) / (plan.length - plan.warm_up).as_secs_f64(),
            good_share: share(good),
            shed_share: share(shed),
            p99_ms: p99.as_secs_f64() * 1e3,
            slow_share: float(slow) / float(all.max(1)),
            received: received.to_vec(),
        }
    }
}

fn float_of(count: usize) -> f64 {
    float(u64::try_from(count).unwrap_or(u64::MAX))
}

/// The medians of all runs of each contender, as a table.
#[must_use]
pub fn table(runs: &[BalanceFigures]) -> Table {
    let rows = BalanceContender::ALL.into_iter().filter_map(|contender| {
        let of_it: Vec<&BalanceFigures> = runs
            .iter()
            .filter(|run| run.contender == contender)
            .collect();
        let median = |figure: fn(&BalanceFigures) -> f64| {
            let mut all: Vec<f64> = of_it.iter().map(|run| figure(run)).collect();
            all.sort_by(f64::total_cmp);
            quantile(&all, 0.5)
        };
        Some(vec![
            contender.name().to_owned(),
            format!("{:.0}", median(|run| run.goodput)?),
            format!("{:.3}", median(|run| run.good_share)?),
            format!("{:.3}", median(|run| run.shed_share)?),
            format!("{:.0}", median(|run| run.p99_ms)?),
            format!("{:.3}", median(|run| run.slow_share)?),
        ])
    });
    let head = [
        "spread by",
        "good a second",
        "share",
        "shed",
        "p99, ms",
        "to the slow server",
    ];
    Table::new(&head, rows.collect())
}
