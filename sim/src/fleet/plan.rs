//! The plan of a fleet: size, topology and phases.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::number;
use crate::profile::UpstreamMode;
use crate::scenario::{Scenario, UpstreamProfile};

/// How large a fleet is, and how long it plays.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FleetSize {
    /// Callers, each with an identity of its own. As sidecars they are the proxies.
    pub callers: u32,
    /// Requests a second that all of them send, on average over the run.
    pub rps: f64,
    /// Endpoints of the service.
    pub endpoints: u32,
    /// Length of the run.
    pub seconds: u32,
    /// Seed of everything random.
    pub seed: u64,
}

impl FleetSize {
    /// A smaller fleet with the same load for each proxy, and as many proxies for each endpoint.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let count = |count: u32| {
            let scaled = number::floor((f64::from(count) * factor).round());
            u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
        };
        Self {
            callers: count(self.callers),
            rps: self.rps * factor,
            endpoints: count(self.endpoints),
            ..self
        }
    }
}

/// The proxies between callers and service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FleetTopology {
    /// Each caller has its own.
    Sidecars,
    /// This many are shared by all callers; each caller uses one.
    Waypoints(u32),
}

/// A stretch of a story, in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FleetPhase {
    /// Its name, the same in all topologies.
    pub name: &'static str,
    /// Its beginning.
    pub from_s: u32,
    /// Its end.
    pub to_s: u32,
    /// From here on it is judged: before, the proxies learn what has changed.
    pub settled_s: u32,
}

/// A story that a fleet plays.
#[derive(Debug, Clone, PartialEq)]
pub struct Fleet {
    /// Load and service. Of `proxies` it says how many callers there are.
    pub scenario: Scenario,
    /// The proxies between them.
    pub topology: FleetTopology,
    /// The heavy callers; none: all are equal.
    pub heavy: Option<Heavy>,
    /// The stretches by which it is judged.
    pub phases: Vec<FleetPhase>,
    /// Whether the proxies protect the service, or only count.
    pub is_protected: bool,
    /// Whether the proxies know how many endpoints there are.
    pub knows_endpoints: bool,
}

/// Callers that send more than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Heavy {
    /// One in this many callers is heavy.
    pub one_in: u32,
    /// How many times as much it sends.
    pub times: u32,
}

/// A fleet cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The scenario has something that fleets do not play.
    #[error("fleet: found {found}, expected {expected}")]
    Unplayable {
        /// What.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
    /// The engines reject the policy.
    #[error("fleet: the policy is refused: {0}")]
    Policy(String),
    /// A thread ended before its time.
    #[error("fleet: a shard was not played to its end")]
    Broken,
}

impl fmt::Display for FleetTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sidecars => f.write_str("sidecars"),
            Self::Waypoints(1) => f.write_str("waypoint"),
            Self::Waypoints(count) => write!(f, "waypoints-{count}"),
        }
    }
}

impl FleetTopology {
    /// The topology with a name: `sidecars`, `waypoint`, `waypoints-4`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "sidecars" => Some(Self::Sidecars),
            "waypoint" => Some(Self::Waypoints(1)),
            _ => {
                let count = name.strip_prefix("waypoints-")?.parse().ok()?;
                (count > 0).then_some(Self::Waypoints(count))
            }
        }
    }
}

impl Fleet {
    /// How many proxies there are.
    #[must_use]
    pub fn proxies(&self) -> u32 {
        match self.topology {
            FleetTopology::Sidecars => self.scenario.proxies,
            FleetTopology::Waypoints(count) => count.min(self.scenario.proxies),
        }
    }

    /// The proxy of a caller: neighbours share one, and all have as many, give or take one.
    pub(super) fn proxy_of(&self, caller: u32) -> u32 {
        let place = u64::from(caller) * u64::from(self.proxies());
        u32::try_from(place / u64::from(self.scenario.proxies.max(1))).unwrap_or(0)
    }

    /// How many times as much as the others a caller sends.
    pub(super) fn weight_of(&self, caller: u32) -> u32 {
        match self.heavy {
            Some(heavy) if caller.is_multiple_of(heavy.one_in.max(1)) => heavy.times,
            _ => 1,
        }
    }

    /// Requests a second that the service can serve at a time.
    #[must_use]
    pub fn capacity_at(&self, at: Duration) -> f64 {
        let stages = self.scenario.upstreams.first().map(UpstreamProfile::stages);
        let stages = stages.unwrap_or_default();
        let current = stages.iter().rev().find(|(from, _)| *from <= at);
        current.map_or(0.0, |(_, now)| {
            if now.mode.is_up() {
                now.capacity()
            } else {
                0.0
            }
        })
    }

    /// Rejects a scenario with something that a fleet cannot play.
    ///
    /// # Errors
    /// With the first thing it does not play.
    pub fn check(&self) -> Result<(), FleetError> {
        let scenario = &self.scenario;
        let network = scenario.network.unwrap_or_default();
        let client = scenario.clients.first();
        let stages = scenario.upstreams.first().map(UpstreamProfile::stages);
        let plays = |mode: UpstreamMode| {
            matches!(
                mode,
                UpstreamMode::Serve | UpstreamMode::Fail | UpstreamMode::Hang
            )
        };
        let rules = [
            (scenario.upstreams.len() == 1, "one upstream"),
            (scenario.clients.len() == 1, "one client"),
            (scenario.workers == 1, "workers = 1"),
            (!network.delay.is_zero(), "a network with a delay"),
            (network.jitter.is_zero(), "a network without jitter"),
            (scenario.incidents.is_empty(), "no incidents"),
            (client.is_some_and(|c| c.retries.is_none()), "no retries"),
            (
                client.is_some_and(|c| c.paths.is_empty() && c.criticality.is_empty()),
                "requests of one kind",
            ),
            (
                stages.is_some_and(|s| s.iter().all(|(_, now)| plays(now.mode))),
                "modes serve, fail and hang",
            ),
        ];
        match rules.iter().find(|(is_met, _)| !is_met) {
            Some((_, expected)) => Err(FleetError::Unplayable {
                found: format!("another scenario ({})", scenario.name),
                expected,
            }),
            None => Ok(()),
        }
    }
}
