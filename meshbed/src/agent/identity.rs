//! The identity of a workload without a proxy: certificates for a test's own caller.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

use serde_json::json;
use tidegate_supervise::{Log, Process};
use tidegate_testbed::client::Identity;

use super::files;
use super::workload::{READY_WITHIN, Workload, environment};
use crate::cluster::{ClusterError, KubeCluster};
use crate::istiod::Istiod;
use crate::place;
use crate::ports;
use crate::proxy::{MeshNode, ProxyRole};

/// An address that no service has.
const NOWHERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);

/// The identity of a service account, signed by istiod. An agent requests it, as in a pod, and ends.
///
/// # Errors
/// If the account does not exist, or istiod does not sign.
pub async fn identity(
    cluster: &KubeCluster,
    istiod: &Istiod,
    namespace: &str,
    account: &str,
) -> Result<Identity, ClusterError> {
    let node = MeshNode {
        role: ProxyRole::Sidecar,
        name: format!("caller-{account}"),
        namespace: namespace.to_owned(),
        labels: BTreeMap::new(),
    };
    let workload = Workload {
        account,
        address: NOWHERE,
        registry: None,
        injected: None,
    };
    let name = format!("agent-{}.{namespace}", node.name);
    let folder = cluster.folder().join(&name);
    let client = cluster.client(cluster.admin()).await?;
    files::credentials(&client, namespace, account, &folder).await?;
    let out = folder.join("certificates");
    files::make(&out)?;

    let mut command = Command::new(place::binary("pilot-agent")?);
    command.args(["proxy", ProxyRole::Sidecar.name()]);
    environment(&mut command, istiod, &node, workload, &folder);
    let proxy = json!({
        "discoveryAddress": istiod.secure_xds().to_string(),
        "statusPort": ports::free(),
    });
    command.env("PROXY_CONFIG", proxy.to_string());
    command.env("DISABLE_ENVOY", "true");
    command.env("OUTPUT_CERTS", &out);
    let mut process = Process::start(&name, command, Log::In(cluster.folder()))?;

    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
    let is_there = async || {
        let found = Identity {
            chain: read("cert-chain.pem"),
            key: read("key.pem"),
            roots: read("root-cert.pem"),
        };
        let all = [&found.chain, &found.key, &found.roots];
        let is_complete = all.iter().all(|text| text.trim_end().ends_with("-----"));
        is_complete.then_some(found)
    };
    Ok(process.ready(READY_WITHIN, is_there).await?)
}
