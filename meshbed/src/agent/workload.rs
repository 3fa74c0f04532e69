//! The workload of an agent, and the environment of every agent.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::injected::InjectedSidecar;
use crate::istiod::Istiod;
use crate::proxy::MeshNode;

/// The agent gets a certificate first, and Envoy its configuration.
pub(super) const READY_WITHIN: Duration = Duration::from_secs(90);

/// istiod's name in its certificate.
const ISTIOD: &str = "istiod.istio-system.svc";

/// The identity of an agent, and what it may reach.
#[derive(Debug, Clone, Copy)]
pub struct Workload<'a> {
    /// The service account, which gives the identity.
    pub account: &'a str,
    /// The pod's address, by which istiod finds the services it belongs to. No connection goes to it.
    pub address: Ipv4Addr,
    /// A registry that is spoken to without TLS.
    pub registry: Option<SocketAddr>,
    /// What istiod has put into its Pod, where it has.
    pub injected: Option<&'a InjectedSidecar>,
}

/// What an agent gets of this program's own environment: where programs are, and the mark by which `.ci/run` finds servers
/// that were left running.
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
        // Learning about peers is an extension of Istio's Envoy.
        ("PEER_METADATA_DISCOVERY", "false"),
    ]);
}
