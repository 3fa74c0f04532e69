//! One story for a benchmark run, as data.
//!
//! A scenario defines the clients and their load, how the upstreams behave over time,
//! the objective, and the ranges in which the figures of a run must lie. It knows
//! neither sockets nor Envoy, so that the simulator and the testbed read the same
//! file. All times count from the start of the run.
//!
//! Rates are given as multiples of the upstream's capacity at the start
//! (`x = 0.7`), because that is what makes a story portable between machines.

pub mod adversary;
mod callers;
mod capacity;
mod chain;
mod check;
mod client;
mod closed_loop;
mod conduct;
mod expect;
mod file;
mod inner;
mod objective;
mod quota;
mod stage;
mod upstream;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use adversary::{Adversary, AdversaryKind};
pub use callers::{Callers, HeavyCallers};
pub use chain::{PassedOn, ServiceCall};
pub(crate) use client::CRITICALITIES;
pub use client::{Arrivals, Bursts, ClientProfile, LoadPoint, Retries, Upload};
pub use closed_loop::{CallersPoint, ClosedLoop};
pub use expect::{Measure, Range};
pub use file::{ScenarioError, folder};
pub use inner::InnerClient;
pub use objective::{LatencyUntil, ScenarioSlo};
pub use quota::{Quota, TokenBucket};
pub use stage::{Counting, Incident, Network, RequestSpread};
pub use upstream::{Balancing, Exception, Stages, TimedChange, UpstreamProfile};

/// One story: load, upstreams, objective, expectations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Kebab-case name, equal to the file's name.
    pub name: String,
    /// One line for tables.
    pub title: String,
    /// What happens, and what a good breaker does.
    pub prose: String,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// Length of the run.
    #[serde(with = "humantime_serde")]
    pub duration: Duration,
    /// Time at the start that is driven but not scored (connections, first learning).
    #[serde(default, with = "humantime_serde")]
    pub warmup: Duration,
    /// Worker threads of each proxy.
    #[serde(default = "two")]
    pub workers: u32,
    /// Proxies between the callers and the upstreams; each caller has one of them.
    #[serde(default = "one")]
    pub proxies: u32,
    /// Callers with an identity; none: each request has a caller of its own, and a proxy by chance.
    #[serde(default)]
    pub callers: Option<Callers>,
    /// How requests come to the proxies, if callers have no identity.
    #[serde(default)]
    pub spread: RequestSpread,
    /// How the workers of a proxy count what is in flight.
    #[serde(default)]
    pub counting: Counting,
    /// Time on the wire; by default that of one machine.
    #[serde(default)]
    pub network: Option<Network>,
    /// What happens to the proxies.
    #[serde(default)]
    pub incidents: Vec<Incident>,
    /// What is promised to the callers.
    #[serde(default)]
    pub slo: ScenarioSlo,
    /// The services behind the proxy.
    #[serde(default = "standard_upstream")]
    pub upstreams: Vec<UpstreamProfile>,
    /// The clients that send requests.
    pub clients: Vec<ClientProfile>,
    /// The adversaries as written: a scenario that was read has a client for each instead ([`Self::cast`]).
    #[serde(default, skip_serializing)]
    pub adversaries: Vec<Adversary>,
    /// The services that call others, as clients; a scenario that was read has one for each call of a service.
    #[serde(skip)]
    pub inner: Vec<InnerClient>,
    /// Moments from which settling or recovering is measured.
    #[serde(default)]
    pub marks: Vec<ScenarioMark>,
    /// Ranges in which the figures of a Tidegate run must lie.
    #[serde(default)]
    pub expect: BTreeMap<Measure, Range>,
    /// Ranges for simulated runs, which replace those of the same name in `expect`.
    #[serde(default)]
    pub expect_sim: BTreeMap<Measure, Range>,
}

const fn two() -> u32 {
    2
}

const fn one() -> u32 {
    1
}

fn standard_upstream() -> Vec<UpstreamProfile> {
    vec![UpstreamProfile::named(STANDARD_UPSTREAM)]
}

/// Name of the upstream of a scenario that names none.
pub const STANDARD_UPSTREAM: &str = "main";

/// A moment from which settling or recovering is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioMark {
    /// When.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// What is measured from there.
    pub kind: MarkKind,
}

/// What is measured from a [`ScenarioMark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// The load or the capacity has changed: time until goodput follows (settle time).
    Step,
    /// The load is below the capacity again: time until nothing is shed any more (calm time).
    Fall,
    /// The upstream is well again: time until goodput is back (recovery time).
    Recovery,
}

impl Scenario {
    /// The profile of the upstream `name`.
    #[must_use]
    pub fn upstream(&self, name: &str) -> Option<&UpstreamProfile> {
        self.upstreams.iter().find(|profile| profile.name == name)
    }

    /// The ranges for a simulated run.
    #[must_use]
    pub fn expected_in_sim(&self) -> BTreeMap<Measure, Range> {
        let mut ranges = self.expect.clone();
        ranges.extend(&self.expect_sim);
        ranges
    }

    /// The keys of this scenario that only the simulator can play; empty when real sockets can play it.
    #[must_use]
    pub fn only_simulated(&self) -> Vec<&'static str> {
        let keys = [
            ("proxies", self.proxies != 1),
            ("callers", self.callers.is_some()),
            ("counting", self.counting != Counting::Shared),
            ("network", self.network.is_some()),
            ("incidents", !self.incidents.is_empty()),
            (
                "endpoints that come or go",
                self.upstreams.iter().any(UpstreamProfile::is_scaled),
            ),
        ];
        let used = keys.into_iter().filter(|(_, is_used)| *is_used);
        used.map(|(key, _)| key).collect()
    }

    /// The same story told faster or slower: every time of the plot is multiplied by `factor`.
    ///
    /// Service times, bodies, pauses, uploads, deadlines and the objective stay, so that upstream and callers are the
    /// same.
    #[must_use]
    pub fn scaled(mut self, factor: f64) -> Self {
        let scale = |time: &mut Duration| *time = time.mul_f64(factor);
        scale(&mut self.duration);
        scale(&mut self.warmup);
        self.marks.iter_mut().for_each(|mark| scale(&mut mark.at));
        self.upstreams
            .iter_mut()
            .flat_map(UpstreamProfile::timelines_mut)
            .for_each(|change| scale(&mut change.at));
        self.incidents
            .iter_mut()
            .for_each(|incident| scale(&mut incident.at));
        self.clients
            .iter_mut()
            .flat_map(|c| &mut c.load)
            .for_each(|point| scale(&mut point.at));
        self.clients
            .iter_mut()
            .filter_map(|client| client.closed_loop.as_mut())
            .flat_map(|closed| &mut closed.callers)
            .for_each(|point| scale(&mut point.at));
        self
    }
}
