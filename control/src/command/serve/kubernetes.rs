//! The options of the Kubernetes controller.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tidegate_control::kube::KubeSettings;
use tidegate_control::kube::istio::{ApiChoice, IstioApi};
use tidegate_control::kube::lease::Timing;
use tidegate_control::kube::settings::{
    ClusterAccess, Extension, FailStrategy, FilterPhase, LeaseSettings, ModuleVersions, Scope,
};

use super::{needs, time};
use crate::command::CommandFailure;

/// How often the service checks which of Istio's APIs the server has.
const RECHECK: Duration = Duration::from_secs(30);

/// Policies from a cluster, and the objects written there.
#[derive(Debug, Args)]
#[command(next_help_heading = "Kubernetes")]
pub(super) struct Kubernetes {
    /// Take policies from Kubernetes, and put them in force with Istio's extensions
    #[arg(long, env = "TIDEGATE_KUBERNETES")]
    kubernetes: bool,
    /// Configuration of the client; default: the same as kubectl's, or from within the cluster
    #[arg(long, value_name = "FILE", env = "TIDEGATE_KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
    /// Follow the policies of this namespace only
    #[arg(long, value_name = "NAME", env = "TIDEGATE_WATCH_NAMESPACE")]
    watch_namespace: Option<String>,
    /// Namespaces, in addition to the control service's own, whose policies may name standalone proxies
    #[arg(
        long = "proxy-namespace",
        value_name = "NAME",
        env = "TIDEGATE_PROXY_NAMESPACE",
        value_delimiter = ','
    )]
    proxy_namespaces: Vec<String>,
    /// Istio's API to write
    #[arg(long, value_enum, env = "TIDEGATE_EXTENSION_API", default_value_t)]
    extension_api: Api,
    /// Where Istio's proxies fetch the module: oci://, https://, http:// or file://
    #[arg(long, value_name = "URL", env = "TIDEGATE_EXTENSION_URL")]
    extension_url: Option<String>,
    /// SHA-256 of that module, or the digest of the image; required unless the URL is a file or contains the digest
    #[arg(long, value_name = "HEX", env = "TIDEGATE_EXTENSION_SHA256")]
    extension_sha256: Option<String>,
    /// Another version of the module that policies may name in spec.module, such as a canary: NAME=URL, with #sha256:HEX
    /// behind the URL unless that contains the digest
    #[arg(
        long = "extension-version",
        value_name = "NAME=URL",
        env = "TIDEGATE_EXTENSION_VERSION",
        value_delimiter = ','
    )]
    extension_versions: Vec<String>,
    /// The version that the policies of a namespace get if they name none
    #[arg(
        long = "namespace-version",
        value_name = "NAMESPACE=NAME",
        env = "TIDEGATE_NAMESPACE_VERSION",
        value_delimiter = ','
    )]
    namespace_versions: Vec<String>,
    /// Secret, in the namespace of each policy, for pulling the image
    #[arg(long, value_name = "NAME", env = "TIDEGATE_EXTENSION_PULL_SECRET")]
    extension_pull_secret: Option<String>,
    /// What happens to requests when a proxy cannot get the module, or its VM has crashed
    #[arg(
        long,
        value_enum,
        env = "TIDEGATE_EXTENSION_FAIL_STRATEGY",
        default_value_t
    )]
    extension_fail_strategy: OnFail,
    /// Position of the filter among Istio's own
    #[arg(long, value_enum, env = "TIDEGATE_EXTENSION_PHASE", default_value_t)]
    extension_phase: ChainPlace,
    /// Order within the phase, greater first; the number of labels is added for a selector
    #[arg(
        long,
        value_name = "N",
        env = "TIDEGATE_EXTENSION_PRIORITY",
        default_value_t = 0,
        allow_negative_numbers = true
    )]
    extension_priority: i32,
    /// Lease by which replicas agree which one writes
    #[arg(
        long,
        value_name = "NAME",
        env = "TIDEGATE_LEASE_NAME",
        default_value = "tidegate"
    )]
    lease_name: String,
    /// Namespace of the lease; default: the control service's own
    #[arg(long, value_name = "NAME", env = "TIDEGATE_LEASE_NAMESPACE")]
    lease_namespace: Option<String>,
    /// Time after the leader's last renewal until another replica takes over
    #[arg(long, value_name = "TIME", env = "TIDEGATE_LEASE_DURATION", default_value = "15s", value_parser = time)]
    lease_duration: Duration,
    /// Name of this replica in the lease; default: host name and process id
    #[arg(long, value_name = "NAME", env = "TIDEGATE_IDENTITY")]
    identity: Option<String>,
    /// Field manager of all writes; one per installation
    #[arg(
        long,
        value_name = "NAME",
        env = "TIDEGATE_FIELD_MANAGER",
        default_value = "tidegate"
    )]
    field_manager: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Api {
    /// The API that the server has; the newer one if it has both
    #[default]
    Auto,
    /// Istio 1.30 and later
    TrafficExtension,
    /// Earlier versions of Istio
    WasmPlugin,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OnFail {
    /// Requests pass without the filter
    #[default]
    Open,
    /// Requests fail
    Close,
    /// A crashed VM is replaced; requests fail meanwhile, and without a module
    Reload,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ChainPlace {
    /// At the end, Istio's default
    #[default]
    Unspecified,
    /// Before authentication
    Authn,
    /// After authentication, before authorization
    Authz,
    /// After authorization
    Stats,
}

impl Kubernetes {
    /// The settings; `None`: no cluster.
    pub(super) fn settings(self) -> Result<Option<KubeSettings>, CommandFailure> {
        if !self.kubernetes {
            return Ok(None);
        }
        needs(&self.extension_url, "extension-url", "kubernetes")?;
        let url = self.extension_url.unwrap_or_default();
        let settings = KubeSettings {
            access: self
                .kubeconfig
                .map_or(ClusterAccess::Inferred, ClusterAccess::Kubeconfig),
            scope: self
                .watch_namespace
                .map_or(Scope::Cluster, Scope::Namespace),
            api: match self.extension_api {
                Api::Auto => ApiChoice::Auto,
                Api::TrafficExtension => ApiChoice::Only(IstioApi::TrafficExtension),
                Api::WasmPlugin => ApiChoice::Only(IstioApi::WasmPlugin),
            },
            extension: Extension {
                url,
                sha256: self.extension_sha256,
                pull_secret: self.extension_pull_secret,
                fail_strategy: match self.extension_fail_strategy {
                    OnFail::Open => FailStrategy::Open,
                    OnFail::Close => FailStrategy::Close,
                    OnFail::Reload => FailStrategy::Reload,
                },
                phase: match self.extension_phase {
                    ChainPlace::Unspecified => FilterPhase::Unspecified,
                    ChainPlace::Authn => FilterPhase::Authn,
                    ChainPlace::Authz => FilterPhase::Authz,
                    ChainPlace::Stats => FilterPhase::Stats,
                },
                priority: self.extension_priority,
                versions: ModuleVersions::parse(&self.extension_versions, &self.namespace_versions)
                    .map_err(CommandFailure)?,
            },
            lease: LeaseSettings {
                name: self.lease_name,
                namespace: self.lease_namespace,
                identity: self.identity.unwrap_or_else(identity),
                timing: Timing {
                    duration: self.lease_duration,
                },
            },
            proxies: self.proxy_namespaces.into_iter().collect(),
            manager: self.field_manager,
            recheck: RECHECK,
        };
        let errors: Vec<String> = settings.errors().iter().map(|e| format!("--{e}")).collect();
        match errors.is_empty() {
            true => Ok(Some(settings)),
            false => Err(CommandFailure(errors.join("\n"))),
        }
    }
}

/// In a pod, the host name is the pod's name. The process id distinguishes two processes on one host.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = match host.trim() {
        "" => "tidegate",
        host => host,
    };
    format!("{host}_{}", std::process::id())
}
