//! Why a cost could not be measured.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tidegate_supervise::ProcessError;

/// Why a cost could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// A file could not be read or written, or a program could not be run.
    #[error("{action} {}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A request got no answer.
    #[error("ask {peer}")]
    Call {
        /// The address of the peer.
        peer: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Envoy or a counter could not be started, ended, or was not ready in time.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Requests got other answers than the measurement expects.
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
    /// The counter did not print what was expected.
    #[error("{tool}: found {found:?}, expected {expected}")]
    Counter {
        /// The program that counts.
        tool: &'static str,
        /// The end of its output.
        found: String,
        /// The expected output.
        expected: &'static str,
    },
}

impl CostError {
    /// An I/O error with the operation and the file.
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
