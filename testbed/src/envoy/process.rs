//! The Envoy process itself: started so that it can not outlive us, its log kept.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{EnvoyBuilder, EnvoyError, Generation};
use crate::child;

/// File into which Envoy writes the address of its admin interface.
pub(super) const ADMIN_ADDRESS: &str = "admin-address";

const LOG: &str = "envoy.log";

/// The access log is written out at this distance, so that tests need not wait for it (Envoy's default: 10 s).
const ACCESS_LOG_FLUSH_MS: &str = "100";

/// So many lines of the log are shown in errors.
const TAIL_LINES: usize = 25;

/// A running Envoy binary.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `binary` on `folder/envoy.json`.
    pub(super) fn start(
        binary: &Path,
        folder: &Path,
        builder: &EnvoyBuilder,
    ) -> Result<Self, EnvoyError> {
        let log = folder.join(LOG);
        let file = File::create(&log).map_err(|source| EnvoyError::Io {
            action: "create",
            path: log.clone(),
            source,
        })?;
        let mut command = Command::new(binary);
        command
            .arg("--config-path")
            .arg(folder.join("envoy.json"))
            .arg("--admin-address-path")
            .arg(folder.join(ADMIN_ADDRESS))
            .args([
                "--concurrency",
                &builder.concurrency.to_string(),
                "--log-level",
                &builder.log_level,
                "--file-flush-interval-msec",
                ACCESS_LOG_FLUSH_MS,
            ])
            .args(Generation::arguments(builder.generation.as_ref(), folder))
            .envs(builder.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file);
        let child = child::spawn(command).map_err(|source| EnvoyError::Io {
            action: "run",
            path: binary.to_owned(),
            source,
        })?;
        Ok(Self { child, log })
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How the process ended, if it did.
    pub(super) fn ended(&mut self) -> Option<String> {
        self.child
            .try_wait()
            .ok()
            .flatten()
            .map(|status| status.to_string())
    }

    pub(super) fn is_running(&mut self) -> bool {
        self.ended().is_none()
    }

    pub(super) fn log(&self) -> String {
        fs::read(&self.log)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    pub(super) fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines
            .get(lines.len().saturating_sub(TAIL_LINES)..)
            .unwrap_or_default()
            .join("\n")
    }

    pub(super) fn resident_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1_024)
    }

    pub(super) fn cpu_time(&self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).ok()?;
        // The name, field 2, may hold blanks; user and system time are fields 14 and 15.
        let after_name = stat.rsplit_once(')')?.1;
        let mut fields = after_name.split_whitespace().skip(11);
        let user: u64 = fields.next()?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        let ticks = rustix::param::clock_ticks_per_second();
        Some(Duration::from_millis(
            (user + system) * 1_000 / ticks.max(1),
        ))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when the process is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
