//! The settings of the service.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Files;
use crate::kube;
use crate::net::PATIENCE;
use crate::traffic::TrafficSettings;
use crate::xds::{Module, NativeModule, PluginTemplate};

/// The settings of the service.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// Directory of policy files, watched.
    pub policies: Option<PathBuf>,
    /// Directory for policies that are sent by REST; `None`: REST cannot change policies.
    pub state: Option<PathBuf>,
    /// Turn all policies off: every request passes.
    pub disabled: bool,
    /// The cluster to reconcile; `None`: no cluster.
    pub kubernetes: Option<kube::KubeSettings>,
    /// The service graph to read; `None`: none is read.
    pub traffic: Option<TrafficSettings>,
    /// Interval at which files are read again: policies without a notification, and all other files.
    pub rescan: Duration,
    /// The address for proxies.
    pub xds: SocketAddr,
    /// The address for REST, metrics and the page.
    pub http: SocketAddr,
    /// The address for health checks, always in plaintext: a kubelet has no certificate, and the port offers nothing
    /// else.
    pub health: SocketAddr,
    /// Files that decide which clients may connect and write. Without certificates the service uses plaintext, and only
    /// on loopback addresses unless [`ServeSettings::allow_plaintext`].
    pub files: Files,
    /// Allow plaintext on every address.
    pub allow_plaintext: bool,
    /// Most concurrent connections of proxies.
    pub max_proxies: usize,
    /// Most concurrent connections of one peer, per port, and most of its discovery streams.
    pub max_per_peer: usize,
    /// How long a connection may be without an active request; see [`net::PATIENCE`](crate::net::PATIENCE).
    pub patience: Duration,
    /// How long connections may take to end on shutdown.
    pub grace: Duration,
    /// Everything around the configuration at the proxies.
    pub plugin: PluginTemplate,
}

impl ServeSettings {
    /// Settings for this machine only: plaintext on loopback ports that the kernel chooses, without policies. Proxies load the
    /// module from a file.
    #[must_use]
    pub fn on_loopback(module: &Path) -> Self {
        let any = ([127, 0, 0, 1], 0).into();
        Self {
            policies: None,
            state: None,
            disabled: false,
            kubernetes: None,
            traffic: None,
            rescan: Duration::from_secs(5),
            xds: any,
            http: any,
            health: any,
            files: Files::default(),
            allow_plaintext: false,
            max_proxies: 1_000,
            max_per_peer: 100,
            patience: PATIENCE,
            grace: Duration::from_secs(5),
            plugin: PluginTemplate::usual(
                Module::File(module.display().to_string()),
                NativeModule::Named("tidegate".to_owned()),
            ),
        }
    }
}
