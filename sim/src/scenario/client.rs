//! Who sends what when.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::STANDARD_UPSTREAM;

/// One stream of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientProfile {
    /// The upstream it calls.
    #[serde(default = "standard_upstream_name")]
    pub upstream: String,
    /// How arrivals are spread.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Rate over time, in order of time; before the first point nothing is sent.
    pub load: Vec<LoadPoint>,
    /// Short spikes on top of `load`.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    /// The caller gives up an attempt after this time.
    #[serde(default = "one_second", with = "humantime_serde")]
    pub deadline: Duration,
    /// What the caller does about a failed attempt.
    #[serde(default)]
    pub retries: Option<Retries>,
    /// Share of each criticality (`sheddable`, `critical`, ...); empty: the header is not sent.
    #[serde(default)]
    pub criticality: BTreeMap<String, f64>,
    /// Share of each path; empty: `/`.
    #[serde(default)]
    pub paths: BTreeMap<String, f64>,
}

fn standard_upstream_name() -> String {
    STANDARD_UPSTREAM.to_owned()
}

const fn one_second() -> Duration {
    Duration::from_secs(1)
}

/// How arrivals are spread over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Independent callers.
    #[default]
    Poisson,
    /// Equal distances.
    Constant,
}

/// The rate from some time on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadPoint {
    /// From when on.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// Multiple of the upstream's capacity at the start. Either this or `rps`.
    #[serde(default)]
    pub x: Option<f64>,
    /// Requests a second. Either this or `x`.
    #[serde(default)]
    pub rps: Option<f64>,
    /// Whether the rate grows evenly from the point before up to this one, in place of a step.
    #[serde(default)]
    pub ramp: bool,
}

/// Short spikes at regular distances; while one lasts it replaces the rate of `load`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// Distance between the beginnings of two spikes.
    #[serde(with = "humantime_serde")]
    pub every: Duration,
    /// Length of a spike.
    #[serde(with = "humantime_serde")]
    pub length: Duration,
    /// Rate within a spike, as a multiple of the upstream's capacity at the start.
    pub x: f64,
}

/// What a caller does about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// Most attempts after the first.
    pub max: u32,
    /// Pause before the first retry; doubles with each, with full jitter.
    #[serde(with = "humantime_serde")]
    pub backoff: Duration,
    /// Whether it tries again also where the proxy says that this is of no use (`x-envoy-ratelimited`), as callers
    /// do that are no Envoys.
    #[serde(default)]
    pub stubborn: bool,
}
