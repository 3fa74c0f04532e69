//! The plan of a fleet: size, topology and phases.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::number;
use crate::profile::Behaviour;
use crate::scenario::Scenario;

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
    /// The phase is judged from here on; before, the proxies learn what has changed.
    pub settled_s: u32,
}

/// A story that a fleet plays.
#[derive(Debug, Clone, PartialEq)]
pub struct Fleet {
    /// Callers, proxies, load and service.
    pub scenario: Scenario,
    /// The proxies between callers and service.
    pub topology: FleetTopology,
    /// The stretches by which it is judged.
    pub phases: Vec<FleetPhase>,
    /// Whether the proxies protect the service, or only count.
    pub is_protected: bool,
    /// Whether the proxies know how many endpoints there are.
    pub knows_endpoints: bool,
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
    /// How many proxies that is.
    #[must_use]
    pub fn proxies(self, callers: u32) -> u32 {
        match self {
            Self::Sidecars => callers,
            Self::Waypoints(count) => count.min(callers),
        }
    }

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
    /// Requests a second that the service can serve at a time.
    #[must_use]
    pub fn capacity_at(&self, at: Duration) -> f64 {
        let now = self.behaviour_at(at).filter(|now| now.mode.is_up());
        now.map_or(0.0, |now| now.capacity())
    }

    /// Slots of the service at a time.
    pub(super) fn slots_at(&self, at: Duration) -> f64 {
        self.behaviour_at(at).map_or(0.0, |now| now.all_slots())
    }

    fn behaviour_at(&self, at: Duration) -> Option<Behaviour> {
        let stages = self.scenario.upstreams.first()?.stages();
        let current = stages.into_iter().rev().find(|(from, _)| *from <= at);
        current.map(|(_, behaviour)| behaviour)
    }
}
