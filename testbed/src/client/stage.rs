//! What the callers of a replay have in common.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::time::Instant;

use super::Caller;
use super::attempt::CallPlan;
use tidegate_sim::arrivals::Arrival;
use tidegate_sim::scenario::{AdversaryKind, ClientProfile, Scenario};

/// Callers stop reading a response this long after the story, and count it as good; what would happen to the stream later
/// does not matter.
const READS_ON: Duration = Duration::from_secs(1);

/// What all callers of a replay have in common.
pub(super) struct ReplayStage {
    pub(super) scenario: Arc<Scenario>,
    pub(super) start: Instant,
    pub(super) tells_cohorts: bool,
    caller: Caller,
    /// All requests that are reset share one connection.
    resets: Caller,
    /// Services pass the rest of a deadline on.
    has_chains: bool,
}

impl ReplayStage {
    pub(super) fn new(scenario: Arc<Scenario>, target: SocketAddr, start: Instant) -> Self {
        Self {
            tells_cohorts: scenario.clients.iter().any(|one| one.cohort.is_some()),
            has_chains: scenario.has_chains(),
            caller: Caller::http1(target),
            resets: Caller::http2(target),
            scenario,
            start,
        }
    }

    /// The caller with the connections that requests of a client share.
    pub(super) const fn caller(&self, client: &ClientProfile) -> &Caller {
        match client.adversary {
            Some(AdversaryKind::BulkReset) => &self.resets,
            _ => &self.caller,
        }
    }

    /// The random numbers of a request.
    pub(super) fn rng(&self, number: u64) -> StdRng {
        StdRng::seed_from_u64(self.scenario.seed ^ number)
    }

    /// How request `number` is sent; `cohort` is its caller's own, if callers have one. None if there is no such client.
    pub(super) fn plan(
        &self,
        caller: Caller,
        arrival: Arrival,
        cohort: Option<String>,
        number: u64,
    ) -> Option<CallPlan> {
        let client = self.scenario.clients.get(arrival.client)?;
        let end = self.start + self.scenario.duration;
        Some(CallPlan {
            caller,
            client: ClientProfile {
                tells_deadline: client.tells_deadline || self.has_chains,
                ..client.clone()
            },
            arrival,
            until: self.scenario.slo.until,
            cohort: client.cohort.clone().or(cohort),
            origin: self.has_chains.then_some(number),
            read_until: end + READS_ON,
            end,
        })
    }
}
