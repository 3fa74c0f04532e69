//! Why there is no recommendation.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// Why the observations do not suffice for an objective.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    tag = "reason"
)]
pub enum AdviceRefusal {
    /// The metrics do not name the upstream.
    NotNamed,
    /// How many requests there were is not known.
    SamplesUnknown,
    /// Fewer requests than the operator wants.
    TooFewSamples {
        /// Requests in the window.
        found: f64,
    },
    /// The metrics ended before the end of the window.
    Ended,
    /// Most points of the window have no data.
    MostlyGaps {
        /// Points with data.
        found: u32,
        /// All points.
        points: u32,
    },
    /// No quantile of the latency that the samples support is known.
    NoLatency,
    /// A higher quantile is below a lower one: they come from different histograms.
    QuantilesContradict {
        /// The higher quantile, from 0 to 1.
        quantile: f64,
        /// Its latency, in seconds.
        seconds: f64,
        /// The latency of a lower quantile, in seconds.
        lower_seconds: f64,
    },
    /// How many requests failed is not known.
    SuccessUnknown,
    /// So many fail that no configuration accepts the objective.
    MostlyFailing {
        /// Share that did not fail.
        success: f64,
    },
    /// So slow that no configuration accepts the objective.
    TooSlow {
        /// The latency, in seconds.
        seconds: f64,
    },
}

impl fmt::Display for AdviceRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNamed => f.write_str("the metrics do not name the upstream"),
            Self::SamplesUnknown => f.write_str("the number of requests is not known"),
            Self::TooFewSamples { found } => write!(f, "{found:.0} requests are too few"),
            Self::Ended => f.write_str("the metrics ended before the end of the window"),
            Self::MostlyGaps { found, points } => {
                write!(f, "only {found} of {points} points of the window have data")
            }
            Self::NoLatency => {
                f.write_str("no latency quantile is known for which there are enough requests")
            }
            Self::QuantilesContradict {
                quantile,
                seconds,
                lower_seconds,
            } => write!(
                f,
                "the quantiles contradict each other: {quantile} is {seconds} s, but a lower one is {lower_seconds} s"
            ),
            Self::SuccessUnknown => f.write_str("the number of failures is not known"),
            Self::MostlyFailing { success } => write!(
                f,
                "only {success:.4} of the requests succeed: repair the upstream first"
            ),
            Self::TooSlow { seconds } => write!(
                f,
                "{seconds:.0} s, with the margin, is longer than any target may be"
            ),
        }
    }
}
