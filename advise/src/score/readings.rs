//! Queries Prometheus for the readings that the score needs.
//!
//! A probe comes first. After it, a query that fails leaves its parts unknown, with the reason.

use std::collections::BTreeMap;

use thiserror::Error;
use tidegate_graph::prometheus::{AnswerError, AskError, AskPrometheus, parse};

use super::queries::{ScoreMeasure, ScoreQuery};

/// A query that any Prometheus answers at almost no cost.
const PROBE: &str = "vector(1)";
/// Most bytes of one answer.
const MAX_ANSWER_BYTES: u64 = 16 << 20;
/// After this many queries in a row without an answer, the rest is not sent.
const MAX_FAILURES: u32 = 3;
/// The label that names the upstream.
const UPSTREAM: &str = "tidegate_upstream";

/// Why there is nothing to score.
#[derive(Debug, Error)]
pub enum ReadingsError {
    /// Prometheus does not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The server is not Prometheus.
    #[error("the answer is not one of Prometheus: {0}")]
    Answer(#[from] AnswerError),
    /// Nothing is known without the requests.
    #[error("the query {name} failed: {reason}")]
    Query {
        /// Its name.
        name: String,
        /// Why it failed.
        reason: String,
    },
    /// No upstream has requests.
    #[error(
        "no upstream of Tidegate has requests in the window: do proxies with the filter serve traffic, does Prometheus scrape them, and \
         do they have the labels of dashboards/stats-tags?"
    )]
    Nothing,
}

/// What Prometheus knows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScoreReadings {
    rows: BTreeMap<String, BTreeMap<ScoreMeasure, f64>>,
    /// Queries that failed, and why.
    failed: BTreeMap<ScoreMeasure, String>,
    /// Prometheus' warnings, and the queries that failed.
    pub warnings: Vec<String>,
}

impl ScoreReadings {
    /// Sends all `queries` at `time`, in seconds since 1970.
    ///
    /// # Errors
    /// If Prometheus does not answer, the server is not Prometheus, or there are no requests.
    pub fn ask(
        prometheus: &impl AskPrometheus,
        queries: &[ScoreQuery],
        time: u64,
    ) -> Result<Self, ReadingsError> {
        parse(&prometheus.ask(PROBE, time, MAX_ANSWER_BYTES)?)?;
        let mut readings = Self::default();
        let mut without_answer = 0;
        for query in queries {
            if without_answer >= MAX_FAILURES {
                let reason = "not sent, because the queries before it got no answer".to_owned();
                readings.note_failure(query, reason)?;
                continue;
            }
            let answer = prometheus.ask(&query.promql, time, MAX_ANSWER_BYTES);
            without_answer = if answer.is_err() {
                without_answer + 1
            } else {
                0
            };
            let vector = answer
                .map_err(|error| error.to_string())
                .and_then(|text| parse(&text).map_err(|error| error.to_string()));
            match vector {
                Err(reason) => readings.note_failure(query, reason)?,
                Ok(vector) => {
                    let warnings = vector.warnings.into_iter();
                    readings
                        .warnings
                        .extend(warnings.map(|warning| format!("{}: {warning}", query.name)));
                    for series in vector.series {
                        if let (Some(upstream), Some(value)) =
                            (series.metric.get(UPSTREAM), series.value)
                        {
                            let row = readings.rows.entry(upstream.clone()).or_default();
                            row.insert(query.measure, value);
                        }
                    }
                }
            }
        }
        let has_requests = readings
            .rows
            .keys()
            .any(|upstream| readings.requests(upstream) > 0.0);
        if has_requests {
            Ok(readings)
        } else {
            Err(ReadingsError::Nothing)
        }
    }

    fn note_failure(&mut self, query: &ScoreQuery, reason: String) -> Result<(), ReadingsError> {
        if query.measure == ScoreMeasure::Requests {
            return Err(ReadingsError::Query {
                name: query.name.clone(),
                reason,
            });
        }
        self.warnings
            .push(format!("the query {} failed: {reason}", query.name));
        self.failed.insert(query.measure, reason);
        Ok(())
    }

    /// The upstreams with requests.
    pub(super) fn upstreams(&self) -> impl Iterator<Item = &str> {
        let names = self.rows.keys().map(String::as_str);
        names.filter(|upstream| self.requests(upstream) > 0.0)
    }

    pub(super) fn requests(&self, upstream: &str) -> f64 {
        self.gauge(upstream, ScoreMeasure::Requests)
            .ok()
            .flatten()
            .unwrap_or(0.0)
    }

    /// A value; `None` if Prometheus has none for the upstream. An error says why it is not known.
    pub(super) fn gauge(
        &self,
        upstream: &str,
        measure: ScoreMeasure,
    ) -> Result<Option<f64>, String> {
        if let Some(reason) = self.failed.get(&measure) {
            return Err(format!("not known: the query failed: {reason}"));
        }
        let row = self.rows.get(upstream);
        Ok(row.and_then(|row| row.get(&measure)).copied())
    }

    /// A count. A missing counter counts as 0.
    pub(super) fn count(&self, upstream: &str, measure: ScoreMeasure) -> Result<f64, String> {
        Ok(self.gauge(upstream, measure)?.unwrap_or(0.0))
    }
}
