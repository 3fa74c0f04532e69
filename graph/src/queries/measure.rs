//! What a query measures.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Which form of histogram a query of a latency reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistogramForm {
    /// Buckets as series with the label `le`.
    Classic,
    /// Native histograms, also those with the custom buckets of classic ones.
    Native,
}

/// What a query measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "queries.toml says what each one is")]
pub enum QueryMeasure {
    Rate,
    Points,
    LastSeen,
    Requests,
    Failures,
    Mean(HistogramForm),
    P50(HistogramForm),
    P95(HistogramForm),
    P99(HistogramForm),
    InFlight,
    Services,
}

impl fmt::Display for QueryMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, form) = match self {
            Self::Rate => ("rate", None),
            Self::Points => ("points", None),
            Self::LastSeen => ("last_seen", None),
            Self::Requests => ("requests", None),
            Self::Failures => ("failures", None),
            Self::Mean(form) => ("mean", Some(form)),
            Self::P50(form) => ("p50", Some(form)),
            Self::P95(form) => ("p95", Some(form)),
            Self::P99(form) => ("p99", Some(form)),
            Self::InFlight => ("in_flight", None),
            Self::Services => ("services", None),
        };
        let native = form.is_some_and(|form| *form == HistogramForm::Native);
        write!(
            f,
            "{name}{}",
            if native { " (native histogram)" } else { "" }
        )
    }
}
