//! The plan: every query, with its window, labels and quantile inserted.

use serde::{Deserialize, Serialize};

use super::error::QueryError;
use super::families::{Family, families};
use super::measure::{HistogramForm, QueryMeasure};
use crate::model::MetricsSource;

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
    /// The number of points in the window.
    #[must_use]
    pub const fn points(&self) -> u32 {
        match self.window_seconds.checked_div(self.step_seconds) {
            Some(points) => points,
            None => 0,
        }
    }
}

/// One query, ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedQuery {
    /// The family that it belongs to.
    pub family: String,
    /// The source of its metrics.
    pub metrics: MetricsSource,
    /// What it measures.
    pub measure: QueryMeasure,
    /// The expression.
    pub promql: String,
}

/// All queries for the traffic in `window`; `caller` is the label that names the caller in the metrics of Envoy and of
/// Tidegate.
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
