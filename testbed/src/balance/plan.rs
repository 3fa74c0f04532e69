//! What is played: the load and the servers.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;
use tidegate_sim::scenario::Scenario;

/// Default offered load, as a share of the servers' capacity.
pub const DEFAULT_LOAD: f64 = 0.7;
/// Servers, the slow one among them.
pub(super) const SERVERS: u32 = 4;
/// Requests that a server works on at a time.
pub(super) const SLOTS: u32 = 4;
/// Mean time of the work for a request.
pub(super) const WORK: Duration = Duration::from_millis(20);
/// The same at the slow server.
pub(super) const SLOW_WORK: Duration = Duration::from_millis(100);
/// Standard deviation of the logarithm of the work's time.
pub(super) const SIGMA: f64 = 0.5;
/// Callers give up after this, as does their Envoy, so that outlier detection sees a failure.
pub(super) const DEADLINE: Duration = Duration::from_secs(1);

/// What is played.
#[derive(Debug, Clone, Serialize)]
pub struct BalancePlan {
    /// Offered load, as a share of the servers' capacity.
    pub load: f64,
    /// Length of a run.
    pub length: Duration,
    /// Time at the beginning of a run that is not counted. Envoy waits ten seconds before it trusts weights.
    pub warm_up: Duration,
    /// Latency within which an answer is good.
    pub objective: Duration,
    /// Seed of arrivals and service times.
    pub seed: u64,
}

impl BalancePlan {
    /// Requests a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let of = |work: Duration| f64::from(SLOTS) / work.as_secs_f64();
        self.load * (f64::from(SERVERS - 1) * of(WORK) + of(SLOW_WORK))
    }

    pub(super) fn scenario(&self) -> Result<Scenario> {
        let text = format!(
            "name = 'balance'\ntitle = 'One slow server of four'\nprose = 'p'\nseed = {}\nduration = '{}ms'\n\
             [[clients]]\ndeadline = '{}ms'\nload = [{{ at = '0s', rps = {:.3} }}]",
            self.seed,
            self.length.as_millis(),
            DEADLINE.as_millis(),
            self.rate(),
        );
        Scenario::parse(&text, "balance").context("read the scenario")
    }
}
