//! The data: families of metrics, and how their labels name callers and upstreams.

use serde::Deserialize;

use super::error::QueryError;
use crate::model::{MetricsSource, VertexKind};

/// The data.
const QUERIES: &str = include_str!("../queries.toml");
/// Longest accepted name of a label.
const MAX_LABEL: usize = 128;

/// A family of metrics with the same labels.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) metrics: MetricsSource,
    #[serde(default)]
    pub(super) select: String,
    pub(super) by: String,
    pub(crate) reporter: Option<String>,
    pub(crate) caller: EndLabels,
    pub(crate) upstream: EndLabels,
    pub(crate) service: Option<EndLabels>,
    pub(crate) latency_unit_seconds: f64,
    pub(super) queries: FamilyQueries,
}

/// The labels that name one end of an edge.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EndLabels {
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: EndKind,
}

/// What the labels of an end name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EndKind {
    Workload,
    Service,
    /// A cluster of Envoy, whose name may contain a service.
    Cluster,
}

impl EndKind {
    pub(crate) const fn vertex(self) -> VertexKind {
        match self {
            Self::Workload => VertexKind::Workload,
            Self::Service | Self::Cluster => VertexKind::Service,
        }
    }
}

/// The queries of a family, with placeholders.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FamilyQueries {
    pub(super) rate: String,
    pub(super) points: String,
    pub(super) last_seen: String,
    pub(super) requests: String,
    pub(super) failures: String,
    pub(super) mean: Option<String>,
    pub(super) quantile: Option<String>,
    pub(super) native_mean: Option<String>,
    pub(super) native_quantile: Option<String>,
    pub(super) in_flight: Option<String>,
    pub(super) services: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryFile {
    families: Vec<Family>,
}

/// The families, with `caller` for the label that names the caller.
pub(crate) fn families(caller: &str) -> Result<Vec<Family>, QueryError> {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_label = caller.len() <= MAX_LABEL
        && caller.starts_with(is_first)
        && caller.chars().all(|c| is_first(c) || c.is_ascii_digit());
    if !is_label {
        return Err(QueryError::Label(caller.chars().take(MAX_LABEL).collect()));
    }
    let file: QueryFile = toml::from_str(&QUERIES.replace("$caller", caller))?;
    Ok(file.families)
}
