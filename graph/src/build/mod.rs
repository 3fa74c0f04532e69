//! From a recording to the graph.
//!
//! First every row of every answer becomes a reading of its edge and reporter. Then each edge takes the readings of one
//! source and one reporter: numbers of two proxies about the same request must not be added. Last, what is missing or in
//! doubt becomes warnings.

mod choose;
mod names;
mod readings;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::cluster::ClusterFacts;
use crate::model::ServiceGraph;
use crate::prometheus::{AnswerError, parse};
use crate::queries::{Family, ObservationWindow, QueryError, families};
use crate::recording::Recording;
use crate::warning::{GraphWarning, WarningKind, WarningTally};
use readings::Readings;

/// Why a graph could not be built.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The queries cannot be planned.
    #[error("caller_label: {0}")]
    Queries(#[from] QueryError),
    /// An answer has neither body nor error, or is of no known query.
    #[error("answers[{index}].{field}: found {found}, expected {expected}")]
    Answer {
        /// Position of the answer.
        index: usize,
        /// The field.
        field: &'static str,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// The body of an answer is not one of Prometheus.
    #[error("answers[{index}].body.{source}")]
    Body {
        /// Position of the answer.
        index: usize,
        /// What is wrong.
        source: AnswerError,
    },
}

/// What the operator chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BuildTerms {
    /// An edge with fewer requests in the window is marked.
    pub min_samples: u32,
}

impl Default for BuildTerms {
    /// 100: with fewer requests, the 99th percentile is the slowest of them.
    fn default() -> Self {
        Self { min_samples: 100 }
    }
}

/// A graph, with warnings about its gaps.
#[derive(Clone, Debug)]
pub struct BuiltGraph {
    /// The graph.
    pub graph: ServiceGraph,
    /// When traffic was observed.
    pub observed: ObservationWindow,
    /// The terms on which it was built.
    pub terms: BuildTerms,
    /// What it does not show, or shows with doubt; by kind.
    pub warnings: Vec<GraphWarning>,
    /// Figures from Kubernetes, if it was read.
    pub kubernetes: Option<ClusterFacts>,
}

/// Makes the graph of the answers in a recording.
///
/// # Errors
///
/// If the recording is damaged. A missing answer of a failed query is not damage: it becomes a warning.
pub fn build(recording: &Recording<'_>, terms: BuildTerms) -> Result<BuiltGraph, BuildError> {
    let families = families(&recording.caller_label)?;
    let mut warnings = Vec::new();
    // Prometheus' warnings, mostly the same with each answer.
    let mut said: BTreeMap<String, WarningTally> = BTreeMap::new();
    let mut readings = Readings::default();
    for (index, answer) in recording.answers.iter().enumerate() {
        let (position, family) = family(&families, &answer.family, index)?;
        let query = format!("{} {}", answer.family, answer.measure);
        let vector = match (answer.body, &answer.error) {
            (Some(body), _) => parse(body.get()),
            (None, Some(error)) => Err(AnswerError::Rejected {
                kind: "no answer".to_owned(),
                message: error.clone(),
            }),
            (None, None) => {
                return Err(BuildError::Answer {
                    index,
                    field: "body",
                    found: "nothing".to_owned(),
                    expected: "an answer of Prometheus, or an error".to_owned(),
                });
            }
        };
        match vector {
            Ok(vector) => {
                for message in vector.warnings {
                    said.entry(message).or_default().add(|| query.clone());
                }
                readings.take(position, family, answer.measure, vector.series);
            }
            Err(AnswerError::Rejected { kind, message }) => {
                warnings.push(GraphWarning {
                    kind: WarningKind::QueryFailed,
                    count: 1,
                    message: format!("{query} is unknown: {kind}: {message}"),
                });
            }
            Err(source @ AnswerError::Malformed { .. }) => {
                return Err(BuildError::Body { index, source });
            }
        }
    }
    warnings.extend(said.into_iter().filter_map(|(message, queries)| {
        let text = format!("queries whose answers have a warning, {message:?}");
        queries.warning(WarningKind::Prometheus, &text)
    }));
    let mut chosen = choose::choose(readings, recording.observed, terms);
    warnings.extend(chosen.warnings);
    if let Some(cluster) = &recording.kubernetes {
        warnings.extend(cluster.join(&mut chosen.graph));
    }
    if chosen.graph.petgraph().edge_count() == 0 {
        warnings.push(no_edges(recording));
    }
    warnings.sort();
    warnings.dedup();
    Ok(BuiltGraph {
        graph: chosen.graph,
        observed: recording.observed,
        terms,
        warnings,
        kubernetes: recording.kubernetes.clone(),
    })
}

fn family<'a>(
    families: &'a [Family],
    name: &str,
    index: usize,
) -> Result<(usize, &'a Family), BuildError> {
    families
        .iter()
        .enumerate()
        .find(|(_, family)| family.name == name)
        .ok_or_else(|| BuildError::Answer {
            index,
            field: "family",
            found: format!("{name:?}"),
            expected: families
                .iter()
                .map(|family| family.name.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        })
}

fn no_edges(recording: &Recording<'_>) -> GraphWarning {
    let mut names: Vec<&str> = recording
        .answers
        .iter()
        .map(|answer| answer.family.as_str())
        .collect();
    names.dedup();
    GraphWarning {
        kind: WarningKind::NoEdges,
        count: 1,
        message: format!(
            "no requests within {} s in the metrics asked for ({}): does Prometheus scrape the proxies, and is the window long enough?",
            recording.observed.window_seconds,
            names.join(", ")
        ),
    }
}
