//! Durations in Envoy's documents.

use std::time::Duration;

/// A duration in the format of protobuf's JSON.
pub(super) fn duration(value: Duration) -> String {
    format!("{:.6}s", value.as_secs_f64())
}
