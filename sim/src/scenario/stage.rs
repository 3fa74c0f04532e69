//! The network, and incidents of the proxies.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::fault::ProxyFault;

/// Time on the wire, one way, between caller and proxy and between proxy and upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The least time.
    #[serde(with = "humantime_serde")]
    pub delay: Duration,
    /// The most added to it, uniformly distributed.
    #[serde(default, with = "humantime_serde")]
    pub jitter: Duration,
}

/// Two processes on one machine.
impl Default for Network {
    fn default() -> Self {
        Self {
            delay: Duration::from_micros(100),
            jitter: Duration::from_micros(100),
        }
    }
}

/// How the workers of a proxy count what is in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counting {
    /// Together, by a gauge of the proxy.
    #[default]
    Shared,
    /// Each for itself: the proxy refuses the gauge.
    Unshared,
}

/// How requests without a caller of their own come to the proxies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestSpread {
    /// Each to a random one.
    #[default]
    Random,
    /// To one after the other, as a round-robin balancer sends them: each proxy has an even load.
    InTurn,
}

/// A fault of every proxy, or of one, at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "FlatIncident")]
pub struct Incident {
    /// When, from the start of the run.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// The proxy, from 0; none: all proxies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<u32>,
    /// The fault.
    #[serde(flatten)]
    pub what: ProxyFault,
}

/// An [`Incident`] as it is written; serde cannot both flatten and reject unknown keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlatIncident {
    #[serde(with = "humantime_serde")]
    at: Duration,
    kind: StageKind,
    proxy: Option<u32>,
    worker: Option<u32>,
    #[serde(default, with = "humantime_serde")]
    lasts: Option<Duration>,
    millis: Option<i64>,
    #[serde(default, with = "humantime_serde")]
    latency: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StageKind {
    WorkerCrash,
    LeaderLost,
    LeaderChanged,
    LeaderCrash,
    Push,
    PushOther,
    PushObjective,
    PushRejected,
    WorkerLate,
    ClockStep,
    ProxyLeaves,
    ProxyJoins,
}

impl TryFrom<FlatIncident> for Incident {
    type Error = &'static str;

    fn try_from(flat: FlatIncident) -> Result<Self, Self::Error> {
        let what = match (flat.kind, flat.worker, flat.lasts, flat.millis) {
            (StageKind::PushObjective, None, None, None) => ProxyFault::PushObjective {
                latency: flat.latency.ok_or("push-objective needs a latency")?,
            },
            _ if flat.latency.is_some() => return Err("only push-objective has a latency"),
            (StageKind::WorkerCrash, Some(worker), None, None) => {
                ProxyFault::WorkerCrash { worker }
            }
            (StageKind::WorkerCrash, ..) => return Err("worker-crash needs a worker"),
            (StageKind::WorkerLate, Some(worker), Some(lasts), None) => {
                ProxyFault::WorkerLate { worker, lasts }
            }
            (StageKind::WorkerLate, ..) => return Err("worker-late needs a worker and lasts"),
            (StageKind::ClockStep, None, None, Some(millis)) => ProxyFault::ClockStep { millis },
            (StageKind::ClockStep, ..) => return Err("clock-step needs millis"),
            (_, Some(_), ..) => return Err("only worker-crash and worker-late have a worker"),
            (_, _, Some(_), _) => return Err("only worker-late has lasts"),
            (.., Some(_)) => return Err("only clock-step has millis"),
            (StageKind::LeaderLost, ..) => ProxyFault::LeaderLost,
            (StageKind::LeaderChanged, ..) => ProxyFault::LeaderChanged,
            (StageKind::LeaderCrash, ..) => ProxyFault::LeaderCrash,
            (StageKind::Push, ..) => ProxyFault::Push,
            (StageKind::PushOther, ..) => ProxyFault::PushOther,
            (StageKind::PushRejected, ..) => ProxyFault::PushRejected,
            (StageKind::ProxyLeaves, ..) => ProxyFault::ProxyLeaves,
            (StageKind::ProxyJoins, ..) => ProxyFault::ProxyJoins,
        };
        Ok(Self {
            at: flat.at,
            proxy: flat.proxy,
            what,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, ScenarioError};

    fn parse(incident: &str) -> Result<Scenario, ScenarioError> {
        let text = format!(
            "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n[[clients]]\nload=[{{at='0s', x=0.5}}]\n\
             [[incidents]]\nat='3s'\n{incident}"
        );
        Scenario::parse(&text, "test")
    }

    #[test]
    fn an_incident_names_a_worker_only_where_one_crashes() {
        assert!(parse("kind='worker-crash'\nworker=1").is_ok());
        assert!(parse("kind='push'").is_ok());
        assert!(parse("kind='push'\nproxy=0").is_ok());
        assert!(parse("kind='worker-late'\nworker=1\nlasts='2s'").is_ok());
        assert!(parse("kind='clock-step'\nmillis=-500").is_ok());
        assert!(parse("kind='push-objective'\nlatency='80ms'").is_ok());
        for wrong in [
            "kind='worker-crash'",
            "kind='push'\nworker=0",
            "kind='push'\nwhy='x'",
            "kind='worker-crash'\nworker=2",
            "kind='worker-late'\nworker=2\nlasts='2s'",
            "kind='worker-late'\nworker=0",
            "kind='push'\nproxy=1",
            "kind='push'\nmillis=1",
            "kind='clock-step'",
            "kind='push-objective'",
            "kind='push-objective'\nlatency='0s'",
            "kind='push-objective'\nlatency='80ms'\nmillis=1",
            "kind='push'\nlatency='80ms'",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_simulator_plays_incidents() {
        let keys = parse("kind='leader-lost'").unwrap().only_simulated();
        assert_eq!(keys, ["incidents"]);
    }
}
