//! Load that does not wait: every request is sent when it is due, regardless of earlier requests.
//!
//! Latency counts from the *scheduled* arrival, so that neither a busy client nor a slow proxy can hide waiting time (no
//! coordinated omission); the duration of an upload is not included. Latency ends with the moment that the objective names.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::Caller;
use super::attempt::CallPlan;
use tidegate_sim::arrivals::Arrival;
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::scenario::{AdversaryKind, ClientProfile, LatencyUntil, Scenario};

/// Callers stop reading a response this long after the story, and count it as good; what would happen to the stream later
/// does not matter.
const READS_ON: Duration = Duration::from_secs(1);

/// Replays `arrivals` against the proxy at `target` from `start` on; sends each record to `records`.
///
/// The authority of a request is the name of its upstream. Returns when every request has ended, with the numbers of those
/// that were answered with 200; a number is an index into `arrivals`.
pub async fn replay(
    scenario: Arc<Scenario>,
    arrivals: Arc<Vec<Arrival>>,
    target: SocketAddr,
    start: Instant,
    records: mpsc::UnboundedSender<Record>,
) -> BTreeSet<u64> {
    let caller = Caller::http1(target);
    // All requests that are reset share one connection.
    let resets = Caller::http2(target);
    let tells_cohorts = scenario.clients.iter().any(|one| one.cohort.is_some());
    // Services pass the rest of a deadline on.
    let has_chains = scenario.has_chains();
    let until = scenario.slo.until;
    let read_until = start + scenario.duration + READS_ON;
    let mut under_way: JoinSet<Option<u64>> = JoinSet::new();
    let mut answered = BTreeSet::new();
    for (index, arrival) in arrivals.iter().enumerate() {
        let Some(client) = scenario.clients.get(arrival.client) else {
            continue;
        };
        let due = start + arrival.at;
        if due > Instant::now() {
            sleep_until(due).await;
        }
        while let Some(ended) = under_way.try_join_next() {
            answered.extend(ended.ok().flatten());
        }
        let number = u64::try_from(index).unwrap_or(u64::MAX);
        let mut rng = StdRng::seed_from_u64(scenario.seed ^ number);
        let own_cohort = tells_cohorts.then(|| format!("{:016x}", rng.random::<u64>()));
        let caller = match client.adversary {
            Some(AdversaryKind::BulkReset) => &resets,
            _ => &caller,
        };
        let request = ScheduledRequest {
            ask: CallPlan {
                caller: caller.clone(),
                client: ClientProfile {
                    tells_deadline: client.tells_deadline || has_chains,
                    ..client.clone()
                },
                arrival: arrival.clone(),
                until,
                cohort: client.cohort.clone().or(own_cohort),
                origin: has_chains.then_some(number),
                read_until,
                end: start + scenario.duration,
            },
            due,
            rng,
        };
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
    answered
}

struct ScheduledRequest {
    ask: CallPlan,
    due: Instant,
    rng: StdRng,
}

/// A request that a service makes on behalf of one of its own.
pub(crate) struct InnerRequest {
    /// The proxy.
    pub(crate) caller: Caller,
    /// How the service calls.
    pub(crate) client: ClientProfile,
    /// The criticality that it passes on.
    pub(crate) criticality: Option<String>,
    /// The cohort that it passes on.
    pub(crate) cohort: Option<String>,
    /// The number of the caller's request that caused it.
    pub(crate) origin: Option<u64>,
    /// The moment of the answer that it waits for.
    pub(crate) until: LatencyUntil,
    /// When the caller of the service gives up.
    pub(crate) ends_at: Option<Instant>,
}

impl InnerRequest {
    /// Sends the request. Returns the answer, and whether it says that a service is overloaded.
    pub(crate) async fn run(self, rng: StdRng) -> (Answer, bool) {
        let now = Instant::now();
        let end = self.ends_at.unwrap_or(now + self.client.deadline);
        let request = ScheduledRequest {
            ask: CallPlan {
                caller: self.caller,
                arrival: Arrival {
                    at: Duration::ZERO,
                    client: 0,
                    path: "/".into(),
                    criticality: self.criticality,
                    upload: None,
                    reads_for: None,
                },
                client: self.client,
                until: self.until,
                cohort: self.cohort,
                origin: self.origin,
                read_until: end,
                end,
            },
            due: now,
            rng,
        };
        let (record, is_overload) = request.run().await;
        (record.answer, is_overload)
    }
}

impl ScheduledRequest {
    /// Makes attempts until the last one. Also returns whether the last answer says that a service is overloaded.
    async fn run(mut self) -> (Record, bool) {
        let retries = self.ask.client.retries.map_or(0, |retries| retries.max);
        let most = retries.saturating_add(1);
        let is_adversary = self.ask.client.adversary.is_some();
        let mut attempts = 0;
        let mut sheds = 0;
        let mut uploading = Duration::ZERO;
        loop {
            attempts += 1;
            let attempt = self.ask.attempt(attempts).await;
            sheds += u32::from(matches!(attempt.answer, Answer::Shed(_)));
            uploading += attempt.uploading;
            // An adversary with endless retries retries until the end of the story.
            let is_over = is_adversary && Instant::now() >= self.ask.end;
            if !attempt.makes_sense_again || attempts >= most || is_over {
                let latency = attempt.moment.saturating_duration_since(self.due);
                let record = Record {
                    arrival: self.ask.arrival,
                    answer: attempt.answer,
                    latency: latency.saturating_sub(uploading),
                    attempts,
                    sheds,
                };
                return (record, attempt.is_overload);
            }
            sleep(self.pause(attempts)).await;
        }
    }

    fn pause(&mut self, attempts: u32) -> Duration {
        let drawn = self.rng.random();
        let retries = self.ask.client.retries;
        retries.map_or(Duration::ZERO, |retries| retries.pause(attempts, drawn))
    }
}
