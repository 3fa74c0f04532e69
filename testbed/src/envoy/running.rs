//! A running Envoy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tidegate_supervise::{Process, Signal};

use super::access_log::{self, AccessLine};
use super::admin::Admin;
use super::builder::EnvoyBuilder;
use super::error::EnvoyError;
use super::plugin::{Plugin, PushOutcome, Verdicts};
use super::{generation, usage};

/// A running Envoy; dropping it ends the process.
#[derive(Debug)]
pub struct Envoy {
    pub(super) process: Process,
    pub(super) admin: Admin,
    pub(super) listener: SocketAddr,
    pub(super) plugin: Option<Plugin>,
    pub(super) pushes: u64,
    pub(super) folder: TempDir,
}

impl Envoy {
    /// Describes an Envoy to be started.
    #[must_use]
    pub fn builder() -> EnvoyBuilder {
        EnvoyBuilder::new()
    }

    /// The address for requests.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.listener
    }

    /// The admin interface.
    #[must_use]
    pub const fn admin(&self) -> &Admin {
        &self.admin
    }

    /// Process id, for `/proc`.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The id that a successor needs to take over from this one; `None` without [`EnvoyBuilder::generation`].
    #[must_use]
    pub fn base_id(&self) -> Option<u32> {
        generation::base_id(self.folder.path())
    }

    /// Sends a signal to the process.
    ///
    /// # Errors
    /// When it has ended.
    pub fn signal(&mut self, signal: Signal) -> io::Result<()> {
        self.process.signal(signal)
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        self.process.ended().is_none()
    }

    /// Everything Envoy has logged so far.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Resident memory of the process in bytes, or `None` when it cannot be read.
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        usage::resident_bytes(self.pid())
    }

    /// CPU time the process has used so far, or `None` when it cannot be read.
    #[must_use]
    pub fn cpu_time(&self) -> Option<Duration> {
        usage::cpu_time(self.pid())
    }

    /// The requests that have ended, from the access log (flushed every 100 ms: poll for what you expect).
    #[must_use]
    pub fn access_log(&self) -> Vec<AccessLine> {
        access_log::read(&self.folder.path().join(access_log::FILE))
    }

    /// The text of the access log, for a test that set its own format.
    #[must_use]
    pub fn access_log_text(&self) -> String {
        let path = self.folder.path().join(access_log::FILE);
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// Replaces the plugin's configuration on the running Envoy and waits for its verdict.
    ///
    /// `config` is the plugin's document as text, so that a test can push one that is not JSON.
    ///
    /// # Errors
    /// If the plugin was not made with [`Plugin::pushed`], the file cannot be written, or Envoy does not apply or reject the
    /// configuration within 20 s.
    pub async fn push(&mut self, config: &str) -> Result<PushOutcome, EnvoyError> {
        self.push_changed(|plugin| plugin.set_config(config)).await
    }

    /// As [`Self::push`], but replaces the plugin's module by another one in the same folder and keeps the configuration.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub async fn push_module(&mut self, module: PathBuf) -> Result<PushOutcome, EnvoyError> {
        self.push_changed(|plugin| plugin.set_module(module)).await
    }

    async fn push_changed(
        &mut self,
        change: impl FnOnce(&mut Plugin),
    ) -> Result<PushOutcome, EnvoyError> {
        let plugin = self
            .plugin
            .as_mut()
            .filter(|plugin| plugin.is_pushed())
            .ok_or(EnvoyError::NoPush)?;
        let before = Verdicts::read(&self.admin).await?;
        self.pushes += 1;
        change(plugin);
        plugin.write_discovery(self.folder.path(), self.pushes)?;
        let started = Instant::now();
        while started.elapsed() < PUSH_BOUND {
            if let Some(outcome) = Verdicts::read(&self.admin).await?.since(before) {
                return Ok(outcome);
            }
            tokio::time::sleep(POLL).await;
        }
        Err(EnvoyError::PushUnnoticed {
            waited: started.elapsed(),
            log: self.process.log_tail(),
        })
    }
}

/// Interval between two polls.
const POLL: Duration = Duration::from_millis(20);

/// Envoy notices a changed file at once; this is a bound for a very busy machine.
const PUSH_BOUND: Duration = Duration::from_secs(20);
