//! A server's process: its log in a file, its end in our hand.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tidegate_testbed::child;

use crate::leavings;
use crate::wait::POLL;

/// So long may a server take to end by itself.
const GRACE: Duration = Duration::from_secs(20);

/// So many lines of a log stand in errors.
const TAIL_LINES: usize = 20;

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started.
    #[error("start {name}")]
    Start {
        /// Which one.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// It ended by itself.
    #[error("{name} ended ({status}); the end of its log:\n{log}")]
    Ended {
        /// Which one.
        name: String,
        /// Exit status or signal.
        status: String,
        /// Last lines of its log.
        log: String,
    },
    /// It was not ready in time.
    #[error("{name} was not ready after {waited:?}; the end of its log:\n{log}")]
    NotReady {
        /// Which one.
        name: String,
        /// How long was waited.
        waited: Duration,
        /// Last lines of its log.
        log: String,
    },
}

/// A running server; killed by its id when dropped, and by the kernel when this program ends.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`; what it says goes to the end of `folder/name.log`.
    ///
    /// # Errors
    /// When the log cannot be opened or the program cannot be run.
    pub fn start(name: &str, mut command: Command, folder: &Path) -> Result<Self, ProcessError> {
        let log = folder.join(format!("{name}.log"));
        let started = File::options().create(true).append(true).open(&log);
        let child = started.and_then(|file| {
            let too = file.try_clone()?;
            command.stdin(Stdio::null()).stdout(too).stderr(file);
            child::spawn(command)
        });
        match child {
            Ok(child) => {
                let process = Self {
                    name: name.to_owned(),
                    child,
                    log,
                };
                process.pid().into_iter().for_each(leavings::started);
                Ok(process)
            }
            Err(source) => Err(ProcessError::Start {
                name: name.to_owned(),
                source,
            }),
        }
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `is_ready`, which is asked again and again.
    ///
    /// # Errors
    /// When the server ends, or is not ready within `bound`.
    pub async fn ready(
        &mut self,
        bound: Duration,
        mut is_ready: impl AsyncFnMut() -> bool,
    ) -> Result<(), ProcessError> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return Err(ProcessError::Ended {
                    name: self.name.clone(),
                    status: status.to_string(),
                    log: self.log_tail(),
                });
            }
            if is_ready().await {
                return Ok(());
            }
            if started.elapsed() > bound {
                return Err(ProcessError::NotReady {
                    name: self.name.clone(),
                    waited: started.elapsed(),
                    log: self.log_tail(),
                });
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Asks it to end, and kills it when it does not. Blocks until it is gone.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let (None, Some(pid)) = (self.ended(), self.pid()) {
            // It may have ended just now.
            let _ = kill_process(pid, Signal::TERM);
            let asked = Instant::now();
            while asked.elapsed() < GRACE && self.ended().is_none() {
                std::thread::sleep(POLL / 5);
            }
        }
        self.kill();
    }

    /// Kills it without asking.
    pub fn kill(&mut self) {
        // Both fail only when the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.pid().into_iter().for_each(leavings::ended);
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        let status = self.child.try_wait().ok().flatten();
        if status.is_some() {
            self.pid().into_iter().for_each(leavings::ended);
        }
        status
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// All that it has said.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let first = lines.len().saturating_sub(TAIL_LINES);
        lines.get(first..).unwrap_or_default().join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
