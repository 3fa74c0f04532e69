//! How an Envoy is started.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use tidegate_supervise::{Log, Process};

use super::admin::Admin;
use super::bootstrap;
use super::builder::EnvoyBuilder;
use super::error::EnvoyError;
use super::generation::Generation;
use super::place::binary;
use super::plugin::Plugin;
use super::running::Envoy;

/// File with the bootstrap.
const BOOTSTRAP: &str = "envoy.json";

/// File into which Envoy writes the address of its admin interface.
const ADMIN_ADDRESS: &str = "admin-address";

/// Flush interval of the access log, short so that tests need not wait (Envoy's default: 10 s).
const ACCESS_LOG_FLUSH_MS: &str = "100";

impl EnvoyBuilder {
    /// Starts the process and waits until it is ready.
    ///
    /// # Errors
    /// When files cannot be written, the binary is missing, or Envoy rejects its configuration
    /// (the end of its log is in the error).
    pub async fn start(self) -> Result<Envoy, EnvoyError> {
        let folder = tempfile::Builder::new()
            .prefix("tidegate-envoy-")
            .tempdir_in(&self.parent)
            .map_err(|source| EnvoyError::Io {
                action: "make a folder in",
                path: self.parent.clone(),
                source,
            })?;
        if let Some(plugin) = self.plugin.as_ref().filter(|plugin| plugin.is_pushed()) {
            plugin.write_discovery(folder.path(), 1)?;
        }
        let bootstrap = folder.path().join(BOOTSTRAP);
        let mut document = match &self.document {
            Some(document) => document.clone(),
            None => bootstrap::bootstrap(&self, folder.path()),
        };
        self.edits.iter().for_each(|edit| edit(&mut document));
        fs::write(&bootstrap, document.to_string()).map_err(|source| EnvoyError::Io {
            action: "write",
            path: bootstrap.clone(),
            source,
        })?;
        let mut process =
            Process::start("envoy", self.command(folder.path()), Log::In(folder.path()))?;
        let look = async || ready(folder.path()).await;
        let (admin, listener) = process.ready(self.ready_within, look).await?;
        Ok(Envoy {
            process,
            admin,
            listener,
            plugin: self.plugin,
            pushes: 1,
            folder,
        })
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(binary());
        command
            .arg("--config-path")
            .arg(folder.join(BOOTSTRAP))
            .arg("--admin-address-path")
            .arg(folder.join(ADMIN_ADDRESS))
            .args([
                "--concurrency",
                &self.concurrency.to_string(),
                "--log-level",
                &self.log_level,
                "--file-flush-interval-msec",
                ACCESS_LOG_FLUSH_MS,
            ])
            .args(Generation::arguments(self.generation.as_ref(), folder))
            .envs(self.plugin.as_ref().and_then(Plugin::variable))
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// The admin interface and the first listener of the Envoy in `folder`, once it is ready.
async fn ready(folder: &Path) -> Option<(Admin, SocketAddr)> {
    let address = fs::read_to_string(folder.join(ADMIN_ADDRESS)).ok()?;
    let admin = Admin::new(address.trim().parse().ok()?);
    if !admin.is_ready().await {
        return None;
    }
    let listener = admin.listener().await.ok()??;
    Some((admin, listener))
}
