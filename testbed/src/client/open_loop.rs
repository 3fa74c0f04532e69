//! Load that does not wait: every request is sent when it is due, whatever became of those before.
//!
//! Latency counts from the *scheduled* arrival, so that neither a busy client nor a
//! slow proxy can hide waiting time (no coordinated omission).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Call, Caller, Reply};
use tidegate_sim::arrivals::Arrival;
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::scenario::{ClientProfile, Scenario};

/// Header that carries the criticality of a request.
pub const CRITICALITY_HEADER: &str = "x-criticality";

/// Header that carries the number of an attempt, from 1.
pub const ATTEMPT_HEADER: &str = "x-envoy-attempt-count";

/// Replays `arrivals` against the proxy at `target` from `start` on; each record goes to `records`.
///
/// The authority of a request is the name of its upstream. Returns when every request has ended.
pub async fn replay(
    scenario: Arc<Scenario>,
    arrivals: Arc<Vec<Arrival>>,
    target: SocketAddr,
    start: Instant,
    records: mpsc::UnboundedSender<Record>,
) {
    let caller = Caller::http1(target);
    let mut under_way = JoinSet::new();
    for (index, arrival) in arrivals.iter().enumerate() {
        let Some(client) = scenario.clients.get(arrival.client) else {
            continue;
        };
        let due = start + arrival.at;
        if due > Instant::now() {
            sleep_until(due).await;
        }
        while under_way.try_join_next().is_some() {}
        let request = Request {
            caller: caller.clone(),
            client: client.clone(),
            arrival: arrival.clone(),
            due,
            rng: StdRng::seed_from_u64(scenario.seed ^ u64::try_from(index).unwrap_or(u64::MAX)),
        };
        let records = records.clone();
        under_way.spawn(async move {
            // Nobody listens any more when a run was cut short.
            let _ = records.send(request.run().await);
        });
    }
    while under_way.join_next().await.is_some() {}
}

struct Request {
    caller: Caller,
    client: ClientProfile,
    arrival: Arrival,
    due: Instant,
    rng: StdRng,
}

impl Request {
    async fn run(mut self) -> Record {
        let most = 1 + self.client.retries.map_or(0, |retries| retries.max);
        let mut attempts = 0;
        let mut sheds = 0;
        loop {
            attempts += 1;
            let (answer, again) = self.attempt(attempts).await;
            sheds += u32::from(matches!(answer, Answer::Shed(_)));
            if !again || attempts >= most {
                let latency = self.due.elapsed();
                return Record {
                    arrival: self.arrival,
                    answer,
                    latency,
                    attempts,
                    sheds,
                };
            }
            sleep(self.pause(attempts)).await;
        }
    }

    /// One attempt, and whether a further one would make sense to the caller.
    async fn attempt(&self, number: u32) -> (Answer, bool) {
        let mut call = Call::get(&self.arrival.path).authority(&self.client.upstream);
        if let Some(criticality) = &self.arrival.criticality {
            call = call.header(CRITICALITY_HEADER, criticality);
        }
        if number > 1 {
            call = call.header(ATTEMPT_HEADER, &number.to_string());
        }
        match timeout(self.client.deadline, self.caller.call(&call)).await {
            Err(_) => (Answer::GaveUp, true),
            Ok(Err(_)) => (Answer::Broken, true),
            Ok(Ok(reply)) if reply.status == 200 => (Answer::Ok, false),
            // Callers behind an Envoy do not retry a reply that says the service as a whole is overloaded.
            Ok(Ok(reply)) => {
                let is_stubborn = self.client.retries.is_some_and(|retries| retries.stubborn);
                let is_final = reply.header("x-envoy-ratelimited").is_some();
                (answer(&reply), is_stubborn || !is_final)
            }
        }
    }

    fn pause(&mut self, attempts: u32) -> Duration {
        let drawn = self.rng.random();
        self.client
            .retries
            .map_or(Duration::ZERO, |retries| retries.pause(attempts, drawn))
    }
}

/// Beginnings of the response code details of replies that a proxy made to shed load.
pub const SHED_DETAILS: [&str; 5] = [
    "tidegate_shed_",
    "reached_concurrency_limit",
    "denied_by_admission_control",
    "upstream_reset_before_response_started{overflow",
    "no_healthy_upstream",
];

fn answer(reply: &Reply) -> Answer {
    match reply.details() {
        Some(details) if SHED_DETAILS.iter().any(|start| details.starts_with(start)) => {
            Answer::Shed(details.to_owned())
        }
        _ => Answer::Failed(reply.status),
    }
}
