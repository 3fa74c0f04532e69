//! The workload of an agent, and the environment of every agent.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::injected::InjectedSidecar;
use crate::istiod::Istiod;
use crate::proxy::MeshNode;

/// Time for the agent to get a certificate, and for Envoy to get its configuration.
pub(super) const READY_WITHIN: Duration = Duration::from_secs(90);

/// istiod's name in its certificate.
const ISTIOD: &str = "istiod.istio-system.svc";

/// The identity of an agent, and the servers that it may reach.
#[derive(Debug, Clone, Copy)]
pub struct Workload<'a> {
    /// The service account, which gives the identity.
    pub account: &'a str,
    /// The pod's address, by which istiod finds the services it belongs to. No connection goes to it.
    pub address: Ipv4Addr,
    /// A registry that it accesses without TLS.
    pub registry: Option<SocketAddr>,
    /// The settings that istiod has injected into its Pod, if it has.
    pub injected: Option<&'a InjectedSidecar>,
}

/// Variables of this program's environment that an agent inherits: the path of programs, and the mark by which `.ci/run`
/// finds servers that were left running.
const PASSED_ON: [&str; 2] = ["PATH", "TIDEGATE_RUN"];

/// The environment of every agent.
pub(super) fn environment(
    command: &mut Command,
    istiod: &Istiod,
    node: &MeshNode,
    workload: Workload<'_>,
    folder: &Path,
) {
    command.env_clear().current_dir(folder);
    let passed_on = PASSED_ON.into_iter();
    command.envs(passed_on.filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs([
        ("POD_NAME", node.name.as_str()),
        ("POD_NAMESPACE", &node.namespace),
        ("SERVICE_ACCOUNT", workload.account),
        ("INSTANCE_IP", &workload.address.to_string()),
        ("CA_ADDR", &istiod.secure_xds().to_string()),
        ("ISTIOD_SAN", ISTIOD),
        ("ISTIO_META_CLUSTER_ID", "Kubernetes"),
        // Only Istio's Envoy has the extension that discovers metadata of peers.
        ("PEER_METADATA_DISCOVERY", "false"),
    ]);
}
