//! What is promised to the callers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Service level objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScenarioSlo {
    /// An answer later than this is no good answer. It counts from the end of the upload, if there is one,
    /// because that time is the caller's.
    #[serde(with = "humantime_serde")]
    pub latency: Duration,
    /// Share of answers that must be in time, in (0, 1).
    pub quantile: f64,
    /// The moment of a response to which latency is measured, and to which a caller's deadline applies.
    #[serde(skip_serializing_if = "LatencyUntil::is_default")]
    pub until: LatencyUntil,
}

/// The moment of a response to which latency is measured. A response that is broken off after it is no good answer.
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
