//! Why an Envoy could not be started or queried.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tidegate_supervise::ProcessError;

use super::admin::AdminError;

/// Why an Envoy could not be started or queried.
#[derive(Debug, thiserror::Error)]
pub enum EnvoyError {
    /// Files for it could not be written.
    #[error("{action} {}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The process could not be started, ended, or did not become ready in time.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The admin interface did not answer as expected.
    #[error("ask envoy's admin interface")]
    Admin(#[from] AdminError),
    /// A configuration push was neither accepted nor rejected in time.
    #[error(
        "envoy has not taken note of the configuration after {waited:?}; the end of its log:\n{log}"
    )]
    PushUnnoticed {
        /// How long the test waited.
        waited: Duration,
        /// Last lines of the log.
        log: String,
    },
    /// A push was requested, but there is no plugin or its configuration is inline.
    #[error("this envoy has no plugin whose configuration can be pushed")]
    NoPush,
}
