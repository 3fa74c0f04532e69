//! The queries, read from `queries.toml`, and the plan of what is asked.
//!
//! Placeholders are replaced as text. What is inserted is made here or checked here: numbers, and a label's name.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::model::{MetricsSource, VertexKind};

/// The data.
const QUERIES: &str = include_str!("queries.toml");
/// Longest accepted name of a label.
const MAX_LABEL: usize = 128;

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The caller label is no label.
    #[error("caller label: found {0:?}, expected the name of a label such as \"job\" or \"node\"")]
    Label(String),
    /// The window or its step is out of range.
    #[error(
        "window {window}s, step {step}s: expected a step of at least 1s and a window that is no shorter"
    )]
    Window {
        /// Seconds of the window.
        window: u32,
        /// Seconds of a step.
        step: u32,
    },
    /// The file of the queries is wrong, which a test of this crate excludes.
    #[error("queries.toml: {0}")]
    Data(#[from] toml::de::Error),
}

/// When traffic was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservationWindow {
    /// Its end, in seconds since 1970.
    pub end: u64,
    /// Its length, in seconds.
    pub window_seconds: u32,
    /// The distance of its points, in seconds.
    pub step_seconds: u32,
}

impl ObservationWindow {
    /// How many points the window has.
    #[must_use]
    pub const fn points(&self) -> u32 {
        match self.window_seconds.checked_div(self.step_seconds) {
            Some(points) => points,
            None => 0,
        }
    }
}

/// Which form of histogram a query of a latency reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistogramForm {
    /// Buckets as series with the label `le`.
    Classic,
    /// Native histograms, also those with the custom buckets of classic ones.
    Native,
}

/// What a query measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "queries.toml says what each one is")]
pub enum QueryMeasure {
    Rate,
    Points,
    LastSeen,
    Requests,
    Failures,
    Mean(HistogramForm),
    P50(HistogramForm),
    P95(HistogramForm),
    P99(HistogramForm),
    InFlight,
    Services,
}

impl fmt::Display for QueryMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, form) = match self {
            Self::Rate => ("rate", None),
            Self::Points => ("points", None),
            Self::LastSeen => ("last_seen", None),
            Self::Requests => ("requests", None),
            Self::Failures => ("failures", None),
            Self::Mean(form) => ("mean", Some(form)),
            Self::P50(form) => ("p50", Some(form)),
            Self::P95(form) => ("p95", Some(form)),
            Self::P99(form) => ("p99", Some(form)),
            Self::InFlight => ("in_flight", None),
            Self::Services => ("services", None),
        };
        let native = form.is_some_and(|form| *form == HistogramForm::Native);
        write!(
            f,
            "{name}{}",
            if native { " (native histogram)" } else { "" }
        )
    }
}

/// One query, ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedQuery {
    /// The family that it belongs to.
    pub family: String,
    /// Whose metrics it reads.
    pub metrics: MetricsSource,
    /// What it measures.
    pub measure: QueryMeasure,
    /// The expression.
    pub promql: String,
}

/// A family of metrics with the same labels.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Family {
    pub(crate) name: String,
    pub(crate) metrics: MetricsSource,
    #[serde(default)]
    select: String,
    by: String,
    pub(crate) reporter: Option<String>,
    pub(crate) caller: EndLabels,
    pub(crate) upstream: EndLabels,
    pub(crate) service: Option<EndLabels>,
    pub(crate) latency_unit_seconds: f64,
    queries: FamilyQueries,
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyQueries {
    rate: String,
    points: String,
    last_seen: String,
    requests: String,
    failures: String,
    mean: Option<String>,
    quantile: Option<String>,
    native_mean: Option<String>,
    native_quantile: Option<String>,
    in_flight: Option<String>,
    services: Option<String>,
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

/// All queries that are asked for the traffic in `window`; `caller` is the label that names the caller in the metrics of
/// Envoy and of Tidegate.
///
/// # Errors
///
/// If `caller` cannot be a label, or the window has no point.
pub fn planned(window: ObservationWindow, caller: &str) -> Result<Vec<PlannedQuery>, QueryError> {
    if window.points() == 0 {
        return Err(QueryError::Window {
            window: window.window_seconds,
            step: window.step_seconds,
        });
    }
    let families = families(caller)?;
    Ok(families
        .iter()
        .flat_map(|family| of_family(family, window))
        .collect())
}

fn of_family(family: &Family, window: ObservationWindow) -> Vec<PlannedQuery> {
    use HistogramForm::{Classic, Native};
    let queries = &family.queries;
    let by_quantile = |quantile: &Option<String>, form| {
        [
            (QueryMeasure::P50(form), "0.5"),
            (QueryMeasure::P95(form), "0.95"),
            (QueryMeasure::P99(form), "0.99"),
        ]
        .map(|(measure, value)| {
            (
                measure,
                quantile
                    .as_ref()
                    .map(|text| text.replace("$quantile", value)),
            )
        })
    };
    let mut all = vec![
        (QueryMeasure::Rate, Some(queries.rate.clone())),
        (QueryMeasure::Points, Some(queries.points.clone())),
        (QueryMeasure::LastSeen, Some(queries.last_seen.clone())),
        (QueryMeasure::Requests, Some(queries.requests.clone())),
        (QueryMeasure::Failures, Some(queries.failures.clone())),
        (QueryMeasure::Mean(Classic), queries.mean.clone()),
        (QueryMeasure::Mean(Native), queries.native_mean.clone()),
        (QueryMeasure::InFlight, queries.in_flight.clone()),
        (QueryMeasure::Services, queries.services.clone()),
    ];
    all.extend(by_quantile(&queries.quantile, Classic));
    all.extend(by_quantile(&queries.native_quantile, Native));
    all.into_iter()
        .filter_map(|(measure, text)| {
            Some(PlannedQuery {
                family: family.name.clone(),
                metrics: family.metrics,
                measure,
                promql: text?
                    .replace("$by", &family.by)
                    .replace("$select", &family.select)
                    .replace("$window", &format!("{}s", window.window_seconds))
                    .replace("$step", &format!("{}s", window.step_seconds)),
            })
        })
        .collect()
}
