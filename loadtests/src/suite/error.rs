//! Why a test gave no verdict.

use std::io;
use std::path::PathBuf;

use tidegate_supervise::ProcessError;

use crate::stage::StageError;

/// The tests, in the order in which they are run.
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
    /// k6 ended with an error that is no verdict.
    #[error("k6 ended with {status}; what it said is in {}", log.display())]
    Ended {
        /// Exit status or signal.
        status: String,
        /// The file with its words.
        log: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("{action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file of k6's is not what was expected.
    #[error("{}: found {found}, expected {expected}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is there.
        found: String,
        /// What should be.
        expected: &'static str,
    },
}
