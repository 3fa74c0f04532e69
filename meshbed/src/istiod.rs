//! Istio's control plane, configured from a [`Cluster`] and serving discovery on loopback.
//!
//! It is the unchanged istiod. What it is told keeps it on this machine: no mTLS unless asked for, no injection, and
//! none of the filters that only Istio's own build of Envoy has, because the proxies here are plain Envoys.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tidegate_testbed::client::Caller;

use crate::cluster::{Cluster, ClusterError};
use crate::place;
use crate::ports;
use crate::process::Process;

/// Where istiod believes that it runs; objects there hold for the whole mesh.
pub const ROOT_NAMESPACE: &str = "istio-system";

/// It lists all kinds before it is ready; seconds on an idle machine.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// Which proxies it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Sidecars and gateways.
    Sidecars,
    /// Waypoints as well.
    Ambient,
}

/// A running istiod; killed by its id when dropped.
#[derive(Debug)]
pub struct Istiod {
    process: Process,
    addresses: Addresses,
    mode: Mode,
}

/// Where it listens.
#[derive(Debug, Clone, Copy)]
struct Addresses {
    xds: SocketAddr,
    secure_xds: SocketAddr,
    http: SocketAddr,
}

impl Istiod {
    /// Starts it on a cluster on which Istio's kinds are installed and [`ROOT_NAMESPACE`] exists.
    ///
    /// # Errors
    /// When the binary is missing, or it does not become ready.
    pub async fn start(cluster: &Cluster, mode: Mode) -> Result<Self, ClusterError> {
        let free = || SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let addresses = Addresses {
            xds: free(),
            secure_xds: free(),
            http: free(),
        };
        Self::start_at(cluster, addresses, mode).await
    }

    /// Starts it anew where it listened before, after [`Self::kill`].
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn restart(&mut self, cluster: &Cluster) -> Result<(), ClusterError> {
        *self = Self::start_at(cluster, self.addresses, self.mode).await?;
        Ok(())
    }

    async fn start_at(
        cluster: &Cluster,
        addresses: Addresses,
        mode: Mode,
    ) -> Result<Self, ClusterError> {
        let mut command = command(cluster, addresses)?;
        if mode == Mode::Ambient {
            command.env("PILOT_ENABLE_AMBIENT", "true");
        }
        let mut process = Process::start("istiod", command, cluster.folder())?;
        let caller = Caller::http1(addresses.http);
        let is_ready = async || {
            let reply = caller.get("/ready").await;
            reply.is_ok_and(|reply| reply.status == 200)
        };
        process.ready(READY_WITHIN, is_ready).await?;
        Ok(Self {
            process,
            addresses,
            mode,
        })
    }

    /// Where proxies ask for their configuration, in plaintext.
    #[must_use]
    pub const fn xds(&self) -> SocketAddr {
        self.addresses.xds
    }

    /// Where proxies ask for certificates and configuration, by TLS, as `istiod.istio-system.svc`.
    #[must_use]
    pub const fn secure_xds(&self) -> SocketAddr {
        self.addresses.secure_xds
    }

    /// Its REST interface, with `/debug/` pages.
    #[must_use]
    pub const fn http(&self) -> SocketAddr {
        self.addresses.http
    }

    /// Kills it without asking.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}

fn command(cluster: &Cluster, addresses: Addresses) -> Result<Command, ClusterError> {
    let Addresses {
        xds,
        secure_xds,
        http,
    } = addresses;
    let any = || format!("127.0.0.1:{}", ports::free());
    let mesh = cluster.folder().join("mesh.json");
    fs::write(&mesh, mesh_config(secure_xds).to_string())?;
    let networks = cluster.folder().join("networks.json");
    fs::write(&networks, "{}")?;

    let mut command = Command::new(place::binary("pilot-discovery")?);
    command.args(["discovery", "--namespace", ROOT_NAMESPACE]);
    command
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig_file(cluster.admin())?);
    command.arg("--meshConfig").arg(mesh);
    command.arg("--networksConfig").arg(networks);
    command.arg("--httpAddr").arg(http.to_string());
    command.arg("--grpcAddr").arg(xds.to_string());
    command.arg("--secureGRPCAddr").arg(secure_xds.to_string());
    command.args(["--httpsAddr", &any(), "--monitoringAddr", &any()]);
    command.args(["--ctrlz_address", "127.0.0.1"]);
    command.args(["--ctrlz_port", &ports::free().to_string()]);
    command.envs([
        ("POD_NAME", "istiod-0"),
        ("POD_NAMESPACE", ROOT_NAMESPACE),
        ("CLUSTER_ID", "Kubernetes"),
        ("INJECT_ENABLED", "false"),
        ("ENABLE_CA_SERVER", "true"),
        ("VALIDATION_WEBHOOK_CONFIG_NAME", ""),
        // Filters that a plain Envoy does not have.
        ("PILOT_ENABLE_METADATA_EXCHANGE", "false"),
        ("PILOT_ENABLE_ALPN_FILTER", "false"),
    ]);
    // It writes certificates below the folder that it is in.
    command
        .current_dir(cluster.folder())
        .env_remove("KUBECONFIG");
    Ok(command)
}

fn mesh_config(secure_xds: SocketAddr) -> serde_json::Value {
    json!({
        "enableAutoMtls": false,
        "rootNamespace": ROOT_NAMESPACE,
        "defaultConfig": {"discoveryAddress": secure_xds.to_string(), "interceptionMode": "NONE"},
    })
}
