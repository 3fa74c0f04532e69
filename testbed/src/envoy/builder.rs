//! Describes an Envoy to be started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::cluster::Cluster;
use super::generation::Generation;
use super::plugin::Plugin;
use super::route::Route;

/// Files for mutual TLS, in PEM.
#[derive(Debug, Clone)]
pub(super) struct ListenerTls {
    pub(super) authority: PathBuf,
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// Describes an Envoy to be started; see [`super`].
#[derive(Debug, Clone)]
pub struct EnvoyBuilder {
    pub(super) concurrency: u32,
    pub(super) clusters: Vec<Cluster>,
    pub(super) routes: Vec<Route>,
    pub(super) filters: Vec<Value>,
    pub(super) plugin: Option<Plugin>,
    pub(super) route_timeout: Duration,
    pub(super) log_level: String,
    pub(super) ready_within: Duration,
    pub(super) port: u16,
    pub(super) admin_port: u16,
    pub(super) access_log: bool,
    pub(super) tls: Option<ListenerTls>,
    pub(super) edits: Vec<fn(&mut Value)>,
    pub(super) generation: Option<Generation>,
    pub(super) variables: Vec<(String, OsString)>,
    pub(super) document: Option<Value>,
    pub(super) parent: PathBuf,
}

impl EnvoyBuilder {
    pub(super) fn new() -> Self {
        Self {
            concurrency: 2,
            clusters: Vec::new(),
            routes: Vec::new(),
            filters: Vec::new(),
            plugin: None,
            route_timeout: Duration::from_secs(15),
            log_level: "warning".to_owned(),
            ready_within: Duration::from_secs(30),
            port: 0,
            admin_port: 0,
            access_log: true,
            tls: None,
            edits: Vec::new(),
            generation: None,
            variables: Vec::new(),
            document: None,
            parent: std::env::temp_dir(),
        }
    }

    /// Number of worker threads (default 2).
    #[must_use]
    pub const fn concurrency(mut self, workers: u32) -> Self {
        self.concurrency = workers;
        self
    }

    /// Adds an upstream cluster.
    #[must_use]
    pub fn cluster(mut self, cluster: Cluster) -> Self {
        self.clusters.push(cluster);
        self
    }

    /// Adds a route; the first that matches wins. Without routes, everything goes to the first cluster.
    #[must_use]
    pub fn route(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }

    /// Adds an HTTP filter (name and `typed_config`) in front of the plugin and the router.
    #[must_use]
    pub fn filter(mut self, filter: Value) -> Self {
        self.filters.push(filter);
        self
    }

    /// Puts the Tidegate plugin in front of the router.
    #[must_use]
    pub fn plugin(mut self, plugin: Plugin) -> Self {
        self.plugin = Some(plugin);
        self
    }

    /// Time after which Envoy times a request out (default 15 s, as Envoy's; zero: never).
    #[must_use]
    pub const fn route_timeout(mut self, timeout: Duration) -> Self {
        self.route_timeout = timeout;
        self
    }

    /// Envoy's log level (default `warning`; component levels such as `wasm:debug` are not supported).
    #[must_use]
    pub fn log_level(mut self, level: &str) -> Self {
        level.clone_into(&mut self.log_level);
        self
    }

    /// How long to wait for readiness (default 30 s).
    #[must_use]
    pub const fn ready_within(mut self, bound: Duration) -> Self {
        self.ready_within = bound;
        self
    }

    /// Listens on this port of 127.0.0.1 (default 0: one that the kernel chooses).
    #[must_use]
    pub const fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Its admin interface listens on this port of 127.0.0.1 (default 0: one that the kernel chooses).
    #[must_use]
    pub const fn admin_port(mut self, port: u16) -> Self {
        self.admin_port = port;
        self
    }

    /// Writes no access log, for measurements that the disk must not influence.
    #[must_use]
    pub const fn without_access_log(mut self) -> Self {
        self.access_log = false;
        self
    }

    /// Accepts only connections in mutual TLS: Envoy presents the certificate with its key, and trusts clients of the
    /// authority. All are files in PEM.
    #[must_use]
    pub fn mutual_tls(mut self, authority: &Path, certificate: &Path, key: &Path) -> Self {
        self.tls = Some(ListenerTls {
            authority: authority.to_owned(),
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        });
        self
    }

    /// Changes the bootstrap before it is written, for settings that this builder lacks.
    #[must_use]
    pub fn edit(mut self, edit: fn(&mut Value)) -> Self {
        self.edits.push(edit);
        self
    }

    /// Runs this bootstrap instead of one from the settings of this builder, for an Envoy that a control plane configures.
    /// Its admin interface must be at port 0 of 127.0.0.1.
    #[must_use]
    pub fn document(mut self, bootstrap: Value) -> Self {
        self.document = Some(bootstrap);
        self
    }

    /// Takes part in hot restarts (default: it does not). Successors need one fixed [`Self::port`].
    #[must_use]
    pub const fn generation(mut self, generation: Generation) -> Self {
        self.generation = Some(generation);
        self
    }

    /// Adds an environment variable to the process.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables
            .push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Creates its folder in this one (default: the system's folder for temporary files).
    #[must_use]
    pub fn folder_in(mut self, parent: &Path) -> Self {
        parent.clone_into(&mut self.parent);
        self
    }
}
