//! What a run happens on: the network, and what becomes of the proxies.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::contender::Mishap;

/// Time on the wire, one way, between caller and proxy and between proxy and upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// At least so long.
    #[serde(with = "humantime_serde")]
    pub delay: Duration,
    /// And up to so much longer, evenly spread.
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

/// Something that happens to every proxy at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "FlatIncident")]
pub struct Incident {
    /// When, from the start of the run.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
    /// What.
    #[serde(flatten)]
    pub what: Mishap,
}

/// An [`Incident`] as it is written; serde cannot both flatten and refuse unknown keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FlatIncident {
    #[serde(with = "humantime_serde")]
    at: Duration,
    kind: Kind,
    worker: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    WorkerCrash,
    LeaderLost,
    LeaderChanged,
    Push,
}

impl TryFrom<FlatIncident> for Incident {
    type Error = &'static str;

    fn try_from(flat: FlatIncident) -> Result<Self, Self::Error> {
        let what = match (flat.kind, flat.worker) {
            (Kind::WorkerCrash, Some(worker)) => Mishap::WorkerCrash { worker },
            (Kind::WorkerCrash, None) => return Err("worker-crash needs a worker"),
            (_, Some(_)) => return Err("only worker-crash has a worker"),
            (Kind::LeaderLost, None) => Mishap::LeaderLost,
            (Kind::LeaderChanged, None) => Mishap::LeaderChanged,
            (Kind::Push, None) => Mishap::Push,
        };
        Ok(Self { at: flat.at, what })
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
        for wrong in [
            "kind='worker-crash'",
            "kind='push'\nworker=0",
            "kind='push'\nwhy='x'",
            "kind='worker-crash'\nworker=2",
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
