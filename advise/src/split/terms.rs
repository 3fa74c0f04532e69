//! The objective to split, and the result.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// Most services that one objective is split among.
pub const MAX_SERVICES: usize = 2_000;

/// Calls of one caller that are made at the same time. Names are `namespace/name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParallelCalls {
    /// The caller.
    pub caller: String,
    /// The service that is called.
    pub upstreams: BTreeSet<String>,
}

/// One objective end to end.
#[derive(Clone, Debug, PartialEq)]
pub struct EndToEnd {
    /// The service that requests enter at, as `namespace/name`.
    pub entry: String,
    /// The share of requests, from 0 to 1, that must be answered within the target.
    pub quantile: f64,
    /// The latency.
    pub target: Duration,
    /// Calls that are made at the same time.
    pub parallel: Vec<ParallelCalls>,
}

/// Why an objective cannot be split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitError {
    /// The graph has no such service, or several.
    Service {
        /// The name.
        name: String,
        /// Vertices with this name.
        found: Vec<String>,
    },
    /// Too many services.
    TooMany {
        /// Number of services.
        found: usize,
    },
}

/// The targets that result from one objective.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectiveSplit {
    /// The target for each call, callers first; empty if the objective is too short for all of them.
    pub parts: Vec<SplitPart>,
    /// The end-to-end time of the medians alone, in seconds.
    pub least_seconds: f64,
    /// The end-to-end time of the targets, in seconds.
    pub used_seconds: f64,
    /// The share of requests that is expected to be late; absent if the objective is too short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_late: Option<f64>,
    /// The share that the objective allows to be late.
    pub allowed_late: f64,
    /// Calls that close a cycle, each as the services on it.
    pub cycles: Vec<Vec<String>>,
    /// Assumptions, and unknown values.
    pub notes: Vec<String>,
}

/// The target for one call.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SplitPart {
    /// The caller; absent for requests to the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The service that is called.
    pub upstream: String,
    /// Number of calls for one request of the caller.
    pub calls: f64,
    /// The part of the target that is the upstream's own time, in seconds.
    pub own_seconds: f64,
    /// The target for the whole call.
    pub target: String,
    /// The share of calls that is expected within the target, 0 to 1.
    pub quantile: f64,
}

impl fmt::Display for SplitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service { name, found } if found.is_empty() => {
                write!(
                    f,
                    "found {name:?}, expected the name of a service in the graph"
                )
            }
            Self::Service { name, found } => write!(
                f,
                "found {name:?}, which is the name of {}: expected one of them",
                found.join(", ")
            ),
            Self::TooMany { found } => write!(
                f,
                "the entry reaches {found} services, expected at most {MAX_SERVICES}"
            ),
        }
    }
}

impl std::error::Error for SplitError {}
