//! An answer of `/api/v1/query`.
//!
//! The format: <https://prometheus.io/docs/prometheus/latest/querying/api/>. Values are texts, because JSON has no NaN and
//! no infinity.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use thiserror::Error;

/// Longest text of Prometheus in an error, in characters.
const MAX_SHOWN: usize = 200;

/// Why an answer is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// Prometheus says that the query failed.
    #[error("Prometheus rejected the query: {kind}: {message}")]
    Rejected {
        /// Prometheus' kind of the error, such as `bad_data` or `timeout`.
        kind: String,
        /// Its message.
        message: String,
    },
    /// The answer is not what the API defines.
    #[error("{path}: {message}, expected an answer of Prometheus' API with an instant vector")]
    Malformed {
        /// Where in the answer.
        path: String,
        /// What is wrong.
        message: String,
    },
}

/// One series of an instant vector.
#[derive(Debug, Deserialize)]
pub struct AnswerSeries {
    /// The labels.
    pub metric: BTreeMap<String, String>,
    /// The value; `None` if it is NaN or infinite.
    #[serde(deserialize_with = "value")]
    pub value: Option<f64>,
}

/// The series of an answer, and the warnings that Prometheus gave with them.
#[derive(Debug, Default)]
pub struct Vector {
    /// The series.
    pub series: Vec<AnswerSeries>,
    /// The warnings; a partial answer has one.
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    status: String,
    data: Option<Data>,
    error_type: Option<String>,
    error: Option<String>,
    /// Absent or `null` without warnings.
    warnings: Option<Vec<String>>,
    /// The cluster version of VictoriaMetrics sets this instead of a warning.
    is_partial: Option<bool>,
    // `infos` are not read: they hint at names of metrics, for each query.
}

#[derive(Deserialize)]
struct Data {
    result: Vec<AnswerSeries>,
}

/// Reads the text of an answer.
///
/// # Errors
///
/// If Prometheus says that the query failed, or the text is not an answer with an instant vector.
pub fn parse(text: &str) -> Result<Vector, AnswerError> {
    let reader = &mut serde_json::Deserializer::from_str(text);
    let envelope: Envelope =
        serde_path_to_error::deserialize(reader).map_err(|error| AnswerError::Malformed {
            path: error.path().to_string(),
            message: shortened(&error.inner().to_string()),
        })?;
    if envelope.status != "success" {
        return Err(AnswerError::Rejected {
            kind: shortened(
                &envelope
                    .error_type
                    .unwrap_or_else(|| envelope.status.clone()),
            ),
            message: shortened(&envelope.error.unwrap_or_default()),
        });
    }
    let data = envelope.data.ok_or_else(|| AnswerError::Malformed {
        path: "data".to_owned(),
        message: "found nothing".to_owned(),
    })?;
    let said = envelope.warnings.unwrap_or_default();
    let mut warnings: Vec<String> = said.iter().map(|text| shortened(text)).collect();
    if envelope.is_partial == Some(true) {
        warnings.push("the answer is partial".to_owned());
    }
    Ok(Vector {
        series: data.result,
        warnings,
    })
}

/// The first characters of a text that came over the network.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

fn value<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<f64>, D::Error> {
    let (_at, text): (f64, String) = Deserialize::deserialize(reader)?;
    let number: f64 = text.parse().map_err(|_| {
        D::Error::custom(format_args!(
            "found {:?}, expected a number as text",
            shortened(&text)
        ))
    })?;
    Ok(number.is_finite().then_some(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(result: &str) -> String {
        format!(r#"{{"status":"success","data":{{"resultType":"vector","result":{result}}}}}"#)
    }

    #[test]
    fn an_instant_vector_becomes_series() {
        let text = vector(r#"[{"metric":{"a":"b"},"value":[1700000000.123,"1.5"]}]"#);

        let parsed = parse(&text).unwrap();

        assert_eq!(parsed.series[0].metric["a"], "b");
        assert_eq!(parsed.series[0].value, Some(1.5));
    }

    #[test]
    fn nan_and_infinity_are_no_values() {
        for text in ["NaN", "+Inf", "-Inf"] {
            let parsed = parse(&vector(&format!(
                r#"[{{"metric":{{}},"value":[1,"{text}"]}}]"#
            )));
            assert_eq!(parsed.unwrap().series[0].value, None, "{text}");
        }
    }

    #[test]
    fn errors_of_prometheus_are_passed_on() {
        let text = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;

        let error = parse(text).unwrap_err();

        assert_eq!(
            error.to_string(),
            "Prometheus rejected the query: bad_data: parse error"
        );
    }

    #[test]
    fn a_wrong_answer_says_where() {
        for (result, expected) in [
            (
                r#"[{"metric":{},"value":[1,"soon"]}]"#,
                "data.result[0].value: found \"soon\"",
            ),
            (
                r#"[{"metric":{},"values":[[1,"2"]]}]"#,
                "data.result[0]: missing field `value`",
            ),
            (r#"[1,"2"]"#, "data.result[0]: invalid type: integer"),
        ] {
            let error = parse(&vector(result)).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = parse(r#"{"status":"success"}"#).unwrap_err().to_string();
        assert!(
            error.starts_with("data: found nothing, expected an answer"),
            "{error}"
        );
    }

    #[test]
    fn warnings_are_kept() {
        let text = r#"{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["partial"],"infos":["x"]}"#;

        assert_eq!(parse(text).unwrap().warnings, ["partial"]);
        let text = r#"{"status":"success","isPartial":true,"warnings":null,"data":{"resultType":"vector","result":[]}}"#;
        assert_eq!(parse(text).unwrap().warnings, ["the answer is partial"]);
    }
}
