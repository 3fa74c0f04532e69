//! A measured Envoy, plain or inside the counter.
//!
//! Unlike [`crate::envoy`] it has two listeners, no access log, and a command that may be another program's argument. The
//! first listener's cluster must know the second one's port before Envoy starts: a socket that is bound but never listens
//! reserves the port, and Envoy may bind its own beside it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tidegate_supervise::{Log, Process};
use tokio::net::TcpSocket;

use super::http::ask_once;
use super::subject::{ENTRY, Subject, Surroundings, bootstrap};
use super::{CostError, interrupt};
use crate::envoy;

/// How long Envoy may take to start; long, because valgrind and a busy machine slow it down.
const READY_BOUND: Duration = Duration::from_secs(120);
/// Interval between two polls.
const POLL: Duration = Duration::from_millis(20);
const ADMIN_ADDRESS: &str = "admin-address";

/// The parameters of an Envoy besides its filter.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Number of worker threads.
    pub workers: u32,
    /// Number of clusters to choose from; see [`super::subject::MANY`].
    pub many: u32,
}

/// A running Envoy; dropping it ends the process.
#[derive(Debug)]
pub struct MeasuredEnvoy {
    process: Process,
    entry: SocketAddr,
    folder: TempDir,
    // Held as long as Envoy runs.
    _answering: TcpSocket,
    _hanging: TcpListener,
}

impl MeasuredEnvoy {
    /// Starts `subject` and waits until it is ready. `run` builds the command that runs a binary, with files in a folder.
    ///
    /// # Errors
    /// When Envoy is missing or rejects its configuration.
    pub fn start(
        subject: &Subject,
        shape: Shape,
        run: impl FnOnce(&Path, &Path) -> Command,
    ) -> Result<Self, CostError> {
        let folder = tempfile::Builder::new().prefix("tidegate-cost-").tempdir();
        let folder = folder.map_err(CostError::io("make a folder in", std::env::temp_dir()))?;
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let reserve = || {
            let socket = TcpSocket::new_v4()?;
            socket.set_reuseport(true)?;
            socket.bind(local)?;
            let hanging = TcpListener::bind(local)?;
            let around = Surroundings {
                answering: socket.local_addr()?,
                hanging: hanging.local_addr()?,
                many: shape.many,
            };
            Ok((socket, hanging, around))
        };
        let (answering, hanging, around) =
            reserve().map_err(CostError::io("reserve a port for", folder.path()))?;
        let document = folder.path().join("envoy.json");
        fs::write(&document, bootstrap(subject, &around).to_string())
            .map_err(CostError::io("write", &document))?;
        let mut command = run(&envoy::binary(), folder.path());
        tell(&mut command, folder.path(), shape.workers);
        command.envs(subject.variable());
        let name = format!("envoy for {}", subject.name());
        let mut measured = Self {
            process: Process::start(&name, command, Log::Unnamed)?,
            entry: local,
            folder,
            _answering: answering,
            _hanging: hanging,
        };
        measured.entry = measured.wait_ready()?;
        Ok(measured)
    }

    /// The address for requests.
    #[must_use]
    pub const fn entry(&self) -> SocketAddr {
        self.entry
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its folder, into which a counter may write.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Anonymous resident memory in bytes, which excludes the shared pages of the binary.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn anonymous_bytes(&self) -> Result<u64, CostError> {
        let path = format!("/proc/{}/status", self.pid());
        let status = fs::read_to_string(&path).map_err(CostError::io("read", &path))?;
        let kib = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kib.map(|kib| kib * 1_024).ok_or(CostError::Counter {
            tool: "/proc/PID/status",
            found: status,
            expected: "RssAnon in kB",
        })
    }

    fn wait_ready(&mut self) -> Result<SocketAddr, CostError> {
        let started = Instant::now();
        loop {
            interrupt::check()?;
            if let Some(entry) = self.admin_address().and_then(listening_entry) {
                return Ok(entry);
            }
            self.process.still_starting(started, READY_BOUND)?;
            thread::sleep(POLL);
        }
    }

    fn admin_address(&self) -> Option<SocketAddr> {
        let text = fs::read_to_string(self.folder.path().join(ADMIN_ADDRESS)).ok()?;
        text.trim().parse().ok()
    }
}

/// The address of the measured listener, once Envoy is live.
fn listening_entry(admin: SocketAddr) -> Option<SocketAddr> {
    let ask = |path: &str| {
        let answer = ask_once(admin, path).ok()?;
        (answer.status == 200).then_some(answer.body)
    };
    ask("/ready")?;
    let listeners: Value = serde_json::from_slice(&ask("/listeners?format=json")?).ok()?;
    let statuses = listeners.get("listener_statuses")?.as_array()?;
    let entry = statuses
        .iter()
        .find(|status| status.get("name").and_then(Value::as_str) == Some(ENTRY))?;
    let address = entry.pointer("/local_address/socket_address")?;
    let port = u16::try_from(address.get("port_value")?.as_u64()?).ok()?;
    let ip = address.get("address")?.as_str()?.parse().ok()?;
    (port != 0).then(|| SocketAddr::new(ip, port))
}

/// Adds Envoy's arguments.
fn tell(command: &mut Command, folder: &Path, workers: u32) {
    command
        .arg("--config-path")
        .arg(folder.join("envoy.json"))
        .arg("--admin-address-path")
        .arg(folder.join(ADMIN_ADDRESS))
        .args(["--concurrency", &workers.to_string()])
        .args(["--log-level", "error", "--disable-hot-restart"]);
}
