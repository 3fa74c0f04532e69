//! Reads traces: OTLP as JSON, one document or one a line, and Jaeger's JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

/// A span of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSpan {
    /// Id of the trace.
    pub trace: String,
    /// Id of the span, unique in its trace.
    pub id: String,
    /// Id of the span that caused it.
    pub parent: Option<String>,
    /// The service.
    pub service: String,
    /// When it began, in nanoseconds since 1970.
    pub start_ns: u64,
    /// When it ended, in nanoseconds since 1970.
    pub end_ns: u64,
}

/// Why a text has no traces.
#[derive(Debug)]
pub struct TraceTextError(String);

impl fmt::Display for TraceTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, expected traces as JSON of OTLP or Jaeger", self.0)
    }
}

impl std::error::Error for TraceTextError {}

/// The spans in a text.
///
/// # Errors
///
/// If the text is neither OTLP's nor Jaeger's JSON, with line and column.
pub fn read_traces(text: &str) -> Result<Vec<TraceSpan>, TraceTextError> {
    let mut spans = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<TraceText>() {
        match document.map_err(|error| TraceTextError(error.to_string()))? {
            TraceText {
                resource_spans: None,
                data: None,
            } => {
                return Err(TraceTextError(
                    "found neither resourceSpans nor data".to_owned(),
                ));
            }
            found => {
                spans.extend(
                    found
                        .resource_spans
                        .into_iter()
                        .flatten()
                        .flat_map(OtlpResource::spans),
                );
                spans.extend(
                    found
                        .data
                        .into_iter()
                        .flatten()
                        .flat_map(JaegerTrace::spans),
                );
            }
        }
    }
    if text.trim_ascii().is_empty() {
        return Err(TraceTextError("found nothing".to_owned()));
    }
    Ok(spans)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TraceText {
    resource_spans: Option<Vec<OtlpResource>>,
    data: Option<Vec<JaegerTrace>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OtlpResource {
    #[serde(default)]
    resource: OtlpAttributes,
    #[serde(default)]
    scope_spans: Vec<OtlpScope>,
}

#[derive(Default, Deserialize)]
struct OtlpAttributes {
    #[serde(default)]
    attributes: Vec<OtlpAttribute>,
}

#[derive(Deserialize)]
struct OtlpAttribute {
    key: String,
    #[serde(default)]
    value: OtlpValue,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OtlpValue {
    string_value: Option<String>,
}

#[derive(Deserialize)]
struct OtlpScope {
    #[serde(default)]
    spans: Vec<OtlpSpan>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OtlpSpan {
    trace_id: String,
    span_id: String,
    #[serde(default)]
    parent_span_id: String,
    start_time_unix_nano: OtlpTime,
    end_time_unix_nano: OtlpTime,
}

/// 64-bit integers are texts in the JSON of protocol buffers; some programs write numbers.
#[derive(Deserialize)]
#[serde(untagged)]
enum OtlpTime {
    Number(u64),
    Text(#[serde(deserialize_with = "number")] u64),
}

fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

impl OtlpTime {
    const fn nanos(&self) -> u64 {
        match self {
            Self::Number(nanos) | Self::Text(nanos) => *nanos,
        }
    }
}

impl OtlpResource {
    fn spans(self) -> Vec<TraceSpan> {
        let attributes = self.resource.attributes.into_iter();
        let service = attributes
            .filter(|attribute| attribute.key == "service.name")
            .find_map(|attribute| attribute.value.string_value);
        // Spans without a service cannot be attributed.
        let Some(service) = service else {
            return Vec::new();
        };
        let spans = self.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans
            .map(|span| TraceSpan {
                trace: span.trace_id,
                id: span.span_id,
                parent: Some(span.parent_span_id).filter(|parent| !parent.is_empty()),
                service: service.clone(),
                start_ns: span.start_time_unix_nano.nanos(),
                end_ns: span.end_time_unix_nano.nanos(),
            })
            .collect()
    }
}

#[derive(Deserialize)]
struct JaegerTrace {
    #[serde(default)]
    spans: Vec<JaegerSpan>,
    #[serde(default)]
    processes: BTreeMap<String, JaegerProcess>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JaegerProcess {
    service_name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JaegerSpan {
    #[serde(rename = "traceID")]
    trace_id: String,
    #[serde(rename = "spanID")]
    span_id: String,
    #[serde(default)]
    references: Vec<JaegerReference>,
    /// In microseconds since 1970.
    start_time: u64,
    /// In microseconds.
    duration: u64,
    #[serde(rename = "processID")]
    process_id: String,
}

#[derive(Deserialize)]
struct JaegerReference {
    #[serde(rename = "refType")]
    kind: String,
    #[serde(rename = "spanID")]
    span_id: String,
}

impl JaegerTrace {
    fn spans(self) -> Vec<TraceSpan> {
        let processes = self.processes;
        let spans = self.spans.into_iter().filter_map(|span| {
            let parent = span
                .references
                .into_iter()
                .find(|reference| reference.kind == "CHILD_OF");
            Some(TraceSpan {
                service: processes.get(&span.process_id)?.service_name.clone(),
                trace: span.trace_id,
                id: span.span_id,
                parent: parent.map(|reference| reference.span_id),
                start_ns: span.start_time.saturating_mul(1_000),
                end_ns: span
                    .start_time
                    .saturating_add(span.duration)
                    .saturating_mul(1_000),
            })
        });
        spans.collect()
    }
}
