//! One cell of a study's matrix: its settings, and the result.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::CellFigures;

/// Name of the scenarios of `make bench`, which are not a published study.
pub(super) const STUDY_OF_BENCH: &str = "bench";

/// The result of one repetition of a cell; a line of `results.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The study it belongs to.
    pub study: String,
    /// Name of the point in the study's matrix, the same for all contenders, topologies and repetitions.
    pub cell: String,
    /// The load and settings of the point.
    pub parameters: BTreeMap<String, Parameter>,
    /// Where the Envoys were.
    pub topology: Topology,
    /// What protected the upstream, such as `tidegate` or `static-default`.
    pub contender: String,
    /// The repetition, from 0.
    pub repetition: u32,
    /// What made the load.
    pub tool: Tool,
    /// Whether the cell ended without an error.
    pub outcome: CellOutcome,
    /// The figures that the tool provides.
    #[serde(default)]
    pub figures: CellFigures,
    /// Values over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Point>,
    /// The tool's own file, relative to the folder of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// A setting of a cell or of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A switch.
    Switch(bool),
    /// A number.
    Number(f64),
    /// Anything else.
    Text(String),
}

/// Where the Envoys of a cell are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// No Envoy at all.
    Direct,
    /// Every client has its own.
    Sidecar,
    /// One for all clients.
    Shared,
}

/// What makes the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// fortio.
    Fortio,
    /// k6.
    K6,
    /// The testbed's own client.
    Testbed,
}

/// Whether a cell ended without an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CellOutcome {
    /// It did; its figures count.
    Ok,
    /// It did not, and there are no figures.
    Failed {
        /// Why.
        error: String,
    },
}

/// Values of one period, usually a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Beginning of the period, in seconds from the start of the load.
    pub t: f64,
    /// Requests a second.
    pub rps: f64,
    /// Answers with success and within the objective's latency, a second.
    pub good_rps: f64,
    /// Requests that the proxy shed, a second.
    pub shed_rps: f64,
    /// Other failures, a second.
    pub error_rps: f64,
    /// 95th percentile of latency in milliseconds; `None` without any answer.
    pub p95_ms: Option<f64>,
}

impl CellResult {
    /// Whether this is a result of the same cell, with the same contender and repetition.
    #[must_use]
    pub fn is_same_cell(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    fn identity(&self) -> (&str, &str, Topology, &str, u32) {
        (
            &self.study,
            &self.cell,
            self.topology,
            &self.contender,
            self.repetition,
        )
    }

    /// The error, if the cell failed.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match &self.outcome {
            CellOutcome::Ok => None,
            CellOutcome::Failed { error } => Some(error),
        }
    }

    /// A parameter that is a number.
    #[must_use]
    pub fn number(&self, parameter: &str) -> Option<f64> {
        match self.parameters.get(parameter)? {
            Parameter::Number(number) => Some(*number),
            Parameter::Switch(_) | Parameter::Text(_) => None,
        }
    }

    /// Study, cell, topology, contender and repetition in one line.
    #[must_use]
    pub fn name(&self) -> String {
        let Self {
            study,
            cell,
            topology,
            contender,
            repetition,
            ..
        } = self;
        format!("{study} {cell} {topology} {contender} #{repetition}")
    }
}

impl Tool {
    /// Program whose version belongs to the metadata; `None` for our own client.
    #[must_use]
    pub const fn program(self) -> Option<&'static str> {
        match self {
            Self::Fortio => Some("fortio"),
            Self::K6 => Some("k6"),
            Self::Testbed => None,
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Direct => "direct",
            Self::Sidecar => "sidecar",
            Self::Shared => "shared",
        })
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.program().unwrap_or("testbed"))
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(is_on) => f.pad(if *is_on { "yes" } else { "no" }),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.pad(text),
        }
    }
}

impl From<f64> for Parameter {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Parameter {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<bool> for Parameter {
    fn from(is_on: bool) -> Self {
        Self::Switch(is_on)
    }
}

impl From<&str> for Parameter {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn cell(cell: &str, contender: &str, repetition: u32) -> CellResult {
        CellResult {
            study: "breakers".to_owned(),
            cell: cell.to_owned(),
            parameters: [("qps".to_owned(), 1_000_u32.into())].into(),
            topology: Topology::Shared,
            contender: contender.to_owned(),
            repetition,
            tool: Tool::Fortio,
            outcome: CellOutcome::Ok,
            figures: CellFigures {
                qps: Some(999.5),
                p99_ms: Some(12.5),
                ..CellFigures::default()
            },
            series: Vec::new(),
            raw: None,
        }
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let mut written = cell("a", "tidegate", 1);
        written.parameters.insert("close".to_owned(), true.into());
        written
            .parameters
            .insert("setup".to_owned(), "bookinfo".into());
        written.outcome = CellOutcome::Failed {
            error: "envoy ended".to_owned(),
        };
        written.series.push(Point {
            t: 1.0,
            rps: 2.0,
            ..Point::default()
        });
        let line = serde_json::to_string(&written).unwrap();
        let read: CellResult = serde_json::from_str(&line).unwrap();
        assert_eq!(read, written, "{line}");
        assert_eq!(read.number("qps"), Some(1_000.0));
        assert_eq!(read.number("close"), None);
    }

    #[test]
    fn figures_that_a_tool_does_not_give_may_be_left_out() {
        let line = r#"{"study":"s","cell":"c","parameters":{},"topology":"direct","contender":"none",
            "repetition":0,"tool":"k6","outcome":"ok","figures":{"qps":10}}"#;
        let read: CellResult = serde_json::from_str(line).unwrap();
        assert_eq!((read.figures.qps, read.figures.p99_ms), (Some(10.0), None));
    }
}
