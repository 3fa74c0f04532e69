//! The programs that make load, and conversion of their output to our own figures.
//!
//! [`fortio`] and [`k6`] are run and their files are read; [`open_loop`] is the testbed's own client. [`histogram`] combines
//! histograms of several processes; [`tally`] turns single requests into figures and points over time.

pub mod fortio;
pub mod histogram;
pub mod k6;
pub mod open_loop;
pub mod tally;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tidegate_supervise::{Log, Process, ProcessError};
use tidegate_testbed::envoy;

/// Why a tool gave no figures.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// It is not installed.
    #[error("{} is missing: run `make tools-load`", path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// It could not be run.
    #[error("run {}", path.display())]
    Run {
        /// The program.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It ended with an error.
    #[error("{program} ended with {status}: {said}")]
    Ended {
        /// Its name.
        program: &'static str,
        /// Exit status or signal.
        status: String,
        /// The end of its output.
        said: String,
    },
    /// It did not end.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Its file cannot be used.
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

/// How much longer a program may take than it should.
pub(crate) const GRACE: Duration = Duration::from_secs(30);

/// Environment variable with the path of another folder with the programs.
pub const TOOLS_VARIABLE: &str = "TIDEGATE_LOAD_TOOLS";

/// The path of the program with this name: where `make tools-load` puts it, or in the folder that the environment variable
/// `TIDEGATE_LOAD_TOOLS` names.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    let folder = std::env::var_os(TOOLS_VARIABLE);
    folder
        .map_or_else(|| envoy::repository().join(".tools/bin"), PathBuf::from)
        .join(name)
}

/// The path of the program with this name.
///
/// # Errors
/// If it is not installed.
pub fn program(name: &str) -> Result<PathBuf, ToolError> {
    let path = path(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(ToolError::Missing { path })
    }
}

/// Runs a program that should take `length`. It is killed if it takes much longer, or if the future is dropped.
async fn run(name: &'static str, command: Command, length: Duration) -> Result<(), ToolError> {
    let path = PathBuf::from(command.get_program());
    let mut process = Process::start(name, command, Log::Unnamed).map_err(|error| match error {
        ProcessError::Start { source, .. } => ToolError::Run { path, source },
        other => ToolError::Process(other),
    })?;
    let status = process.wait(length + GRACE).await?;
    if status.success() {
        return Ok(());
    }
    Err(ToolError::Ended {
        program: name,
        status: status.to_string(),
        said: process.log_tail(),
    })
}

/// CPU time of all programs that this process started and that have ended, user and system; `None` if the kernel does not
/// report it.
#[must_use]
pub fn ended_cpu() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, field 2, may hold blanks; times of children that were waited for are fields 16 and 17.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(
        (user + system) * 1_000 / ticks.max(1),
    ))
}

/// The text of a tool's file.
fn read(path: &Path, expected: &'static str) -> Result<String, ToolError> {
    std::fs::read_to_string(path).map_err(|error| ToolError::File {
        path: path.to_owned(),
        found: error.to_string(),
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_fails_is_quoted() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such target >&2; exit 3"]);
        let said = run("fortio", command, Duration::ZERO)
            .await
            .unwrap_err()
            .to_string();
        assert_eq!(said, "fortio ended with exit status: 3: no such target");
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let missing = program("no-such-tool").unwrap_err().to_string();
        assert!(
            missing.ends_with(".tools/bin/no-such-tool is missing: run `make tools-load`"),
            "{missing}"
        );
        let error = run("k6", Command::new("/no/such/program"), Duration::ZERO)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "run /no/such/program");
    }
}
