//! Why a test gave no verdict.

use std::io;
use std::path::PathBuf;

use tidegate_supervise::ProcessError;

use crate::stage::StageError;

/// The tests, in the order in which they run.
pub const TESTS: [&str; 6] = [
    "smoke",
    "overload",
    "outage",
    "brownout",
    "priority",
    "retry-storm",
];

/// Why a test gave no verdict.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// There is no such test.
    #[error("test: found {0}, expected one of: {known}, all", known = TESTS.join(", "))]
    Unknown(String),
    /// The stage could not be built.
    #[error("build the stage")]
    Stage(#[from] StageError),
    /// k6 could not be run.
    #[error("run {} (`ci/load.sh k6` installs it)", path.display())]
    Run {
        /// The program.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// k6 did not end.
    #[error("play with k6")]
    Process(#[from] ProcessError),
    /// k6 ended with an error instead of a verdict.
    #[error("k6 ended with {status}; what it said is in {}", log.display())]
    Ended {
        /// Exit status or signal.
        status: String,
        /// The file with its output.
        log: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{action} {}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file of k6 is not as expected.
    #[error("{}: found {found}, expected {expected}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
}
