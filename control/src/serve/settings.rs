//! What the service is told at its start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::Files;
use crate::kube;
use crate::xds::Plugin;

/// What the service is to do.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory of policy files, watched.
    pub policies: Option<PathBuf>,
    /// Directory in which policies are stored that come by REST; `None`: none are taken.
    pub state: Option<PathBuf>,
    /// The cluster whose policies are followed and reconciled.
    pub kubernetes: Option<kube::Settings>,
    /// Longest time until a change of policy files is noticed without being told, and of all other files.
    pub rescan: Duration,
    /// Where proxies connect.
    pub xds: SocketAddr,
    /// Where REST, metrics and the page are.
    pub http: SocketAddr,
    /// Where health checks are, always in plaintext: a kubelet has no certificate, and nothing else is said there.
    pub health: SocketAddr,
    /// Files that say who may come in and write. Without certificates plaintext is spoken, and then only on
    /// loopback unless [`Settings::allow_plaintext`].
    pub files: Files,
    /// Plaintext on every address.
    pub allow_plaintext: bool,
    /// Most connections of proxies at once.
    pub max_proxies: usize,
    /// Most connections of one peer at once, on each port, and most of its discovery streams.
    pub max_per_peer: usize,
    /// How long a connection may be without a request; see [`net::PATIENCE`](crate::net::PATIENCE).
    pub patience: Duration,
    /// How long connections may take to end.
    pub grace: Duration,
    /// What surrounds the configuration at the proxies.
    pub plugin: Plugin,
}
