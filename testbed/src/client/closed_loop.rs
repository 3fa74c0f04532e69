//! Callers in a closed loop: each is a task that sends, waits for the end of its request, pauses, and sends again.
//!
//! Each has its connections for itself, as a thread of a pool or a user of a load tester has. A request arrives when it is
//! sent, so nothing is hidden if a task wakes late: it sends late.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::scheduled::ScheduledRequest;
use super::stage::ReplayStage;
use tidegate_sim::closed_loop::LoopCaller;
use tidegate_sim::record::{Answer, Record};

/// Starts every caller of the scenario's closed loops. Each ends with its last request before the end of the story, with the
/// numbers of those that were answered with 200. The numbers begin with `first`.
pub(super) fn begin(
    stage: &Arc<ReplayStage>,
    records: &mpsc::UnboundedSender<Record>,
    first: u64,
) -> JoinSet<BTreeSet<u64>> {
    let numbers = Arc::new(AtomicU64::new(first));
    let mut callers = JoinSet::new();
    for (index, caller) in LoopCaller::all(&stage.scenario).into_iter().enumerate() {
        let cohort = stage.tells_cohorts.then(|| format!("caller-{index}"));
        let member = Member {
            stage: Arc::clone(stage),
            caller,
            cohort,
            numbers: Arc::clone(&numbers),
            records: records.clone(),
        };
        callers.spawn(member.send());
    }
    callers
}

/// One caller of a pool.
struct Member {
    stage: Arc<ReplayStage>,
    caller: LoopCaller,
    /// Its own, if callers have one.
    cohort: Option<String>,
    /// The number of the next request, of whichever caller.
    numbers: Arc<AtomicU64>,
    records: mpsc::UnboundedSender<Record>,
}

impl Member {
    /// Sends one request after the other. Returns the numbers of those that were answered with 200.
    async fn send(mut self) -> BTreeSet<u64> {
        let mut answered = BTreeSet::new();
        let stage = Arc::clone(&self.stage);
        let Some(client) = stage.scenario.clients.get(self.caller.client()) else {
            return answered;
        };
        let own = stage.caller(client).with_own_connections();
        let mut next = self
            .caller
            .first(&stage.scenario, self.passed(Instant::now()));
        while let Some(at) = next {
            if stage.start + at > Instant::now() {
                sleep_until(stage.start + at).await;
            }
            let due = Instant::now();
            let arrival = self.caller.request(&stage.scenario, self.passed(due));
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let cohort = self.cohort.clone();
            let plan = |arrival| stage.plan(own.clone(), arrival, cohort, number);
            let Some(ask) = arrival.and_then(plan) else {
                break;
            };
            let rng = stage.rng(number);
            let request = ScheduledRequest { ask, due, rng };
            let record = request.run().await.0;
            let is_answered = record.answer == Answer::Ok;
            if is_answered {
                answered.insert(number);
            }
            // Fails if the run was cut short: the receiver is gone.
            let _ = self.records.send(record);
            let ended = self.passed(Instant::now());
            next = self.caller.next(&stage.scenario, ended, is_answered);
        }
        answered
    }

    /// Time from the start of the story; zero before it.
    fn passed(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.stage.start)
    }
}
