//! What the graph does not show, or shows with doubt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many examples a warning names.
const EXAMPLES: usize = 3;

/// The kind of a warning.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// A query failed: what it measures is unknown.
    QueryFailed,
    /// Prometheus answered and warned, for example of an answer that is not complete.
    Prometheus,
    /// There are no metrics, so there are no edges.
    NoEdges,
    /// The edges have no latency, because there is no histogram.
    NoLatency,
    /// Edges without data in a part of the window.
    Gaps,
    /// Edges whose metrics ended before the end of the window: a workload was removed or renamed.
    Ended,
    /// Requests of callers that are not known.
    UnknownCaller,
    /// Requests to upstreams that are not known.
    UnknownUpstream,
    /// Reporters of the same edge disagree.
    ReportersDiffer,
    /// Kubernetes was not read completely, or does not have a vertex.
    Kubernetes,
    /// Rows that are not edges were left out.
    LeftOut,
}

/// What the graph does not show, or shows with doubt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct GraphWarning {
    /// The kind.
    pub kind: WarningKind,
    /// How many edges, rows or queries it is about.
    pub count: usize,
    /// What was found, and what it means.
    pub message: String,
}

/// Counts the cases of a warning and keeps the first examples.
#[derive(Debug, Default)]
pub(crate) struct WarningTally {
    count: usize,
    examples: Vec<String>,
}

impl WarningTally {
    /// Counts one; `example` is called for the first few.
    pub(crate) fn add(&mut self, example: impl FnOnce() -> String) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example());
        }
    }

    /// The warning, unless nothing was counted: `message`, the count, and examples. `message` is a noun with what
    /// holds for it, so it fits any count.
    pub(crate) fn warning(self, kind: WarningKind, message: &str) -> Option<GraphWarning> {
        let more = if self.count > self.examples.len() {
            ", ..."
        } else {
            ""
        };
        (self.count > 0).then(|| GraphWarning {
            kind,
            count: self.count,
            message: format!(
                "{message} ({}): {}{more}",
                self.count,
                self.examples.join(", ")
            ),
        })
    }
}
