//! Why a topology could not be started or read.

use tidegate_testbed::envoy::{AdminError, EnvoyError};

/// Why the proxies and services of a cell could not be started or read.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// A requested port is in use.
    #[error("port {port} of 127.0.0.1 is in use: choose another first port")]
    PortInUse {
        /// The port.
        port: u16,
    },
    /// There are no ports left above the first one.
    #[error("first port {first}: there is no port for Envoy number {index}")]
    NoPort {
        /// The first port.
        first: u16,
        /// Number of the Envoy.
        index: u16,
    },
    /// The scenario names no service.
    #[error("the scenario names no service")]
    NoService,
    /// A certificate could not be made.
    #[error("make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// A file could not be written.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A service could not be started.
    #[error("start service {name}")]
    Service {
        /// Its name.
        name: String,
        /// The cause.
        source: std::io::Error,
    },
    /// Envoy did not start.
    #[error("start envoy for {contender}")]
    Envoy {
        /// The contender.
        contender: &'static str,
        /// The cause.
        source: EnvoyError,
    },
    /// Envoy does not answer.
    #[error("ask envoy for its counters")]
    Admin(#[from] AdminError),
    /// An Envoy ended while it was under load.
    #[error("envoy ended under load; the end of its log:\n{log}")]
    Ended {
        /// The end of its log.
        log: String,
    },
}
