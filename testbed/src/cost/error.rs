//! Why a cost could not be measured.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tidegate_supervise::ProcessError;

/// Why a cost could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// A file could not be read or written, or a program not be run.
    #[error("{action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A request got no answer.
    #[error("ask {peer}")]
    Call {
        /// The address that was asked.
        peer: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Envoy or a counter could not be started, ended, or was not ready in time.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Other answers came than the measurement is about.
    #[error("{what}: found answers {found:?}, expected only {expected}")]
    Answers {
        /// The measurement.
        what: String,
        /// Answers by status.
        found: BTreeMap<u16, u64>,
        /// The status that was expected.
        expected: u16,
    },
    /// A signal asked this process to end.
    #[error("interrupted")]
    Interrupted,
    /// The counter did not say what it should.
    #[error("{tool}: found {found:?}, expected {expected}")]
    Counter {
        /// The program that counts.
        tool: &'static str,
        /// The end of what it said.
        found: String,
        /// What it should have said.
        expected: &'static str,
    },
}

impl CostError {
    /// An I/O error with what was tried.
    pub(super) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}
