//! Why a run could not be made.

use crate::envoy::EnvoyError;
use crate::variant::Variant;

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Sockets cannot play it.
    #[error("scenario {scenario} is for the simulator alone: sockets cannot play {}", keys.join(", "))]
    OnlySimulated {
        /// Its name.
        scenario: String,
        /// The keys it uses that only the simulator knows.
        keys: Vec<&'static str>,
    },
    /// No upstream.
    #[error("start upstream {name}")]
    Upstream {
        /// Its name.
        name: String,
        /// The cause.
        source: std::io::Error,
    },
    /// No Envoy.
    #[error("run envoy with variant {variant}")]
    Envoy {
        /// The contender.
        variant: Variant,
        /// The cause.
        source: EnvoyError,
    },
}
