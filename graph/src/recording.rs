//! A recording: the unchanged answers of Prometheus, in a JSON file.
//!
//! The graph is always built from a recording, so a test or a bug report needs no cluster. The bodies are borrowed from
//! the text of the file, because together they may be hundreds of megabytes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::cluster::ClusterFacts;
use crate::queries::{ObservationWindow, QueryMeasure};

/// The name of the format in a recording.
const FORMAT: &str = "tidegate-graph-recording/1";

/// Why a text is not a recording.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The text cannot be read.
    #[error("{path}: {reason}, expected a recording that tidegate graph --record wrote")]
    Damaged {
        /// The place in the document; `.` is the whole document.
        path: String,
        /// What is wrong, with line and column.
        reason: String,
    },
    /// The text has another format.
    #[error("format: found {found:?}, expected {FORMAT:?}")]
    Format {
        /// The format that it names.
        found: String,
    },
    /// The recording cannot be written.
    #[error("{0}")]
    Write(#[from] serde_json::Error),
}

/// The answers to all queries of a plan.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recording<'a> {
    format: String,
    /// When traffic was observed.
    pub observed: ObservationWindow,
    /// The label that names the caller in the metrics of Envoy and of Tidegate.
    pub caller_label: String,
    /// One for each query.
    #[serde(borrow)]
    pub answers: Vec<RecordedAnswer<'a>>,
    /// What Kubernetes says, if it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<ClusterFacts>,
}

/// The answer to one query: a body, or the reason why there is none.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedAnswer<'a> {
    /// The family of the query.
    pub family: String,
    /// What it measures.
    pub measure: QueryMeasure,
    /// The expression.
    pub promql: String,
    /// Prometheus' answer.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub body: Option<&'a RawValue>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl<'a> Recording<'a> {
    /// A recording of these answers.
    #[must_use]
    pub fn new(
        observed: ObservationWindow,
        caller_label: String,
        answers: Vec<RecordedAnswer<'a>>,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            observed,
            caller_label,
            answers,
            kubernetes: None,
        }
    }

    /// Reads the text of a recording.
    ///
    /// # Errors
    ///
    /// If the text is not a recording, with the place in it.
    pub fn parse(text: &'a str) -> Result<Self, RecordingError> {
        let reader = &mut serde_json::Deserializer::from_str(text);
        let recording: Self = serde_path_to_error::deserialize(&mut *reader).map_err(|error| {
            RecordingError::Damaged {
                // The library writes `?` for a place that it cannot name.
                path: error.path().to_string().replace('?', "."),
                reason: error.inner().to_string(),
            }
        })?;
        reader.end().map_err(|error| RecordingError::Damaged {
            path: ".".to_owned(),
            reason: error.to_string(),
        })?;
        if recording.format == FORMAT {
            Ok(recording)
        } else {
            Err(RecordingError::Format {
                found: recording.format,
            })
        }
    }

    /// Writes the recording as one line of JSON.
    ///
    /// # Errors
    ///
    /// If `out` cannot be written.
    pub fn write(&self, out: impl std::io::Write) -> Result<(), RecordingError> {
        Ok(serde_json::to_writer(out, self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queries::HistogramForm;

    fn written(recording: &Recording<'_>) -> String {
        let mut text = Vec::new();
        recording.write(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn observed() -> ObservationWindow {
        ObservationWindow {
            end: 1_700_000_000,
            window_seconds: 3_600,
            step_seconds: 300,
        }
    }

    #[test]
    fn a_recording_is_read_as_it_was_written() {
        let body = r#"{"status": "success",  "data": {}}"#;
        let answer = RecordedAnswer {
            family: "istio-workloads".to_owned(),
            measure: QueryMeasure::P99(HistogramForm::Native),
            promql: "x".to_owned(),
            body: Some(serde_json::from_str(body).unwrap()),
            error: None,
        };
        let text = written(&Recording::new(observed(), "job".to_owned(), vec![answer]));

        let read = Recording::parse(&text).unwrap();

        assert_eq!(read.observed, observed());
        assert_eq!(read.answers[0].body.unwrap().get(), body);
        assert_eq!(
            read.answers[0].measure,
            QueryMeasure::P99(HistogramForm::Native)
        );
    }

    #[test]
    fn a_damaged_recording_says_where_and_what_was_expected() {
        let text = written(&Recording::new(observed(), "job".to_owned(), Vec::new()));
        let wrong_end = text.replace("1700000000", "\"noon\"");
        for (text, expected) in [
            (
                wrong_end.as_str(),
                "observed.end: invalid type: string \"noon\", expected u64 at line 1",
            ),
            ("<html>", ".: expected value at line 1 column 1"),
            ("{}", ".: missing field `format`"),
            (&format!("{text}x"), ".: trailing characters"),
        ] {
            let error = Recording::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
            assert!(
                error.ends_with("expected a recording that tidegate graph --record wrote"),
                "{error}"
            );
        }
        let cut = Recording::parse(text.get(..text.len() / 2).unwrap());
        assert!(cut.unwrap_err().to_string().contains("EOF while parsing"));
        let other = text.replace("recording/1", "recording/2");
        assert_eq!(
            Recording::parse(&other).unwrap_err().to_string(),
            r#"format: found "tidegate-graph-recording/2", expected "tidegate-graph-recording/1""#
        );
    }
}
