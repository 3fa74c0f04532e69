//! Sends all queries of a plan to Prometheus.
//!
//! A probe comes first: if Prometheus is down, slow, something else, or wants other credentials, the command says so at
//! once. After it, a query that fails leaves a gap, and the graph is built from the others. If several in a row get no
//! answer, the rest is not sent, so that an outage does not cost one timeout for each query.

use serde_json::value::RawValue;
use thiserror::Error;

use crate::model::MetricsSource;
use crate::prometheus::{AnswerError, AskError, AskPrometheus, parse};
use crate::queries::{ObservationWindow, PlannedQuery, QueryMeasure};
use crate::recording::{RecordedAnswer, Recording};

/// A query that any Prometheus answers at almost no cost.
const PROBE: &str = "vector(1)";
/// Most bytes of one answer: 200,000 edges.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// Most bytes of all answers.
const MAX_BYTES: u64 = 384 << 20;
/// After this many queries in a row without an answer, the rest is not sent.
const MAX_FAILURES: u32 = 3;

/// The sources whose metrics are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsChoice {
    /// The first source that has any: Istio, then Envoy, then Tidegate.
    First,
    /// All of these.
    All(Vec<MetricsSource>),
}

/// Why nothing was collected.
#[derive(Debug, Error)]
pub enum CollectError {
    /// Not even the probe was answered.
    #[error(transparent)]
    Probe(#[from] AskError),
    /// The answer to the probe is not one of Prometheus.
    #[error("the answer is not one of Prometheus: {0}")]
    Answer(#[from] AnswerError),
    /// All queries failed.
    #[error("all {count} queries failed, the first one because of: {first}")]
    All {
        /// Number of queries.
        count: usize,
        /// Why the first one failed.
        first: String,
    },
}

/// The answers as they came.
#[derive(Debug)]
pub struct Collected {
    observed: ObservationWindow,
    caller_label: String,
    answers: Vec<(PlannedQuery, Result<String, String>)>,
}

impl Collected {
    /// The recording of the answers.
    #[must_use]
    pub fn recording(&self) -> Recording<'_> {
        let answers = self.answers.iter().map(|(query, answer)| {
            let body = answer.as_ref().map_err(Clone::clone).and_then(|text| {
                serde_json::from_str::<&RawValue>(text).map_err(|error| error.to_string())
            });
            let (body, error) = match body {
                Ok(body) => (Some(body), None),
                Err(error) => (None, Some(error)),
            };
            RecordedAnswer {
                family: query.family.clone(),
                measure: query.measure,
                promql: query.promql.clone(),
                body,
                error,
            }
        });
        Recording::new(self.observed, self.caller_label.clone(), answers.collect())
    }
}

/// Sends all queries of `plan`, as [`planned`](crate::planned) made it for `observed` and `caller_label`.
///
/// # Errors
///
/// If Prometheus does not answer the probe, or no query at all.
pub fn collect(
    prometheus: &impl AskPrometheus,
    plan: Vec<PlannedQuery>,
    observed: ObservationWindow,
    caller_label: &str,
    choice: &MetricsChoice,
) -> Result<Collected, CollectError> {
    parse(&prometheus.ask(PROBE, observed.end, MAX_ANSWER_BYTES)?)?;
    let sources: &[MetricsSource] = match choice {
        MetricsChoice::First => &MetricsSource::ALL,
        MetricsChoice::All(sources) => sources,
    };
    let mut asking = QueryRound {
        prometheus,
        time: observed.end,
        room: MAX_BYTES,
        failures: 0,
        answers: Vec::new(),
    };
    let mut plan = plan;
    for source in sources {
        let (of_source, others) = plan.into_iter().partition(|query| query.metrics == *source);
        plan = others;
        let found = asking.ask_all(of_source);
        if found && *choice == MetricsChoice::First {
            break;
        }
    }
    let mut failed = asking
        .answers
        .iter()
        .filter_map(|(_, answer)| answer.as_ref().err());
    let first = failed.next().cloned();
    match first {
        Some(first) if failed.count() + 1 == asking.answers.len() => Err(CollectError::All {
            count: asking.answers.len(),
            first,
        }),
        _ => Ok(Collected {
            observed,
            caller_label: caller_label.to_owned(),
            answers: asking.answers,
        }),
    }
}

struct QueryRound<'a, P> {
    prometheus: &'a P,
    time: u64,
    /// Bytes that are still accepted.
    room: u64,
    /// Queries in a row that got no answer.
    failures: u32,
    answers: Vec<(PlannedQuery, Result<String, String>)>,
}

impl<P: AskPrometheus> QueryRound<'_, P> {
    /// Whether any of the queries found traffic, or failed and so may have.
    fn ask_all(&mut self, queries: Vec<PlannedQuery>) -> bool {
        let mut found = false;
        for query in queries {
            let is_traffic = matches!(query.measure, QueryMeasure::Rate | QueryMeasure::Requests);
            let answer = self.ask(&query).and_then(|text| match parse(&text) {
                Ok(vector) => {
                    found |= is_traffic && !vector.series.is_empty();
                    Ok(text)
                }
                // Prometheus' message stays in the recording.
                Err(AnswerError::Rejected { .. }) => {
                    found |= is_traffic;
                    Ok(text)
                }
                Err(error @ AnswerError::Malformed { .. }) => Err(error.to_string()),
            });
            found |= is_traffic && answer.is_err();
            self.answers.push((query, answer));
        }
        found
    }

    fn ask(&mut self, query: &PlannedQuery) -> Result<String, String> {
        if self.failures >= MAX_FAILURES {
            return Err(format!(
                "not sent, because the {MAX_FAILURES} queries before it got no answer"
            ));
        }
        let limit = MAX_ANSWER_BYTES.min(self.room);
        match self.prometheus.ask(&query.promql, self.time, limit) {
            Ok(text) => {
                self.failures = 0;
                self.room = self
                    .room
                    .saturating_sub(u64::try_from(text.len()).unwrap_or(u64::MAX));
                Ok(text)
            }
            Err(error) => {
                self.failures = match error {
                    AskError::TooLarge { .. } => 0,
                    _ => self.failures + 1,
                };
                Err(error.to_string())
            }
        }
    }
}
