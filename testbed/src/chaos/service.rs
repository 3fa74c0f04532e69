//! The control service in a separate process.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::Value;
use tidegate_supervise::{Log, Process};

use super::backend::free_port;
use super::clock::WallClock;
use super::policy::{MAX_LIMIT, POLICY, good};
use crate::client::{Call, Caller};
use crate::envoy::test_module;

/// A start, and a push, take at most this long.
pub const BOUND: Duration = Duration::from_secs(30);

/// Interval between two polls.
const POLL: Duration = Duration::from_millis(50);

/// Its name in errors and in the name of its log.
const NAME: &str = "control";

const TOKEN: &str = "a token for this run";

/// The service's process; dropping this kills it.
#[derive(Debug)]
pub struct Control {
    binary: PathBuf,
    folder: PathBuf,
    ports: [u16; 3],
    clock: Option<WallClock>,
    process: Process,
    tag: Option<String>,
}

impl Control {
    /// Starts it, and puts the policy in force.
    ///
    /// # Errors
    /// If it cannot be started or does not accept the policy.
    pub async fn start(binary: &Path, folder: &Path, clock: Option<WallClock>) -> Result<Self> {
        fs::create_dir_all(folder.join("policies"))?;
        fs::write(folder.join("token"), TOKEN)?;
        let ports = [free_port()?, free_port()?, free_port()?];
        let process = spawn(binary, folder, ports, clock.as_ref())?;
        let mut control = Self {
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            ports,
            clock,
            process,
            tag: None,
        };
        control.until_ready().await?;
        let status = control.put(&good(MAX_LIMIT)).await?;
        ensure!(
            status == 201,
            "the first policy: found status {status}, expected 201"
        );
        Ok(control)
    }

    /// Where proxies connect.
    #[must_use]
    pub fn xds(&self) -> SocketAddr {
        self.addr(self.ports[0])
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The clock that it and Envoy use, if one can be set.
    #[must_use]
    pub const fn clock(&self) -> Option<&WallClock> {
        self.clock.as_ref()
    }

    fn addr(&self, port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    /// Kills it.
    ///
    /// # Errors
    /// If it had ended already.
    pub fn kill(&mut self) -> Result<()> {
        self.alive()?;
        self.process.kill();
        Ok(())
    }

    /// Starts it again, on the same ports and with its stored state.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn restart(&mut self) -> Result<()> {
        self.process = spawn(&self.binary, &self.folder, self.ports, self.clock.as_ref())?;
        self.until_ready().await
    }

    /// Fails with the end of its log if it has ended.
    ///
    /// # Errors
    /// If it has ended.
    pub fn alive(&mut self) -> Result<()> {
        Ok(self.process.alive()?)
    }

    /// Everything that it has logged so far, including before restarts.
    #[must_use]
    pub fn log(&self) -> String {
        let log = fs::read(self.folder.join(format!("{NAME}.log"))).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Denies it all writes to files, its log included, or allows them again.
    ///
    /// # Errors
    /// If the system denies the change.
    pub fn fill_disk(&self, is_full: bool) -> Result<()> {
        let pid = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        // The child has inherited our hard limit.
        let maximum = getrlimit(Resource::Fsize).maximum;
        let current = if is_full { Some(0) } else { maximum };
        let limit = Rlimit { current, maximum };
        prlimit(pid, Resource::Fsize, limit).context("set the limit of file sizes")?;
        Ok(())
    }

    /// Replaces the policy by a text; returns the status of the answer.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn put(&mut self, text: &str) -> Result<u16> {
        let mut call = Call::put(&format!("/v1/policies/{POLICY}"), text.to_owned())
            .header("authorization", &format!("Bearer {TOKEN}"));
        if let Some(tag) = &self.tag {
            call = call.header("if-match", tag);
        }
        let reply = Caller::http1(self.addr(self.ports[1])).call(&call).await?;
        if matches!(reply.status, 200 | 201) {
            self.tag = reply.header("etag").map(str::to_owned);
        }
        Ok(reply.status)
    }

    /// Whether the policy is still the last accepted text.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn keeps_last(&self) -> Result<bool> {
        let http = Caller::http1(self.addr(self.ports[1]));
        let reply = http.get(&format!("/v1/policies/{POLICY}")).await?;
        Ok(reply.header("etag").map(str::to_owned) == self.tag)
    }

    /// Writes a file into the watched folder, or removes it.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn file(&self, name: &str, text: Option<&str>) -> Result<()> {
        let path = self.folder.join("policies").join(name);
        match text {
            Some(text) => fs::write(path, text)?,
            None => fs::remove_file(path)?,
        }
        Ok(())
    }

    /// Waits until it reports that every proxy runs what it wants; `false` if that takes longer than the bound.
    ///
    /// # Errors
    /// If it has ended.
    pub async fn until_current(&mut self) -> Result<bool> {
        let begun = Instant::now();
        let http = Caller::http1(self.addr(self.ports[1]));
        while begun.elapsed() < BOUND {
            self.alive()?;
            if let Ok(reply) = http.get("/v1/proxies").await
                && let Ok(document) = serde_json::from_slice(&reply.body)
                && all_current(&document)
            {
                return Ok(true);
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(false)
    }

    async fn until_ready(&mut self) -> Result<()> {
        let health = Caller::http1(self.addr(self.ports[2]));
        let is_ready = async || {
            let reply = health.get("/readyz").await.ok()?;
            (reply.status == 200).then_some(())
        };
        Ok(self.process.ready(BOUND, is_ready).await?)
    }
}

fn all_current(document: &Value) -> bool {
    let proxies = document.get("proxies").and_then(Value::as_array);
    let is_current = |proxy: &Value| {
        let field = |name: &str| {
            let path = format!("/resources/tidegate/{name}");
            proxy.pointer(&path).and_then(Value::as_str)
        };
        field("running").is_some() && field("running") == field("wanted")
    };
    proxies.is_some_and(|proxies| !proxies.is_empty() && proxies.iter().all(is_current))
}

fn spawn(
    binary: &Path,
    folder: &Path,
    ports: [u16; 3],
    clock: Option<&WallClock>,
) -> Result<Process> {
    // With the signal ignored, a write beyond the limit fails with an error, as on a full disk.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]);
    command.arg(binary).arg("serve");
    for (option, port) in ["--xds-listen", "--http-listen", "--health-listen"]
        .iter()
        .zip(ports)
    {
        command.arg(option).arg(format!("127.0.0.1:{port}"));
    }
    command.arg("--policies").arg(folder.join("policies"));
    command.arg("--state").arg(folder.join("state"));
    command.arg("--token-file").arg(folder.join("token"));
    command.arg("--module").arg(test_module());
    if let Some(clock) = clock {
        command.envs(clock.variables());
    }
    Ok(Process::start(NAME, command, Log::In(folder))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_current_when_all_run_what_is_wanted() {
        let proxy = |running: &str| serde_json::json!({"resources": {"tidegate": {"running": running, "wanted": "b"}}});
        let document = |proxies: &[Value]| serde_json::json!({"proxies": proxies});
        assert!(all_current(&document(&[proxy("b"), proxy("b")])));
        assert!(!all_current(&document(&[proxy("b"), proxy("a")])));
        assert!(!all_current(&document(&[])));
    }
}
