//! The clients of a scenario: what they send, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{AdversaryKind, ClosedLoop, Quota, STANDARD_UPSTREAM};
use crate::profile::ServiceTime;

/// Criticalities from the most important down, as the header names them. Not core's own, so that reading a scenario needs no laws.
pub(crate) const CRITICALITIES: [&str; 4] =
    ["critical_plus", "critical", "sheddable_plus", "sheddable"];

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
    /// Rate over time, in order of time; before the first point nothing is sent. Either this or `closed_loop`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<LoadPoint>,
    /// Callers that wait for their answers before they send again. Either this or `load`; `arrivals` does not apply to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_loop: Option<ClosedLoop>,
    /// Short spikes that replace the rate of `load`.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    /// The caller gives up an attempt after this time, its upload included, unless the moment has come that
    /// [`super::ScenarioSlo::until`] names.
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
    /// Body of its requests; none: requests are complete with their headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload: Option<Upload>,
    /// The caller closes a response, as a good one, this long after the moment that [`super::ScenarioSlo::until`] names; none: it
    /// reads to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_for: Option<ServiceTime>,
    /// What the service grants this client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
    /// The `user-agent` that it sends; none: it sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The cohort that it claims. Where any client has one, all callers send a cohort, the others one of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cohort: Option<String>,
    /// It asks the proxy to end each attempt as timed out after this (`x-envoy-upstream-rq-timeout-ms`).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "humantime_serde"
    )]
    pub timeout: Option<Duration>,
    /// Whether it says how long it waits ([`crate::policy::DEADLINE_HEADER`]); the policy trusts that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_deadline: bool,
    /// How long it reads a body before it goes away. It reads so slowly that the body, which is larger than all buffers on
    /// the way, has not ended by then. A slot that the body holds is taken until then.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "humantime_serde"
    )]
    pub dawdles: Option<Duration>,
    /// What it does if it is an adversary: its requests count neither as good nor as missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adversary: Option<AdversaryKind>,
}

impl ClientProfile {
    /// Ordinary callers of the standard upstream with this load.
    #[must_use]
    pub fn sending(load: Vec<LoadPoint>) -> Self {
        Self {
            upstream: standard_upstream_name(),
            arrivals: Arrivals::Poisson,
            load,
            closed_loop: None,
            bursts: None,
            deadline: one_second(),
            retries: None,
            criticality: BTreeMap::new(),
            paths: BTreeMap::new(),
            upload: None,
            reads_for: None,
            quota: None,
            agent: None,
            cohort: None,
            timeout: None,
            tells_deadline: false,
            dawdles: None,
            adversary: None,
        }
    }
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
    /// Whether the rate grows evenly from the point before up to this one, instead of a step.
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

/// The body of a client's requests. The headers are sent at once; the upstream begins its work when the last byte
/// has come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upload {
    /// Time from the headers to the last byte, for uploads that end.
    pub duration: ServiceTime,
    /// Share of uploads that never end, 0..=1; their callers give up at the deadline.
    #[serde(default)]
    pub stalled: f64,
}

/// What a caller does about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retries {
    /// Most attempts after the first.
    pub max: u32,
    /// Pause before the first retry; doubles with each, with full jitter, unless it is `steady`.
    #[serde(with = "humantime_serde")]
    pub backoff: Duration,
    /// Whether the pause is always the same and without jitter, as in scripts and naive clients.
    #[serde(default)]
    pub steady: bool,
    /// Whether it also retries where the proxy forbids it (`x-envoy-ratelimited`), as callers other than Envoy do.
    #[serde(default)]
    pub stubborn: bool,
    /// Whether it hides that an attempt is a retry, which no Envoy does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untold: bool,
}

impl Retries {
    /// How long a caller waits after its attempt number `attempts`, given a number drawn evenly from 0..1.
    ///
    /// Exponential with full jitter, so that callers do not come back in step, unless the pause is steady.
    #[must_use]
    pub fn pause(&self, attempts: u32, drawn: f64) -> Duration {
        if self.steady {
            return self.backoff;
        }
        let longest = self.backoff * 2_u32.saturating_pow(attempts.saturating_sub(1));
        longest.mul_f64(drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "world")]
    #[test]
    fn the_criticalities_are_those_of_the_laws() {
        let mut of_laws = tidegate_core::Criticality::ALL.map(tidegate_core::Criticality::name);
        of_laws.reverse();
        assert_eq!(CRITICALITIES, of_laws);
    }

    #[test]
    fn a_steady_pause_neither_grows_nor_jitters() {
        let retries = Retries {
            max: 10,
            backoff: Duration::from_secs(2),
            steady: true,
            stubborn: false,
            untold: false,
        };
        assert_eq!(retries.pause(5, 0.25), Duration::from_secs(2));
        let growing = Retries {
            steady: false,
            ..retries
        };
        assert_eq!(
            growing.pause(3, 0.25),
            Duration::from_secs(2),
            "a quarter of 8 s"
        );
    }
}
