//! What the operator decides, once for all policies.

mod extension;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use super::election::Timing;
use super::flavour::ApiChoice;
use crate::policy::{Policy, Targets};

pub use extension::{Extension, FailStrategy, Phase};

/// Longest name of an object that Kubernetes takes.
const MAX_NAME: usize = 253;

/// How the service is to act in a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where the API server is.
    pub access: Access,
    /// Which policies are followed.
    pub scope: Scope,
    /// Which of Istio's APIs may be written.
    pub api: ApiChoice,
    /// What surrounds the configuration in Istio's objects.
    pub extension: Extension,
    /// Who writes.
    pub lease: LeaseSettings,
    /// Where policies for standalone proxies may stand.
    pub proxies: ProxyNamespaces,
    /// Field manager of all that is written: one for each installation.
    pub manager: String,
    /// How often is looked which of Istio's APIs the server has.
    pub recheck: Duration,
}

/// Where the API server is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// As `kubectl` finds it (`KUBECONFIG`, `~/.kube/config`), or from within the cluster.
    #[default]
    Inferred,
    /// As this file says.
    Kubeconfig(PathBuf),
}

/// Which policies are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of all namespaces.
    #[default]
    Cluster,
    /// Those of one.
    Namespace(String),
}

/// The namespaces in which a policy may name standalone proxies.
///
/// Those are nobody's in the cluster, and any policy may name any of them: from another namespace a tenant could
/// take over the edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyNamespaces(BTreeSet<String>);

impl ProxyNamespaces {
    /// Whether `policy` names standalone proxies from a namespace that may not.
    #[must_use]
    pub fn bar(&self, policy: &Policy) -> bool {
        let namespace = policy.name().namespace().unwrap_or_default();
        matches!(policy.targets(), Targets::Proxies(_)) && !self.0.contains(namespace)
    }

    /// The same with that of the service, and the one that it follows alone, if it does.
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

/// Who writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Name of the Lease.
    pub name: String,
    /// Its namespace; `None`: the service's own.
    pub namespace: Option<String>,
    /// What this replica is called in it; no two may have one name.
    pub identity: String,
    /// How long it holds, and how often it is renewed.
    pub timing: Timing,
}

/// A setting that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: found {found}, expected {expected}")]
pub struct SettingError {
    /// Which.
    pub path: &'static str,
    /// What it is.
    pub found: String,
    /// What it could be.
    pub expected: &'static str,
}

/// Settings that cannot be, as they are found.
#[derive(Default)]
struct Complaints(Vec<SettingError>);

impl Complaints {
    fn unless(&mut self, is_sound: bool, path: &'static str, found: &str, expected: &'static str) {
        if !is_sound {
            self.0.push(SettingError {
                path,
                found: format!("{found:?}"),
                expected,
            });
        }
    }
}

impl Settings {
    /// Everything that cannot be, by the names of the options.
    #[must_use]
    pub fn errors(&self) -> Vec<SettingError> {
        let mut complaints = Complaints(self.extension.errors());
        if let Scope::Namespace(namespace) = &self.scope {
            let is_sound = crate::policy::is_name(namespace);
            complaints.unless(is_sound, "watch-namespace", namespace, "a namespace");
        }
        for namespace in &self.proxies.0 {
            let is_sound = crate::policy::is_name(namespace);
            complaints.unless(is_sound, "proxy-namespace", namespace, "a namespace");
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
            timing.is_sound(),
            "lease-duration",
            &format!("{:?}", timing.duration),
            "3s or more",
        );
        complaints.0
    }
}
