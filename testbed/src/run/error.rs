//! Why a run failed.

use crate::envoy::EnvoyError;
use crate::variant::Variant;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Sockets cannot play the scenario.
    #[error("scenario {scenario} is for the simulator alone: sockets cannot play {}", keys.join(", "))]
    OnlySimulated {
        /// Its name.
        scenario: String,
        /// The keys it uses that only the simulator knows.
        keys: Vec<&'static str>,
    },
    /// An upstream did not start.
    #[error("start upstream {name}")]
    Upstream {
        /// Its name.
        name: String,
        /// The cause.
        source: std::io::Error,
    },
    /// Envoy failed.
    #[error("run envoy with variant {variant}")]
    Envoy {
        /// The contender.
        variant: Variant,
        /// The cause.
        source: EnvoyError,
    },
}
