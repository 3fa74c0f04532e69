//! What is promised to the callers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Scenario;
use crate::fault::ProxyFault;

/// Service level objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScenarioSlo {
    /// An answer later than this is not a good answer. It counts from the end of the upload, if there is one,
    /// because that time is the caller's.
    #[serde(with = "humantime_serde")]
    pub latency: Duration,
    /// Share of answers that must be in time, in (0, 1).
    pub quantile: f64,
    /// The moment of a response to which latency is measured, and to which a caller's deadline applies.
    #[serde(skip_serializing_if = "LatencyUntil::is_default")]
    pub until: LatencyUntil,
}

/// The moment of a response to which latency is measured. A response that is broken off after it is not a good answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyUntil {
    /// Its headers.
    #[default]
    Headers,
    /// The first byte of its body; where it has none, its end.
    FirstByte,
    /// Its last byte.
    End,
}

impl Scenario {
    /// The latency that is promised to a caller whose request comes at this time: that of the objective, or of the last one
    /// that was pushed to all proxies.
    #[must_use]
    pub fn latency_at(&self, at: Duration) -> Duration {
        let mut latest = (Duration::ZERO, self.slo.latency);
        for incident in &self.incidents {
            if let ProxyFault::PushObjective { latency } = incident.what
                && incident.proxy.is_none()
                && (latest.0..=at).contains(&incident.at)
            {
                latest = (incident.at, latency);
            }
        }
        latest.1
    }
}

impl LatencyUntil {
    /// Whether it is the default, which files leave out.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for ScenarioSlo {
    fn default() -> Self {
        Self {
            latency: Duration::from_millis(300),
            quantile: 0.99,
            until: LatencyUntil::Headers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_push_to_all_proxies_is_what_is_promised() {
        let text = "name='t'\ntitle='t'\nprose='p'\nseed=1\nduration='9s'\n[[clients]]\nload=[{at='0s', x=0.5}]\n\
            [[incidents]]\nat='6s'\nkind='push-objective'\nlatency='80ms'\n\
            [[incidents]]\nat='3s'\nkind='push-objective'\nlatency='150ms'\n\
            [[incidents]]\nat='4s'\nproxy=0\nkind='push-objective'\nlatency='1s'";
        let scenario = Scenario::parse(text, "test").unwrap();
        let at = |second| scenario.latency_at(Duration::from_secs(second)).as_millis();
        assert_eq!([0, 2, 3, 5, 6, 8].map(at), [300, 300, 150, 150, 80, 80]);
    }
}
