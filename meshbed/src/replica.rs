//! `tidegate serve` in a separate process, as in a cluster: with a service account's token and rights.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tidegate_supervise::{Log, Process};
use tidegate_testbed::client::{CallError, Caller};

use crate::cluster::{ClusterError, GRACE, KubeCluster, User};
use crate::wait::BOUND;

/// How long a lease lasts: the shortest allowed, so that a successor takes over soon.
const LEASE: &str = "3s";

/// Prefix of all series of the service.
const PREFIX: &str = "tidegate_control_";

/// Describes a replica to be started.
#[derive(Debug, Clone)]
pub struct ReplicaBuilder {
    binary: PathBuf,
    options: Vec<String>,
}

/// A running replica; dropping this kills it.
#[derive(Debug)]
pub struct Replica {
    /// The process.
    pub process: Process,
    http: SocketAddr,
    health: SocketAddr,
}

impl Replica {
    /// Describes a replica that runs this binary of `tidegate`.
    pub fn of(binary: impl Into<PathBuf>) -> ReplicaBuilder {
        ReplicaBuilder {
            binary: binary.into(),
            options: Vec::new(),
        }
    }

    /// The address of its REST interface.
    #[must_use]
    pub const fn http(&self) -> SocketAddr {
        self.http
    }

    /// Ends it with SIGTERM, as an upgrade does. Blocks until it has ended.
    pub fn stop(mut self) {
        self.process.stop(GRACE);
    }

    /// The status of the answer to a health check (`/healthz`, `/readyz`); 0 without an answer.
    pub async fn status(&self, path: &str) -> u16 {
        let reply = Caller::http1(self.health).get(path).await;
        reply.map_or(0, |reply| reply.status)
    }

    /// The value of a series such as `kube_writes_total{object="status",result="done"}`; 0 if it does not exist.
    ///
    /// # Errors
    /// If the service does not answer.
    pub async fn metric(&self, series: &str) -> Result<u64, CallError> {
        let reply = Caller::http1(self.http).get("/metrics").await?;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        let start = format!("{PREFIX}{series} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&start));
        Ok(value
            .and_then(|value| value.trim().parse().ok())
            .unwrap_or(0))
    }

    /// Whether it is the replica that writes.
    pub async fn leads(&self) -> bool {
        self.metric("kube_leading")
            .await
            .is_ok_and(|value| value == 1)
    }
}

impl ReplicaBuilder {
    /// Adds options to `tidegate serve`.
    #[must_use]
    pub fn options(mut self, options: &[&str]) -> Self {
        self.options
            .extend(options.iter().map(|&option| option.to_owned()));
        self
    }

    /// Starts it as `user`, whose name it also uses in the lease, and waits until it serves. The lease is in `namespace`.
    ///
    /// # Errors
    /// When it cannot be run or does not serve.
    pub async fn start(
        self,
        cluster: &KubeCluster,
        user: &User,
        namespace: &str,
    ) -> Result<Replica, ClusterError> {
        let name = format!("tidegate-{}", user.file_name());
        let any = "127.0.0.1:0";
        let mut command = Command::new(&self.binary);
        command.args([
            "serve",
            "--kubernetes",
            "--xds-listen",
            any,
            "--http-listen",
            any,
            "--health-listen",
            any,
        ]);
        command
            .arg("--kubeconfig")
            .arg(cluster.kubeconfig_file(user)?);
        command.args([
            "--lease-namespace",
            namespace,
            "--lease-duration",
            LEASE,
            "--identity",
            &user.name,
        ]);
        command.args(&self.options).env_remove("KUBECONFIG");
        let mut process = Process::start(&name, command, Log::In(cluster.folder()))?;
        let (http, health) = process.line(BOUND, serving).await?;
        Ok(Replica {
            process,
            http,
            health,
        })
    }
}

/// The addresses of REST and of health checks from the log line with which the service announces them.
fn serving(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let line: Value = serde_json::from_str(line).ok()?;
    if line.get("message")? != "serving" {
        return None;
    }
    let port = |key: &str| line.get(key)?.as_str()?.parse().ok();
    Some((port("http")?, port("health")?))
}
