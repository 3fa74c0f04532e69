//! Istio's control plane, configured from a [`KubeCluster`] and serving discovery on loopback.
//!
//! This is the unmodified istiod. Its settings keep it on this machine: no mTLS and no injection unless requested, and none
//! of the filters that only Istio's build of Envoy has, because the proxies here are plain Envoys.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_supervise::{Log, Process};
use tidegate_testbed::client::Caller;
use tidegate_testbed::envoy::repository;

use crate::cluster::{ClusterError, KubeCluster};
use crate::injection;
use crate::place;
use crate::ports;

/// The namespace in which istiod believes that it runs; its objects apply to the whole mesh.
pub const ROOT_NAMESPACE: &str = "istio-system";

/// The mesh configuration with Tidegate's labels.
const LABELS: &str = "dashboards/stats-tags/istio-mesh.yaml";

/// It lists all kinds before it is ready: seconds on an idle machine.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// The kinds of proxies that it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeshMode {
    /// Sidecars and gateways.
    Sidecars,
    /// Waypoints as well.
    Ambient,
    /// Sidecars, which it injects into Pods itself; the mesh configuration has Tidegate's labels, as in
    /// `dashboards/stats-tags/istio-mesh.yaml`.
    Injected,
}

/// A running istiod; dropping this kills it.
#[derive(Debug)]
pub struct Istiod {
    process: Process,
    addresses: Addresses,
    mode: MeshMode,
}

/// The addresses on which it listens.
#[derive(Debug, Clone, Copy)]
struct Addresses {
    xds: SocketAddr,
    secure_xds: SocketAddr,
    http: SocketAddr,
    https: SocketAddr,
}

impl Istiod {
    /// Starts it on a cluster on which Istio's kinds are installed and [`ROOT_NAMESPACE`] exists.
    ///
    /// # Errors
    /// When the binary is missing, or it does not become ready.
    pub async fn start(cluster: &KubeCluster, mode: MeshMode) -> Result<Self, ClusterError> {
        let free = || SocketAddr::from(([127, 0, 0, 1], ports::free()));
        let addresses = Addresses {
            xds: free(),
            secure_xds: free(),
            http: free(),
            https: free(),
        };
        if mode != MeshMode::Injected {
            return Self::start_at(cluster, addresses, mode).await;
        }
        let client = cluster.client(cluster.admin()).await?;
        let webhook = injection::templates(&client, ROOT_NAMESPACE).await?;
        let istiod = Self::start_at(cluster, addresses, mode).await?;
        webhook.install(&client, addresses.https).await?;
        Ok(istiod)
    }

    /// Starts it again on the same addresses, after [`Self::kill`].
    ///
    /// # Errors
    /// When it does not become ready.
    pub async fn restart(&mut self, cluster: &KubeCluster) -> Result<(), ClusterError> {
        *self = Self::start_at(cluster, self.addresses, self.mode).await?;
        Ok(())
    }

    async fn start_at(
        cluster: &KubeCluster,
        addresses: Addresses,
        mode: MeshMode,
    ) -> Result<Self, ClusterError> {
        let mut command = command(
            cluster,
            addresses,
            &mesh_config(addresses.secure_xds, mode)?,
        )?;
        match mode {
            MeshMode::Sidecars => {}
            MeshMode::Ambient => {
                command.env("PILOT_ENABLE_AMBIENT", "true");
            }
            MeshMode::Injected => {
                // The revision of the webhook to which istiod adds its root.
                command.envs([("INJECT_ENABLED", "true"), ("REVISION", "default")]);
                command.env("ISTIOD_CUSTOM_HOST", injection::HOST);
            }
        }
        let mut process = Process::start("istiod", command, Log::In(cluster.folder()))?;
        let caller = Caller::http1(addresses.http);
        let is_ready = async || {
            let reply = caller.get("/ready").await.ok()?;
            (reply.status == 200).then_some(())
        };
        process.ready(READY_WITHIN, is_ready).await?;
        Ok(Self {
            process,
            addresses,
            mode,
        })
    }

    /// The address from which proxies get their configuration, in plaintext.
    #[must_use]
    pub const fn xds(&self) -> SocketAddr {
        self.addresses.xds
    }

    /// The address from which proxies get certificates and configuration, over TLS, as `istiod.istio-system.svc`.
    #[must_use]
    pub const fn secure_xds(&self) -> SocketAddr {
        self.addresses.secure_xds
    }

    /// Its REST interface, with `/debug/` pages.
    #[must_use]
    pub const fn http(&self) -> SocketAddr {
        self.addresses.http
    }

    /// Kills it without a grace period.
    pub fn kill(&mut self) {
        self.process.kill();
    }
}

fn command(
    cluster: &KubeCluster,
    addresses: Addresses,
    mesh_config: &Value,
) -> Result<Command, ClusterError> {
    let Addresses {
        xds,
        secure_xds,
        http,
        https,
    } = addresses;
    let any = || format!("127.0.0.1:{}", ports::free());
    let mesh = cluster.folder().join("mesh.json");
    fs::write(&mesh, mesh_config.to_string())?;
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
    command.arg("--httpsAddr").arg(https.to_string());
    command.args(["--monitoringAddr", &any()]);
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
    // istiod writes certificates below its working directory.
    command
        .current_dir(cluster.folder())
        .env_remove("KUBECONFIG");
    Ok(command)
}

fn mesh_config(secure_xds: SocketAddr, mode: MeshMode) -> io::Result<Value> {
    let tags = match mode {
        MeshMode::Sidecars | MeshMode::Ambient => json!([]),
        MeshMode::Injected => labels()?,
    };
    Ok(json!({
        "enableAutoMtls": false,
        "rootNamespace": ROOT_NAMESPACE,
        "defaultConfig": {
            "discoveryAddress": secure_xds.to_string(), "interceptionMode": "NONE",
            "extraStatTags": tags,
        },
    }))
}

fn labels() -> io::Result<Value> {
    let text = fs::read_to_string(repository().join(LABELS))?;
    let values: Value = serde_saphyr::from_str(&text).map_err(io::Error::other)?;
    let tags = values.pointer("/meshConfig/defaultConfig/extraStatTags");
    let missing = || io::Error::other(format!("{LABELS} names no extraStatTags"));
    tags.cloned().ok_or_else(missing)
}
