//! Load that does not wait: every request is sent when it is due, regardless of earlier requests.
//!
//! Latency counts from the *scheduled* arrival, so that neither a busy client nor a slow proxy can hide waiting time (no
//! coordinated omission); the duration of an upload is not included. Latency ends with the moment that the objective names.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use rand::Rng;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::closed_loop;
use super::scheduled::ScheduledRequest;
use super::stage::ReplayStage;
use tidegate_sim::arrivals::Arrival;
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::scenario::Scenario;

/// Replays `arrivals` against the proxy at `target` from `start` on, and lets the scenario's callers in closed loops send beside
/// them; sends each record to `records`.
///
/// The authority of a request is the name of its upstream. Returns when every request has ended, with the numbers of those
/// that were answered with 200; a number is an index into `arrivals`, or a higher one for a request of a closed loop. Dropping
/// it ends all callers.
pub async fn replay(
    scenario: Arc<Scenario>,
    arrivals: Arc<Vec<Arrival>>,
    target: SocketAddr,
    start: Instant,
    records: mpsc::UnboundedSender<Record>,
) -> BTreeSet<u64> {
    let stage = Arc::new(ReplayStage::new(scenario, target, start));
    let after = u64::try_from(arrivals.len()).unwrap_or(u64::MAX);
    let mut loops = closed_loop::begin(&stage, &records, after);
    let mut under_way: JoinSet<Option<u64>> = JoinSet::new();
    let mut answered = BTreeSet::new();
    for (number, arrival) in (0..).zip(arrivals.iter()) {
        let Some(client) = stage.scenario.clients.get(arrival.client) else {
            continue;
        };
        let due = start + arrival.at;
        if due > Instant::now() {
            sleep_until(due).await;
        }
        while let Some(ended) = under_way.try_join_next() {
            answered.extend(ended.ok().flatten());
        }
        let mut rng = stage.rng(number);
        let own_cohort = stage
            .tells_cohorts
            .then(|| format!("{:016x}", rng.random::<u64>()));
        let caller = stage.caller(client).clone();
        let Some(ask) = stage.plan(caller, arrival.clone(), own_cohort, number) else {
            continue;
        };
        let request = ScheduledRequest { ask, due, rng };
        let records = records.clone();
        under_way.spawn(async move {
            let record = request.run().await.0;
            let answered = (record.answer == Answer::Ok).then_some(number);
            // Fails if the run was cut short: the receiver is gone.
            let _ = records.send(record);
            answered
        });
    }
    while let Some(ended) = under_way.join_next().await {
        answered.extend(ended.ok().flatten());
    }
    while let Some(ended) = loops.join_next().await {
        answered.extend(ended.unwrap_or_default());
    }
    answered
}
