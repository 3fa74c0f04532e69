//! The operator's settings, the same for all policies.

mod error;
mod extension;
mod versions;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::istio::ApiChoice;
use super::lease::Timing;
use crate::policy::{CheckedPolicy, PolicyTargets};

use error::Complaints;
pub use error::SettingError;
pub use extension::{Extension, FailStrategy, FilterPhase};
pub use versions::{ModuleNotAllowed, ModuleVersion, ModuleVersions};

/// Longest object name that Kubernetes accepts.
const MAX_NAME: usize = 253;

/// How the service acts in a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct KubeSettings {
    /// How to reach the API server.
    pub access: ClusterAccess,
    /// Which policies are followed.
    pub scope: Scope,
    /// Which of Istio's APIs may be written.
    pub api: ApiChoice,
    /// Everything around the configuration in Istio's objects.
    pub extension: Extension,
    /// How replicas agree which one writes.
    pub lease: LeaseSettings,
    /// The namespaces whose policies may name standalone proxies.
    pub proxies: ProxyNamespaces,
    /// Field manager of all writes: one per installation.
    pub manager: String,
    /// How often the service checks which of Istio's APIs the server has.
    pub recheck: Duration,
}

/// How to reach the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClusterAccess {
    /// Like `kubectl` (`KUBECONFIG`, `~/.kube/config`), or from within the cluster.
    #[default]
    Inferred,
    /// With this file.
    Kubeconfig(PathBuf),
}

/// Which policies are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The policies of all namespaces.
    #[default]
    Cluster,
    /// The policies of one namespace.
    Namespace(String),
}

/// The namespaces in which a policy may name standalone proxies.
///
/// Standalone proxies belong to no namespace, and a policy may name any of them: without this restriction, a tenant
/// could take over the edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyNamespaces(BTreeSet<String>);

impl ProxyNamespaces {
    /// Whether `policy` names standalone proxies from a namespace where that is not allowed.
    #[must_use]
    pub fn bar(&self, policy: &CheckedPolicy) -> bool {
        let namespace = policy.name().namespace().unwrap_or_default();
        matches!(policy.targets(), PolicyTargets::Proxies(_)) && !self.0.contains(namespace)
    }

    /// Adds the service's own namespace, and the only followed namespace, if there is one.
    #[must_use]
    pub fn with(mut self, own: &str, scope: &Scope) -> Self {
        self.0.insert(own.to_owned());
        if let Scope::Namespace(followed) = scope {
            self.0.insert(followed.clone());
        }
        self
    }
}

impl FromIterator<String> for ProxyNamespaces {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        Self(names.into_iter().collect())
    }
}

/// `tidegate-system, edge`.
impl std::fmt::Display for ProxyNamespaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.0.iter().map(String::as_str).collect();
        f.write_str(&names.join(", "))
    }
}

/// How replicas agree which one writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Name of the Lease.
    pub name: String,
    /// Its namespace; `None`: the service's own.
    pub namespace: Option<String>,
    /// Name of this replica in the Lease; unique among replicas.
    pub identity: String,
    /// How long the Lease is valid, and how often it is renewed.
    pub timing: Timing,
}

impl KubeSettings {
    /// All invalid settings, by the names of their options.
    #[must_use]
    pub fn errors(&self) -> Vec<SettingError> {
        let mut complaints = Complaints(self.extension.errors());
        if let Scope::Namespace(namespace) = &self.scope {
            let is_valid = crate::policy::is_name(namespace);
            complaints.unless(is_valid, "watch-namespace", namespace, "a namespace");
        }
        for namespace in &self.proxies.0 {
            let is_valid = crate::policy::is_name(namespace);
            complaints.unless(is_valid, "proxy-namespace", namespace, "a namespace");
        }
        let is_name = crate::policy::is_name(&self.lease.name);
        complaints.unless(is_name, "lease-name", &self.lease.name, "a name");
        let is_identity = (1..=MAX_NAME).contains(&self.lease.identity.len());
        complaints.unless(
            is_identity,
            "identity",
            &self.lease.identity,
            "1 to 253 characters",
        );
        let is_manager = (1..=128).contains(&self.manager.len());
        complaints.unless(
            is_manager,
            "field-manager",
            &self.manager,
            "1 to 128 characters",
        );
        let timing = self.lease.timing;
        complaints.unless(
            timing.is_valid(),
            "lease-duration",
            &format!("{:?}", timing.duration),
            "3s or more",
        );
        complaints.0
    }
}
