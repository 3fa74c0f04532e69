//! Why a process does not run, or has not ended.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a process does not run, or has not ended.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("start {name} ({program})")]
    Start {
        /// Its name.
        name: String,
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// It ended by itself.
    #[error("{name} ended ({status}); the end of its log:\n{log}")]
    Ended {
        /// Its name.
        name: String,
        /// Exit status or signal.
        status: ExitStatus,
        /// The last lines of its output.
        log: String,
    },
    /// It was not ready in time.
    #[error("{name} was not ready after {waited:?}; the end of its log:\n{log}")]
    NotReady {
        /// Its name.
        name: String,
        /// How long it was given.
        waited: Duration,
        /// The last lines of its output.
        log: String,
    },
    /// It did not end in time.
    #[error("{name} had not ended after {waited:?}")]
    Running {
        /// Its name.
        name: String,
        /// How long it was given.
        waited: Duration,
    },
}
