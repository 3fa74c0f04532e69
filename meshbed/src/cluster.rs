//! etcd and a Kubernetes API server on loopback.
//!
//! There is no kubelet, scheduler or controller: the API server stores, validates, watches and protects objects (RBAC is on),
//! but nothing acts on them. A controller under test and istiod need no more, and the cluster is ready in seconds.
//!
//! The API server must end before etcd, or it waits for it: [`KubeCluster`] ensures the order.

mod servers;
mod user;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use serde_json::json;
use tempfile::TempDir;
use tidegate_supervise::{Log, Process, ProcessError};

use crate::audit::{self, Write};
use crate::leavings;
use crate::place::Missing;
use crate::ports;

use servers::{AUDIT_LOG, etcd, write_files};
pub use user::User;

/// Time in which each server must be ready: seconds on an idle machine, minutes on a busy one with a hundred kinds to
/// install.
const READY_WITHIN: Duration = Duration::from_secs(300);

/// How long a server may take to end by itself.
pub(crate) const GRACE: Duration = Duration::from_secs(20);

/// Why a cluster could not be started or used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A server's binary was not built.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A server does not run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Files for the servers could not be written.
    #[error("write files for the servers")]
    Io(#[from] io::Error),
    /// Certificates could not be generated.
    #[error("make certificates")]
    Certificates(#[from] rcgen::Error),
    /// A client could not be made.
    #[error("make a client")]
    Client(#[from] kube::Error),
    /// A client's configuration could not be read.
    #[error("read a client's configuration")]
    Kubeconfig(#[from] KubeconfigError),
}

/// A running API server and its etcd; dropping this ends both.
#[derive(Debug)]
pub struct KubeCluster {
    // The order in which they are dropped.
    api_server: Mutex<Option<Process>>,
    etcd: Process,
    etcd_port: u16,
    port: u16,
    admin: User,
    stranger: User,
    folder: TempDir,
}

impl KubeCluster {
    /// Starts both and waits until they are ready.
    ///
    /// # Errors
    /// When a binary is missing, or a server does not become ready.
    pub async fn start() -> Result<Self, ClusterError> {
        let folder = tempfile::Builder::new()
            .prefix("tidegate-cluster-")
            .tempdir()?;
        leavings::opened(folder.path());
        let users = write_files(folder.path())?;
        let etcd_port = ports::free();
        let cluster = Self {
            etcd: etcd(folder.path(), etcd_port).await?,
            api_server: Mutex::new(None),
            etcd_port,
            port: ports::free(),
            admin: users.0,
            stranger: users.1,
            folder,
        };
        cluster.start_api_server().await?;
        Ok(cluster)
    }

    /// Where the API server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// A user with all rights.
    #[must_use]
    pub const fn admin(&self) -> &User {
        &self.admin
    }

    /// An authenticated user with almost no rights.
    #[must_use]
    pub const fn stranger(&self) -> &User {
        &self.stranger
    }

    /// The client's configuration for a user, as the content of a kubeconfig file.
    #[must_use]
    pub fn kubeconfig(&self, user: &User) -> serde_json::Value {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "meshbed",
            "clusters": [{"name": "meshbed", "cluster": {
                "server": format!("https://{}", self.address()),
                "certificate-authority": self.folder.path().join("ca.crt"),
            }}],
            "users": [{"name": "user", "user": {"token": user.token}}],
            "contexts": [{"name": "meshbed", "context": {"cluster": "meshbed", "user": "user"}}],
        })
    }

    /// A file with [`Self::kubeconfig`], for other programs; it lives as long as the cluster.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn kubeconfig_file(&self, user: &User) -> io::Result<PathBuf> {
        let path = self
            .folder
            .path()
            .join(format!("{}.kubeconfig", user.file_name()));
        fs::write(&path, self.kubeconfig(user).to_string())?;
        Ok(path)
    }

    /// A client for a user.
    ///
    /// # Errors
    /// When the authority's certificate cannot be read.
    pub async fn client(&self, user: &User) -> Result<Client, ClusterError> {
        let document: Kubeconfig =
            serde_json::from_value(self.kubeconfig(user)).map_err(io::Error::other)?;
        let config =
            kube::Config::from_custom_kubeconfig(document, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Starts the API server after [`Self::stop_api_server`], on the same port and with the same objects.
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn start_api_server(&self) -> Result<(), ClusterError> {
        let mut process = Process::start(
            "kube-apiserver",
            self.command()?,
            Log::In(self.folder.path()),
        )?;
        let client = self.client(&self.admin).await?;
        let is_ready = async || {
            let list = kube::api::ListParams::default();
            let request = kube::api::Request::new("/readyz").list(&list).ok()?;
            let text = client.request_text(request).await.ok()?;
            (text == "ok").then_some(())
        };
        process.ready(READY_WITHIN, is_ready).await?;
        *self.lock() = Some(process);
        Ok(())
    }

    /// Ends the API server with SIGTERM, as an upgrade does. Objects stay in etcd.
    pub fn stop_api_server(&self) {
        let process = self.lock().take();
        if let Some(mut process) = process {
            process.stop(GRACE);
        }
    }

    /// All requests so far that should change something.
    #[must_use]
    pub fn writes(&self) -> Vec<Write> {
        audit::read(&fs::read_to_string(self.folder.path().join(AUDIT_LOG)).unwrap_or_default())
    }

    /// The writes of one user.
    #[must_use]
    pub fn writes_of(&self, user: &User) -> Vec<Write> {
        let mut writes = self.writes();
        writes.retain(|write| write.user.username == user.name);
        writes
    }

    /// Where the servers' files and logs are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Process>> {
        self.api_server
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for KubeCluster {
    fn drop(&mut self) {
        if let Some(process) = self.lock().as_mut() {
            process.kill();
        }
        self.etcd.kill();
        leavings::closing(self.folder.path());
    }
}
