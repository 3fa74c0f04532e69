//! What the operator decides, once for all policies.

use std::path::PathBuf;
use std::time::Duration;

use super::election::Timing;
use super::flavour::ApiChoice;

/// Digits of a SHA-256 in hexadecimal.
const SHA256_DIGITS: usize = 64;

/// Longest name of an object that Kubernetes takes.
const MAX_NAME: usize = 253;

/// Schemes under which Istio fetches a module; one without a scheme is an OCI image.
const SCHEMES: [&str; 4] = ["oci", "https", "http", "file"];

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

/// What surrounds the configuration in Istio's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Where proxies fetch the module.
    pub url: String,
    /// SHA-256 of the module in hexadecimal.
    pub sha256: Option<String>,
    /// Secret, in the policy's namespace, for pulling an OCI image.
    pub pull_secret: Option<String>,
    /// What proxies do without a module, or when it crashes.
    pub fail_strategy: FailStrategy,
    /// Where in the chain of filters.
    pub phase: Phase,
    /// Order within the phase, greater first. A selector's labels are added, so that the narrower of two policies
    /// that reach one workload stands first.
    pub priority: i32,
}

/// What proxies do without a module, or when it crashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailStrategy {
    /// Requests pass without the filter.
    #[default]
    Open,
    /// Requests fail.
    Close,
    /// A crashed VM is replaced; requests fail meanwhile, and where there is no module.
    Reload,
}

/// Where in the chain of filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Where Istio puts it: at the end.
    #[default]
    Unspecified,
    /// Before authentication.
    Authn,
    /// After authentication, before authorisation.
    Authz,
    /// After authorisation.
    Stats,
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

impl FailStrategy {
    /// As Istio calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "FAIL_OPEN",
            Self::Close => "FAIL_CLOSE",
            Self::Reload => "FAIL_RELOAD",
        }
    }
}

impl Phase {
    /// As Istio calls it; `None`: not said.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Unspecified => None,
            Self::Authn => Some("AUTHN"),
            Self::Authz => Some("AUTHZ"),
            Self::Stats => Some("STATS"),
        }
    }
}

impl Extension {
    /// Everything that Istio would refuse, by the names of the options.
    #[must_use]
    pub fn errors(&self) -> Vec<SettingError> {
        let mut errors = Vec::new();
        let mut refuse = |is_sound: bool, path, found: &str, expected| {
            if !is_sound {
                errors.push(SettingError {
                    path,
                    found: format!("{found:?}"),
                    expected,
                });
            }
        };
        refuse(
            is_url(&self.url),
            "extension-url",
            &self.url,
            "oci://, https://, http:// or file:// and where the module is",
        );
        if let Some(sha256) = &self.sha256 {
            let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
            refuse(
                sha256.len() == SHA256_DIGITS && sha256.bytes().all(is_digit),
                "extension-sha256",
                sha256,
                "64 hexadecimal digits in lower case",
            );
        }
        if let Some(secret) = &self.pull_secret {
            refuse(
                crate::policy::is_name(secret),
                "extension-pull-secret",
                secret,
                "the name of a Secret",
            );
        }
        errors
    }
}

impl Settings {
    /// Everything that cannot be, by the names of the options.
    #[must_use]
    pub fn errors(&self) -> Vec<SettingError> {
        let mut errors = self.extension.errors();
        let mut refuse = |is_sound: bool, path, found: &str, expected| {
            if !is_sound {
                errors.push(SettingError {
                    path,
                    found: format!("{found:?}"),
                    expected,
                });
            }
        };
        if let Scope::Namespace(namespace) = &self.scope {
            let is_sound = crate::policy::is_name(namespace);
            refuse(is_sound, "watch-namespace", namespace, "a namespace");
        }
        let is_name = crate::policy::is_name(&self.lease.name);
        refuse(is_name, "lease-name", &self.lease.name, "a name");
        let is_identity = (1..=MAX_NAME).contains(&self.lease.identity.len());
        refuse(
            is_identity,
            "identity",
            &self.lease.identity,
            "1 to 253 characters",
        );
        let is_manager = (1..=128).contains(&self.manager.len());
        refuse(
            is_manager,
            "field-manager",
            &self.manager,
            "1 to 128 characters",
        );
        let timing = self.lease.timing;
        refuse(
            timing.is_sound(),
            "lease-duration",
            &format!("{:?}", timing.duration),
            "3s or more",
        );
        errors
    }
}

fn is_url(url: &str) -> bool {
    let is_plain = !url.is_empty() && url.bytes().all(|b| b.is_ascii_graphic());
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None => ("oci", url),
    };
    is_plain && SCHEMES.contains(&scheme) && !rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extension(url: &str, sha256: Option<&str>) -> Extension {
        Extension {
            url: url.to_owned(),
            sha256: sha256.map(str::to_owned),
            pull_secret: None,
            fail_strategy: FailStrategy::default(),
            phase: Phase::default(),
            priority: 0,
        }
    }

    #[test]
    fn what_istio_takes_is_taken() {
        for url in [
            "oci://registry.example/tidegate:1",
            "registry.example/tidegate:1",
            "https://example.com/tidegate.wasm",
            "file:///etc/tidegate.wasm",
        ] {
            assert_eq!(extension(url, Some(&"0a".repeat(32))).errors(), []);
        }
    }

    #[test]
    fn all_errors_are_told_at_once() {
        let mut wrong = extension("ftp://example.com/x", Some(&"0A".repeat(32)));
        wrong.pull_secret = Some("Not a name".to_owned());

        let said: Vec<String> = wrong.errors().iter().map(ToString::to_string).collect();

        assert_eq!(said.len(), 3, "{said:?}");
        assert_eq!(
            said.first().unwrap(),
            "extension-url: found \"ftp://example.com/x\", expected oci://, https://, http:// or file:// and where the module is"
        );
    }
}
