//! A proxy as Istio runs it in a pod: pilot-agent, and the Envoy that it starts.
//!
//! The agent proves the workload's identity, gets certificates for it, hands them to Envoy, and fetches the modules that a
//! plugin object names. The agent is the one that Istio ships, the Envoy is a plain one. Parts that need Istio's Envoy are
//! left out:
//!
//! - a waypoint's bootstrap lacks the extension that discovers metadata of peers (`metadata_discovery`);
//! - a waypoint claims version 1.29.1: later ones get objects that only Istio's Envoy knows (`istio.hashable_string`), this
//!   version gets Envoy's own kind instead.
//!
//! An `EnvoyFilter` must remove anything else from istiod that a plain Envoy does not know.
//!
//! The agent keeps modules in a fixed folder, so each agent has its own `/var/lib` (a mount namespace); and its Envoy always
//! ends with it (a process namespace). It listens on all addresses: `ci/own-network.sh` gives it a separate network.

mod files;
mod identity;
mod injected;
mod workload;

use std::ops::Deref;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tidegate_supervise::{Log, Process};
use tidegate_testbed::client::{CallError, Caller};
use tidegate_testbed::envoy::{self, Admin};

use crate::cluster::{ClusterError, KubeCluster};
use crate::istiod::Istiod;
use crate::place;
use crate::ports;
use crate::proxy::{MeshNode, ProxyRole};

pub use identity::identity;
pub use injected::InjectedSidecar;
pub use workload::Workload;

use workload::{READY_WITHIN, environment};

/// The oldest version known to istiod whose waypoint listeners a plain Envoy accepts.
const WAYPOINT_VERSION: &str = "1.29.1";

/// A running agent with its Envoy; dropping this kills both.
#[derive(Debug)]
pub struct Agent {
    process: Process,
    admin: Admin,
    status: Caller,
}

impl Agent {
    /// Starts the agent of a node whose Pod and service account exist, and waits until its Envoy has its listeners.
    ///
    /// # Errors
    /// If something is missing or rejected, or the agent does not become ready.
    pub async fn start(
        cluster: &KubeCluster,
        istiod: &Istiod,
        node: &MeshNode,
        workload: Workload<'_>,
    ) -> Result<Self, ClusterError> {
        let name = format!("agent-{}.{}", node.name, node.namespace);
        let folder = cluster.folder().join(&name);
        let client = cluster.client(cluster.admin()).await?;
        files::credentials(&client, &node.namespace, workload.account, &folder).await?;
        files::labels(node, &folder)?;
        files::annotations(workload.injected, &folder)?;
        files::bootstrap(node.role, &folder)?;
        let open = StatusPorts {
            admin: ports::free(),
            status: ports::free(),
        };
        let command = envoys_agent(istiod, node, workload, &folder, open)?;
        let mut agent = Self {
            process: Process::start(&name, command, Log::In(cluster.folder()))?,
            admin: Admin::new(([127, 0, 0, 1], open.admin).into()),
            status: Caller::http1(([127, 0, 0, 1], open.status).into()),
        };
        let admin = agent.admin.clone();
        let is_ready = async || admin.text("/ready").await.ok();
        agent.process.ready(READY_WITHIN, is_ready).await?;
        Ok(agent)
    }

    /// Envoy's admin interface.
    #[must_use]
    pub const fn admin(&self) -> &Admin {
        &self.admin
    }

    /// The metrics that Prometheus scrapes from it: Envoy's and the agent's own.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn metrics(&self) -> Result<String, CallError> {
        let reply = self.status.get("/metrics").await?;
        Ok(String::from_utf8_lossy(&reply.body).into_owned())
    }
}

impl Deref for Agent {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

/// Ports of the health checks.
#[derive(Debug, Clone, Copy)]
struct StatusPorts {
    admin: u16,
    status: u16,
}

/// The command that runs the agent in separate namespaces.
fn envoys_agent(
    istiod: &Istiod,
    node: &MeshNode,
    workload: Workload<'_>,
    folder: &Path,
    open: StatusPorts,
) -> Result<Command, ClusterError> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.args(["sh", "-c"]);
    command.arg("mount -t tmpfs tmpfs /var/lib && mkdir -p /var/lib/istio/data && exec \"$@\"");
    command.arg("sh").arg(place::binary("pilot-agent")?);
    command.args(["proxy", node.role.name(), "--proxyLogLevel=warning"]);
    command.args(["--domain", &format!("{}.svc.cluster.local", node.namespace)]);
    let own = json!({
        "discoveryAddress": istiod.secure_xds().to_string(),
        "binaryPath": envoy::binary(),
        "configPath": folder.join("envoy"),
        "proxyBootstrapTemplatePath": folder.join(files::BOOTSTRAP),
        "proxyAdminPort": open.admin,
        "statusPort": open.status,
        "concurrency": 2,
        "interceptionMode": "NONE",
    });
    environment(&mut command, istiod, node, workload, folder);
    let mut proxy = match workload.injected {
        Some(injected) => injected.proxy_config.clone(),
        None => json!({}),
    };
    if let (Some(proxy), Value::Object(own)) = (proxy.as_object_mut(), own) {
        proxy.extend(own);
    }
    command.env("PROXY_CONFIG", proxy.to_string());
    command.env("ENVOY_STATUS_PORT", ports::free().to_string());
    command.env("ENVOY_PROMETHEUS_PORT", ports::free().to_string());
    command.env("ISTIO_META_INTERCEPTION_MODE", "NONE");
    if node.role == ProxyRole::Waypoint {
        command.env("ISTIO_META_ISTIO_VERSION", WAYPOINT_VERSION);
    }
    if let Some(registry) = workload.registry {
        command.env("WASM_INSECURE_REGISTRIES", registry.to_string());
    }
    Ok(command)
}
