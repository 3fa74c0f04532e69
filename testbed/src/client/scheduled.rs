//! A request that is due, over all its attempts.

use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;
use tokio::time::{Instant, sleep};

use super::Caller;
use super::attempt::CallPlan;
use tidegate_sim::arrivals::Arrival;
use tidegate_sim::record::{Answer, Record};
use tidegate_sim::scenario::{ClientProfile, LatencyUntil};

/// A request and when it is due.
pub(super) struct ScheduledRequest {
    pub(super) ask: CallPlan,
    pub(super) due: Instant,
    pub(super) rng: StdRng,
}

impl ScheduledRequest {
    /// Makes attempts until the last one. Also returns whether the last answer says that a service is overloaded.
    pub(super) async fn run(mut self) -> (Record, bool) {
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
