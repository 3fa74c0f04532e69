//! How far the rates of a cluster go up or down.

use std::time::Duration;

/// The step up while the objective is met, and the least step down while it is missed.
const UP: f64 = 0.01;
const DOWN: f64 = 0.05;
/// The greatest step in either direction, as for the learned policy.
const MOST: f64 = 0.5;

/// What a policy sees of a cluster.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClusterState {
    /// Successes over the admitted rates.
    pub(super) goodput: f64,
    /// The greatest latency of its APIs.
    pub(super) latency: Duration,
}

/// The rule that stands in for the learned policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateStep {
    /// Fixed steps, the authors' own comparison.
    Mimd,
    /// Down by the successes that are missing, and up by half of the time that is left to the objective.
    Ratio,
}

impl RateStep {
    /// The change, as a share of the rates.
    pub(super) fn change(self, state: &ClusterState, objective: Duration) -> f64 {
        let is_missed = state.latency > objective;
        match self {
            Self::Mimd if is_missed => -DOWN,
            Self::Mimd => UP,
            Self::Ratio if is_missed => (state.goodput - 1.0).clamp(-MOST, -DOWN),
            Self::Ratio => {
                let taken = state.latency.as_secs_f64() / objective.as_secs_f64();
                (MOST * (1.0 - taken)).clamp(UP, MOST)
            }
        }
    }
}
