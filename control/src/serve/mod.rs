//! The composition root: connects sources, fleet, metrics and ports to one service.

mod files;
mod settings;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::discovery::{self, DiscoveryContext};
use crate::event::EventSink;
use crate::fleet::ProxyFleet;
use crate::kube::{self, Health, KubeContext, KubeError};
use crate::metrics::ControlMetrics;
use crate::net::{FollowError, Peers, PortProtocol, PortServer, TlsError};
use crate::rest::{self, Desk, HealthState, Listings, WriteAccess};
use crate::source::{Catalog, Directory, ShutoffFile, ShutoffSource, Store, watch};
use crate::traffic::{LiveTraffic, TrafficError};

pub use files::Files;
use files::LoadedFiles;
pub use settings::ServeSettings;

/// Most concurrent HTTP connections: people and scrapers.
const MAX_HTTP_CONNECTIONS: usize = 1_024;

/// Most concurrent connections for health checks: kubelets and load balancers, whose connections are short.
const MAX_HEALTH_CONNECTIONS: usize = 64;

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Plaintext would be reachable for others.
    #[error("{0} is not a loopback address: give certificates, or set --allow-plaintext")]
    Plaintext(SocketAddr),
    /// A port cannot be used.
    #[error("listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The state directory cannot be used.
    #[error("state directory {}: {source}", path.display())]
    State {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The Kubernetes controller cannot start.
    #[error("Kubernetes: {0}")]
    Kubernetes(#[from] KubeError),
    /// Certificates cannot be used.
    #[error("certificates: {0}")]
    Tls(#[from] TlsError),
    /// A list or the token cannot be used.
    #[error(transparent)]
    File(#[from] FollowError),
    /// The service graph cannot be read with these settings.
    #[error("the service graph: {0}")]
    Traffic(#[from] TrafficError),
}

/// A running service.
#[derive(Debug)]
pub struct ControlService {
    xds: SocketAddr,
    http: SocketAddr,
    health: SocketAddr,
    grace: Duration,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl ControlService {
    /// Starts everything; ports are open when it returns.
    ///
    /// # Errors
    /// When the settings are invalid, or a port, a file or the cluster cannot be used.
    pub async fn start(settings: ServeSettings) -> Result<Self, ServeError> {
        for addr in [settings.xds, settings.http] {
            if settings.files.tls.is_none() && !settings.allow_plaintext && !addr.ip().is_loopback()
            {
                return Err(ServeError::Plaintext(addr));
            }
        }
        let closing = CancellationToken::new();
        let tasks = TaskTracker::new();
        let xds_listener = listen(settings.xds).await?;
        let http_listener = listen(settings.http).await?;
        let health_listener = listen(settings.health).await?;
        let (xds_addr, http_addr) = (addr(&xds_listener)?, addr(&http_listener)?);
        let health_addr = addr(&health_listener)?;
        let metrics = Arc::new(ControlMetrics::default());
        let files = LoadedFiles::load(&settings.files)?;
        // Creates the series of the files before the first scrape.
        files.reload(&metrics);
        let following =
            files
                .clone()
                .follow(settings.rescan, Arc::clone(&metrics), closing.clone());
        tasks.spawn(following);
        let fleet = ProxyFleet::new(settings.plugin.clone(), metrics.fleet());
        let catalog = catalog(&settings, &fleet, &metrics)?;
        if let Some(path) = &settings.policies {
            let (path, closing) = (path.clone(), closing.clone());
            tasks.spawn(watch(catalog.clone(), path, settings.rescan, closing));
        }
        if settings.state.is_some() {
            let (catalog, closing) = (catalog.clone(), closing.clone());
            tasks.spawn(follow_shutoff(catalog, settings.rescan, closing));
        }
        let (counted, shown) = (metrics.traffic(), fleet.clone());
        let traffic_events = EventSink::new(move |event| {
            counted.send(event);
            shown.touch();
        });
        let traffic = settings.traffic.as_ref();
        let traffic = traffic
            .map(|traffic| LiveTraffic::start(traffic, traffic_events, &closing, &tasks))
            .transpose()?;
        let context = KubeContext {
            catalog: catalog.clone(),
            fleet: fleet.clone(),
            traffic: traffic.clone(),
            events: metrics.kube(),
            closing: closing.clone(),
            tasks: tasks.clone(),
        };
        let health = cluster(settings.kubernetes.as_ref(), &context).await?;
        let desk = Desk {
            cluster: health.as_ref().map(Health::shutoff_lease),
            catalog,
            fleet: fleet.clone(),
            traffic,
            metrics: Arc::clone(&metrics),
            access: Arc::new(WriteAccess {
                token: files.token,
                writers: files.writers,
            }),
            closing: closing.clone(),
            listings: Listings::default(),
            watchers: Desk::watchers(),
        };
        let state = HealthState {
            cluster: health.clone(),
            closing: closing.clone(),
        };
        let common = PortServer {
            name: "xds",
            router: discovery::routes(DiscoveryContext {
                fleet,
                peers: Peers::new(settings.max_per_peer),
                patience: settings.patience,
                closing: closing.clone(),
                tasks: tasks.clone(),
            }),
            protocol: PortProtocol::Grpc,
            tls: files.tls,
            clients: files.clients,
            max_connections: settings.max_proxies,
            max_per_peer: settings.max_per_peer,
            patience: settings.patience,
            events: metrics.ports(),
            closing: closing.clone(),
            tasks: tasks.clone(),
        };
        let http = PortServer {
            name: "http",
            router: rest::routes(desk),
            protocol: PortProtocol::Http,
            max_connections: MAX_HTTP_CONNECTIONS,
            ..common.clone()
        };
        let checks = PortServer {
            name: "health",
            router: rest::health_routes(state),
            tls: None,
            clients: None,
            max_connections: MAX_HEALTH_CONNECTIONS,
            ..http.clone()
        };
        tasks.spawn(async move {
            // Wait: before all policies are known, a proxy would get the configuration for proxies without a policy.
            if let Some(health) = health {
                let closing = common.closing.clone();
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = health.policies() => {}
                }
            }
            common.run(xds_listener).await;
        });
        tasks.spawn(http.run(http_listener));
        tasks.spawn(checks.run(health_listener));
        info!(xds = %xds_addr, http = %http_addr, health = %health_addr, tls = settings.files.tls.is_some(), "serving");
        Ok(Self {
            xds: xds_addr,
            http: http_addr,
            health: health_addr,
            grace: settings.grace,
            closing,
            tasks,
        })
    }

    /// The address for proxies.
    #[must_use]
    pub const fn xds(&self) -> SocketAddr {
        self.xds
    }

    /// The address for REST, metrics and the page.
    #[must_use]
    pub const fn http(&self) -> SocketAddr {
        self.http
    }

    /// The address for health checks.
    #[must_use]
    pub const fn health(&self) -> SocketAddr {
        self.health
    }

    /// Ends streams and connections, and waits for them within the time in the settings. Proxies keep their
    /// configuration.
    pub async fn stop(self) {
        info!("shutting down");
        self.closing.cancel();
        self.tasks.close();
        if tokio::time::timeout(self.grace, self.tasks.wait())
            .await
            .is_err()
        {
            warn!(
                connections = self.tasks.len(),
                "some connections did not end in time"
            );
        }
    }
}

async fn cluster(
    settings: Option<&kube::KubeSettings>,
    context: &KubeContext,
) -> Result<Option<Health>, KubeError> {
    let Some(settings) = settings else {
        return Ok(None);
    };
    let client = kube::client(&settings.access).await?;
    kube::start(&client, settings.clone(), context).map(Some)
}

/// Reads the file of the switch for all policies regularly until told to stop.
async fn follow_shutoff(catalog: Catalog, every: Duration, closing: CancellationToken) {
    let mut ticks = tokio::time::interval(every);
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let catalog = catalog.clone();
        // Reading blocks. Ignore a panic: the next read follows.
        let _ = tokio::task::spawn_blocking(move || catalog.reread_shutoff()).await;
    }
}

async fn listen(addr: SocketAddr) -> Result<TcpListener, ServeError> {
    let bound = TcpListener::bind(addr).await;
    bound.map_err(|source| ServeError::Listen { addr, source })
}

fn addr(listener: &TcpListener) -> Result<SocketAddr, ServeError> {
    listener.local_addr().map_err(|source| ServeError::Listen {
        addr: SocketAddr::from(([0, 0, 0, 0], 0)),
        source,
    })
}

fn catalog(
    settings: &ServeSettings,
    fleet: &ProxyFleet,
    metrics: &Arc<ControlMetrics>,
) -> Result<Catalog, ServeError> {
    let open = |path: &PathBuf| {
        Store::open(path.join("policies")).map_err(|source| ServeError::State {
            path: path.clone(),
            source,
        })
    };
    let store = settings.state.as_ref().map(open).transpose()?;
    let directory = settings.policies.clone().map(Directory::new);
    let catalog = Catalog::new(directory, store, fleet.clone(), metrics.sources());
    if settings.disabled {
        catalog.say_shutoff(ShutoffSource::Settings, Some("disabled"));
    }
    if let Some(path) = &settings.state {
        catalog.follow_shutoff(ShutoffFile::in_folder(path.clone()));
    }
    Ok(catalog)
}
