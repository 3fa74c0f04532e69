//! Starts, watches and ends a process.

mod error;
mod readiness;

use std::io::{self, Write as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use process_wrap::std::ChildWrapper;
use tokio::time::sleep;

use crate::log::{Log, OutputFile};
use crate::{Signal, running, spawn};

pub use error::ProcessError;

/// Interval between two polls.
const POLL: Duration = Duration::from_millis(20);

/// A process and its group; dropping this kills both.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Box<dyn ChildWrapper>,
    output: OutputFile,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts `command` without input; its output goes to `log`. Errors name it `name`.
    ///
    /// # Errors
    /// When the log cannot be opened or the program cannot be run.
    pub fn start(name: &str, command: Command, log: Log<'_>) -> Result<Self, ProcessError> {
        Self::start_reading(name, command, log, Stdio::null())
    }

    /// As [`Self::start`], with a standard input for [`Self::write`].
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_input(
        name: &str,
        command: Command,
        log: Log<'_>,
    ) -> Result<Self, ProcessError> {
        Self::start_reading(name, command, log, Stdio::piped())
    }

    fn start_reading(
        name: &str,
        mut command: Command,
        log: Log<'_>,
        input: Stdio,
    ) -> Result<Self, ProcessError> {
        let program = command.get_program().display().to_string();
        let start = || {
            let output = OutputFile::open(log, name)?;
            command
                .stdin(input)
                .stdout(output.stdio()?)
                .stderr(output.stdio()?);
            let child = spawn::spawn(command)?;
            running::add(child.id());
            Ok(Self {
                name: name.to_owned(),
                child,
                output,
                status: None,
            })
        };
        start().map_err(|source| ProcessError::Start {
            name: name.to_owned(),
            program,
            source,
        })
    }

    /// The process id, which is also the id of its group.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes to its standard input.
    ///
    /// # Errors
    /// When it has none ([`Self::start_with_input`]), or has closed it.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let input = self.child.stdin().as_mut();
        let input = input.ok_or_else(|| io::Error::other("it has no input"))?;
        input.write_all(bytes)?;
        input.flush()
    }

    /// All that it has written so far, both streams.
    #[must_use]
    pub fn log(&self) -> String {
        self.output.text()
    }

    /// The end of its output: 25 lines or 4,000 bytes at most.
    #[must_use]
    pub fn log_tail(&self) -> String {
        self.output.tail()
    }

    /// Fails when it has ended.
    ///
    /// # Errors
    /// See above.
    pub fn alive(&mut self) -> Result<(), ProcessError> {
        let Some(status) = self.ended() else {
            return Ok(());
        };
        Err(ProcessError::Ended {
            name: self.name.clone(),
            status,
            log: self.log_tail(),
        })
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none()
            && let Some(status) = self.child.try_wait().ok().flatten()
        {
            self.reaped(status);
        }
        self.status
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// When it runs longer than `bound`.
    pub async fn wait(&mut self, bound: Duration) -> Result<ExitStatus, ProcessError> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.ended_within(since, bound)? {
                return Ok(status);
            }
            sleep(POLL).await;
        }
    }

    /// As [`Self::wait`], without a runtime: blocks.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_blocking(&mut self, bound: Duration) -> Result<ExitStatus, ProcessError> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.ended_within(since, bound)? {
                return Ok(status);
            }
            std::thread::sleep(POLL);
        }
    }

    fn ended_within(
        &mut self,
        since: Instant,
        bound: Duration,
    ) -> Result<Option<ExitStatus>, ProcessError> {
        let status = self.ended();
        if status.is_none() && since.elapsed() >= bound {
            return Err(ProcessError::Running {
                name: self.name.clone(),
                waited: bound,
            });
        }
        Ok(status)
    }

    /// Sends a signal to its process group.
    ///
    /// # Errors
    /// When the group has ended.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        // By now its id may be another process's.
        if let Some(status) = self.ended() {
            return Err(io::Error::other(format!("{} ended ({status})", self.name)));
        }
        self.child.signal(signal.as_raw())
    }

    /// Sends `SIGTERM`, and kills it if it still runs after `grace`. Blocks until it has ended.
    pub fn stop(&mut self, grace: Duration) {
        if self.ended().is_none() {
            // Fails only if it has just ended.
            let _ = self.signal(Signal::TERM);
            let _ = self.wait_blocking(grace);
        }
        self.kill();
    }

    /// Kills its group without a grace period. Blocks until the process has ended.
    pub fn kill(&mut self) {
        if self.ended().is_some() {
            return;
        }
        // Fails only if it has just ended.
        let _ = self.child.start_kill();
        if let Ok(status) = self.child.wait() {
            self.reaped(status);
        }
    }

    /// Kills the rest of the process's group: from now on its id is free.
    fn reaped(&mut self, status: ExitStatus) {
        // Fails if nothing is left.
        let _ = self.child.start_kill();
        running::remove(self.id());
        self.status = Some(status);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
