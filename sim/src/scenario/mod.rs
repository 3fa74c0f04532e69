//! One story for a benchmark run, as data.
//!
//! A scenario says who sends what when, how the upstreams behave over time, what
//! is promised to the callers, and in which ranges the figures of a run have to
//! lie. It knows neither sockets nor Envoy, so that a simulator can read the same
//! file. All times count from the start of the run.
//!
//! Rates are given as multiples of the upstream's capacity at the start
//! (`x = 0.7`), because that is what makes a story portable between machines.

mod check;
mod client;
mod expect;
mod file;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::profile::{Behaviour, Change, Delay, Errors, Mode, QueueBound, ServiceTime};

pub use client::{Arrivals, Bursts, ClientProfile, LoadPoint, Retries};
pub use expect::{Measure, Range};
pub use file::{ScenarioError, folder};

/// One story: load, upstreams, objective, expectations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Kebab-case name, equal to the file's name.
    pub name: String,
    /// One line for tables.
    pub title: String,
    /// What happens, and what a good breaker does about it.
    pub prose: String,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// Length of the run.
    #[serde(with = "humantime_serde")]
    pub duration: Duration,
    /// Time at the start that is driven but not scored (connections, first learning).
    #[serde(default, with = "humantime_serde")]
    pub warmup: Duration,
    /// Worker threads of the proxy.
    #[serde(default = "two")]
    pub workers: u32,
    /// What is promised to the callers.
    #[serde(default)]
    pub slo: Slo,
    /// The services behind the proxy.
    #[serde(default = "standard_upstream")]
    pub upstreams: Vec<UpstreamProfile>,
    /// Who sends requests.
    pub clients: Vec<ClientProfile>,
    /// Moments from which settling or recovering is measured.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// Ranges in which the figures of a Tidegate run must lie.
    #[serde(default)]
    pub expect: BTreeMap<Measure, Range>,
}

const fn two() -> u32 {
    2
}

fn standard_upstream() -> Vec<UpstreamProfile> {
    vec![UpstreamProfile {
        name: STANDARD_UPSTREAM.to_owned(),
        behaviour: Behaviour::default(),
        timeline: Vec::new(),
    }]
}

/// Name of the upstream of a scenario that names none.
pub const STANDARD_UPSTREAM: &str = "main";

/// Service level objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Slo {
    /// An answer later than this is no good answer.
    #[serde(with = "humantime_serde")]
    pub latency: Duration,
    /// Share of answers that must be in time, in (0, 1).
    pub quantile: f64,
}

impl Default for Slo {
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(300),
            quantile: 0.99,
        }
    }
}

/// A service behind the proxy and what becomes of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamProfile {
    /// Name by which clients address it.
    pub name: String,
    /// How it behaves at the start.
    #[serde(default)]
    pub behaviour: Behaviour,
    /// What changes when, in order of time.
    #[serde(default)]
    pub timeline: Vec<TimedChange>,
}

impl UpstreamProfile {
    /// The behaviour and when it begins, one after the other; the first begins at zero.
    #[must_use]
    pub fn stages(&self) -> Vec<(Duration, Behaviour)> {
        let mut behaviour = self.behaviour.clone();
        let mut stages = vec![(Duration::ZERO, behaviour.clone())];
        for change in &self.timeline {
            behaviour.apply(&change.change);
            stages.push((change.at, behaviour.clone()));
        }
        stages
    }
}

/// A change of an upstream's behaviour at some time.
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

/// A [`TimedChange`] as it is written; serde cannot both flatten and refuse unknown keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlatChange {
    #[serde(with = "humantime_serde")]
    at: Duration,
    slots: Option<u32>,
    service: Option<ServiceTime>,
    mode: Option<Mode>,
    errors: Option<Errors>,
    delay: Option<Delay>,
    queue: Option<QueueBound>,
}

impl From<FlatChange> for TimedChange {
    fn from(flat: FlatChange) -> Self {
        let FlatChange {
            at,
            slots,
            service,
            mode,
            errors,
            delay,
            queue,
        } = flat;
        Self {
            at,
            change: Change {
                slots,
                service,
                mode,
                errors,
                delay,
                queue,
            },
        }
    }
}

/// A moment from which settling or recovering is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// When.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// What is measured from there.
    pub kind: MarkKind,
}

/// What is measured from a [`Mark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// The load or the capacity has changed: time until goodput follows (settle time).
    Step,
    /// The upstream is well again: time until goodput is back (recovery time).
    Recovery,
}

impl Scenario {
    /// The profile of the upstream `name`.
    #[must_use]
    pub fn upstream(&self, name: &str) -> Option<&UpstreamProfile> {
        self.upstreams.iter().find(|profile| profile.name == name)
    }

    /// Requests a second that the upstream of `client` serves at the start, for the paths this client asks for.
    #[must_use]
    pub fn capacity_for(&self, client: &ClientProfile) -> f64 {
        let Some(profile) = self.upstream(&client.upstream) else {
            return 0.0;
        };
        let behaviour = &profile.behaviour;
        if client.paths.is_empty() {
            return behaviour.capacity();
        }
        let weight: f64 = client.paths.values().sum();
        let work: f64 = client
            .paths
            .iter()
            .map(|(path, share)| behaviour.service_for(path).mean().as_secs_f64() * share / weight)
            .sum();
        f64::from(behaviour.slots) / work
    }

    /// The same story told faster or slower: every time of the plot is multiplied by `factor`.
    ///
    /// Service times, deadlines and the objective stay, so that the upstream is the same.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        let scale = |time: &mut Duration| *time = time.mul_f64(factor);
        scale(&mut self.duration);
        scale(&mut self.warmup);
        self.marks.iter_mut().for_each(|mark| scale(&mut mark.at));
        self.upstreams
            .iter_mut()
            .flat_map(|u| &mut u.timeline)
            .for_each(|change| scale(&mut change.at));
        self.clients
            .iter_mut()
            .flat_map(|c| &mut c.load)
            .for_each(|point| scale(&mut point.at));
        self
    }
}
