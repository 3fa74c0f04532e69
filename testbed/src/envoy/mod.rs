//! A real Envoy process, started and stopped from Rust.
//!
//! [`Envoy::builder`] describes clusters, routes and filters; [`EnvoyBuilder::start`]
//! writes the bootstrap into a temporary folder, starts the binary with every port
//! chosen by the kernel, and waits until it is ready. The process is killed when the
//! handle is dropped, and by the kernel when this process dies first.
//!
//! The binary is `.tools/bin/envoy` of the repository (`make tools` puts it there),
//! or what the environment variable `TIDEGATE_ENVOY` names.

mod access_log;
mod admin;
mod bootstrap;
mod builder;
mod cluster;
mod generation;
mod metrics;
mod plugin;
mod route;
mod usage;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tidegate_supervise::{Process, ProcessError, Signal};

pub use access_log::AccessLine;
pub use admin::{Admin, AdminError};
pub(crate) use bootstrap::DETAILS_HEADER;
pub use builder::EnvoyBuilder;
pub use cluster::{Balancing, Cluster, Outlier, Thresholds};
pub use generation::Generation;
pub use metrics::{Metrics, TidegateMetric};
pub use plugin::{
    Discovery, FailurePolicy, MODULE_VARIABLE, Plugin, PushOutcome, release_module, test_module,
};
pub use route::Route;

/// Why an Envoy could not be started or asked.
#[derive(Debug, thiserror::Error)]
pub enum EnvoyError {
    /// Files for it could not be written.
    #[error("{action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The process could not be started, ended, or did not become ready in time.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The admin interface did not answer as expected.
    #[error("ask envoy's admin interface")]
    Admin(#[from] AdminError),
    /// A configuration push was neither accepted nor refused in time.
    #[error(
        "envoy has not taken note of the configuration after {waited:?}; the end of its log:\n{log}"
    )]
    PushUnnoticed {
        /// How long was waited.
        waited: Duration,
        /// Last lines of the log.
        log: String,
    },
    /// A push was asked for, but the plugin's configuration is inline or there is no plugin.
    #[error("this envoy has no plugin whose configuration can be pushed")]
    NoPush,
}

/// Name of the environment variable that names another Envoy binary.
pub const ENVOY_VARIABLE: &str = "TIDEGATE_ENVOY";

/// The root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.parent().unwrap_or(crate_folder).to_owned()
}

/// The Envoy binary that is used.
#[must_use]
pub fn binary() -> PathBuf {
    std::env::var_os(ENVOY_VARIABLE)
        .map_or_else(|| repository().join(".tools/bin/envoy"), PathBuf::from)
}

/// A running Envoy; dropping it ends the process.
#[derive(Debug)]
pub struct Envoy {
    process: Process,
    admin: Admin,
    listener: SocketAddr,
    plugin: Option<Plugin>,
    pushes: u64,
    folder: TempDir,
}

impl Envoy {
    /// Describes an Envoy to be started.
    #[must_use]
    pub fn builder() -> EnvoyBuilder {
        EnvoyBuilder::new()
    }

    /// Where requests are to be sent.
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

    /// What a successor has to name to take over from this one; `None` without [`EnvoyBuilder::generation`].
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

    /// The requests that have ended, from the access log (written out every 100 ms: poll for what you expect).
    #[must_use]
    pub fn access_log(&self) -> Vec<AccessLine> {
        access_log::read(&self.folder.path().join(bootstrap::ACCESS_LOG))
    }

    /// The access log as it stands, for a test that gave it a format of its own.
    #[must_use]
    pub fn access_log_text(&self) -> String {
        let path = self.folder.path().join(bootstrap::ACCESS_LOG);
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// Replaces the plugin's configuration on the running Envoy and waits for its verdict.
    ///
    /// `config` is the plugin's document as text, so that a test can push one that is no JSON.
    ///
    /// # Errors
    /// When the plugin was not made with [`Plugin::pushed`], the file cannot be written, or Envoy
    /// takes no note of it within 20 s.
    pub async fn push(&mut self, config: &str) -> Result<PushOutcome, EnvoyError> {
        let plugin = self
            .plugin
            .as_mut()
            .filter(|plugin| plugin.is_pushed())
            .ok_or(EnvoyError::NoPush)?;
        let before = plugin::Verdicts::read(&self.admin).await?;
        self.pushes += 1;
        plugin.set_config(config);
        plugin.write_discovery(self.folder.path(), self.pushes)?;
        let started = Instant::now();
        while started.elapsed() < PUSH_BOUND {
            if let Some(outcome) = plugin::Verdicts::read(&self.admin).await?.since(before) {
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

/// Distance between two looks at something that is waited for.
const POLL: Duration = Duration::from_millis(20);

/// Envoy takes note of a changed file at once; this bounds a machine that is very busy.
const PUSH_BOUND: Duration = Duration::from_secs(20);
