//! The files of a pod that the agent reads: its identity, its roots of trust, its labels, Envoy's bootstrap.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::Client;
use kube::api::{Api, PostParams};

use super::injected::InjectedSidecar;
use crate::cluster::ClusterError;
use crate::place;
use crate::proxy::{MeshNode, ProxyRole};
use crate::wait::until;

/// Template of Envoy's bootstrap, which the agent fills in.
pub(super) const BOOTSTRAP: &str = "bootstrap.json";

/// The audience of a pod's token.
const AUDIENCE: &str = "istio-ca";

/// The `ConfigMap`, and its key, in which every namespace has the root certificate that verifies istiod.
const ROOT: (&str, &str) = ("istio-ca-root-cert", "root-cert.pem");

/// The template's condition for metadata discovery of peers, which only Istio's Envoy can do.
const LEARNS_ABOUT_PEERS: &str = "{{- if .metadata_discovery }}";

/// Requests a token of the account, and waits for the root that istiod writes to each namespace.
pub(super) async fn credentials(
    client: &Client,
    namespace: &str,
    account: &str,
    folder: &Path,
) -> Result<(), ClusterError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: vec![AUDIENCE.to_owned()],
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(account, &PostParams::default(), &request)
        .await?;
    let token = answer.status.map(|status| status.token).unwrap_or_default();

    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let mut root = String::new();
    until("istiod's root is in the namespace", async || {
        let map = maps.get(ROOT.0).await;
        root = map
            .ok()
            .and_then(|map| map.data?.remove(ROOT.1))
            .unwrap_or_default();
        !root.is_empty()
    })
    .await;

    let secrets = folder.join("var/run/secrets");
    for (below, name, text) in [("tokens", "istio-token", &token), ("istio", ROOT.1, &root)] {
        make(&secrets.join(below))?;
        fs::write(secrets.join(below).join(name), text)?;
    }
    Ok(())
}

/// Writes the labels as the kubelet does for a pod that requests them.
pub(super) fn labels(node: &MeshNode, folder: &Path) -> Result<(), ClusterError> {
    about_pod("labels", &node.labels, folder)
}

/// Writes the annotations in the same way, if istiod made the pod request them.
pub(super) fn annotations(
    injected: Option<&InjectedSidecar>,
    folder: &Path,
) -> Result<(), ClusterError> {
    match injected {
        Some(injected) => about_pod("annotations", &injected.annotations, folder),
        None => Ok(()),
    }
}

fn about_pod(
    name: &str,
    values: &BTreeMap<String, String>,
    folder: &Path,
) -> Result<(), ClusterError> {
    let mut text = String::new();
    for (key, value) in values {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{key}={value:?}");
    }
    let place = folder.join("etc/istio/pod");
    make(&place)?;
    Ok(fs::write(place.join(name), text)?)
}

/// Istio's template, without the parts for which the agent would always require Istio's Envoy.
pub(super) fn bootstrap(role: ProxyRole, folder: &Path) -> Result<(), ClusterError> {
    let mut text = fs::read_to_string(place::file("envoy_bootstrap.json")?)?;
    if role == ProxyRole::Waypoint {
        text = text.replace(LEARNS_ABOUT_PEERS, "{{- if false }}");
    }
    Ok(fs::write(folder.join(BOOTSTRAP), text)?)
}

/// Creates a folder and its parents.
pub(super) fn make(folder: &Path) -> Result<(), ClusterError> {
    Ok(fs::create_dir_all(folder)?)
}
