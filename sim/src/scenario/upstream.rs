//! The services behind the proxy, and what happens to them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{PassedOn, ServiceCall};
use crate::profile::{
    Behaviour, Body, Change, Contention, Delay, Errors, Pauses, QueueBound, ServiceTime,
    UpstreamMode,
};

/// A service behind the proxy and what happens to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamProfile {
    /// Name by which clients address it.
    pub name: String,
    /// How each of its endpoints behaves at the start.
    #[serde(default)]
    pub behaviour: Behaviour,
    /// What changes when, in order of time.
    #[serde(default)]
    pub timeline: Vec<TimedChange>,
    /// How a proxy spreads requests over the endpoints.
    #[serde(default)]
    pub balancing: Balancing,
    /// Endpoints with a timeline of their own.
    #[serde(default)]
    pub exceptions: Vec<Exception>,
    /// The latency that is promised for it; none: that of the scenario's objective.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "humantime_serde"
    )]
    pub objective: Option<Duration>,
    /// What its requests ask of other services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ServiceCall>,
    /// What it passes on.
    #[serde(default, skip_serializing_if = "PassedOn::is_nothing")]
    pub passes: PassedOn,
}

/// How a proxy spreads requests over endpoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balancing {
    /// One after the other.
    #[default]
    RoundRobin,
    /// At random.
    Random,
    /// Of two drawn at random, the one with fewer requests of this proxy in flight.
    LeastRequest,
}

/// An endpoint with a timeline of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// Its index, from 0.
    pub endpoint: u32,
    /// Its changes in order of time, on top of those of all endpoints. They cannot take it out of the rotation.
    pub timeline: Vec<TimedChange>,
}

/// A behavior and when it begins, one after the other; the first begins at zero.
pub type Stages = Vec<(Duration, Behaviour)>;

impl UpstreamProfile {
    /// A standard upstream.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            behaviour: Behaviour::default(),
            timeline: Vec::new(),
            balancing: Balancing::default(),
            exceptions: Vec::new(),
            objective: None,
            calls: Vec::new(),
            passes: PassedOn::default(),
        }
    }

    /// The stages of an endpoint without an exception, and so of the upstream as a whole.
    #[must_use]
    pub fn stages(&self) -> Stages {
        self.stages_with(&self.timeline)
    }

    /// The stages of one endpoint.
    #[must_use]
    pub fn stages_of(&self, endpoint: u32) -> Stages {
        self.stages_with(&self.timeline_of(endpoint))
    }

    /// The changes of one endpoint in order of time: those of all endpoints, and its own.
    #[must_use]
    pub fn timeline_of(&self, endpoint: u32) -> Vec<TimedChange> {
        let is_of = |exception: &&Exception| exception.endpoint == endpoint;
        let own = self.exceptions.iter().find(is_of);
        let own = own.map_or(&[][..], |exception| &exception.timeline);
        let mut changes: Vec<TimedChange> = self.timeline.iter().chain(own).cloned().collect();
        // Stable: at the same time, the changes of all endpoints come first.
        changes.sort_by_key(|change| change.at);
        changes
    }

    fn stages_with(&self, changes: &[TimedChange]) -> Stages {
        let mut behaviour = self.behaviour.clone();
        let mut stages = vec![(Duration::ZERO, behaviour.clone())];
        for change in changes {
            behaviour.apply(&change.change);
            stages.push((change.at, behaviour.clone()));
        }
        stages
    }

    /// The most endpoints that are ever in rotation.
    #[must_use]
    pub fn max_endpoints(&self) -> u32 {
        let stages = self.stages().into_iter();
        let counts = stages.map(|(_, behaviour)| behaviour.endpoints);
        counts.max().unwrap_or(1)
    }

    /// Whether endpoints come or go.
    pub(super) fn is_scaled(&self) -> bool {
        let scales = |change: &TimedChange| change.change.endpoints.is_some();
        self.timeline.iter().any(scales)
    }

    /// All timed changes, those of exceptions included.
    pub(super) fn timelines_mut(&mut self) -> impl Iterator<Item = &mut TimedChange> {
        let own = self.exceptions.iter_mut();
        self.timeline
            .iter_mut()
            .chain(own.flat_map(|exception| &mut exception.timeline))
    }
}

/// A change of an upstream's behavior at some time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "FlatChange")]
pub struct TimedChange {
    /// When, from the start of the run.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// What becomes different.
    #[serde(flatten)]
    pub change: Change,
}

/// A [`TimedChange`] as it is written; serde cannot both flatten and reject unknown keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlatChange {
    #[serde(with = "humantime_serde")]
    at: Duration,
    endpoints: Option<u32>,
    slots: Option<u32>,
    service: Option<ServiceTime>,
    mode: Option<UpstreamMode>,
    errors: Option<Errors>,
    delay: Option<Delay>,
    queue: Option<QueueBound>,
    body: Option<Body>,
    failing: Option<BTreeMap<String, u16>>,
    pauses: Option<Pauses>,
    contention: Option<Contention>,
}

impl From<FlatChange> for TimedChange {
    fn from(flat: FlatChange) -> Self {
        let FlatChange {
            at,
            endpoints,
            slots,
            service,
            mode,
            errors,
            delay,
            queue,
            body,
            failing,
            pauses,
            contention,
        } = flat;
        Self {
            at,
            change: Change {
                endpoints,
                slots,
                service,
                mode,
                errors,
                delay,
                queue,
                body,
                failing,
                pauses,
                contention,
            },
        }
    }
}
