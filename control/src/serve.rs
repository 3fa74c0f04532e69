//! The service: sources, fleet, and the ports, put together.

mod guards;
mod settings;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::fleet::Fleet;
use crate::kube::{self, Health, KubeError, Surroundings};
use crate::metrics::Metrics;
use crate::net::{FollowError, Peers, Protocol, Server, TlsError};
use crate::rest::{self, Access, Desk, HealthState, Listings};
use crate::source::{Catalogue, Directory, Store, watch};
use crate::xds;

pub use guards::Files;
use guards::Guards;
pub use settings::Settings;

/// HTTP connections at once: people and scrapers.
const MAX_HTTP_CONNECTIONS: usize = 1_024;

/// Connections for health checks at once: kubelets and load balancers, which ask and go.
const MAX_HEALTH_CONNECTIONS: usize = 64;

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Plaintext would be open to others.
    #[error("{0} is not a loopback address: give certificates, or say --allow-plaintext")]
    Plaintext(SocketAddr),
    /// A port cannot be used.
    #[error("listen on {addr}: {source}")]
    Listen {
        /// Which.
        addr: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The state directory cannot be used.
    #[error("state directory {}: {source}", path.display())]
    State {
        /// Which.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The work in a cluster cannot start.
    #[error("Kubernetes: {0}")]
    Kubernetes(#[from] KubeError),
    /// Certificates cannot be used.
    #[error("certificates: {0}")]
    Tls(#[from] TlsError),
    /// A list or the token cannot be used.
    #[error(transparent)]
    File(#[from] FollowError),
}

/// A running service.
#[derive(Debug)]
pub struct Service {
    xds: SocketAddr,
    http: SocketAddr,
    health: SocketAddr,
    grace: Duration,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Service {
    /// Starts everything; ports are open when it returns.
    ///
    /// # Errors
    /// When something that it cannot do without is not to be had.
    pub async fn start(settings: Settings) -> Result<Self, ServeError> {
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
        let metrics = Arc::new(Metrics::default());
        let guards = Guards::load(&settings.files)?;
        // So that their series are there from the first scrape on.
        guards.look(&metrics);
        let following =
            guards
                .clone()
                .follow(settings.rescan, Arc::clone(&metrics), closing.clone());
        tasks.spawn(following);
        let fleet = Fleet::new(settings.plugin.clone(), Arc::clone(&metrics));
        let catalogue = catalogue(&settings, &fleet, &metrics)?;
        if let Some(path) = &settings.policies {
            let (path, closing) = (path.clone(), closing.clone());
            tasks.spawn(watch(catalogue.clone(), path, settings.rescan, closing));
        }
        let around = Surroundings {
            catalogue: catalogue.clone(),
            counts: metrics.kube(),
            closing: closing.clone(),
            tasks: tasks.clone(),
        };
        let health = cluster(settings.kubernetes.as_ref(), &around).await?;
        let desk = Desk {
            catalogue,
            fleet: fleet.clone(),
            metrics: Arc::clone(&metrics),
            access: Arc::new(Access {
                token: guards.token,
                writers: guards.writers,
            }),
            closing: closing.clone(),
            listings: Listings::default(),
            watchers: Desk::watchers(),
        };
        let state = HealthState {
            cluster: health.clone(),
            closing: closing.clone(),
        };
        let common = Server {
            name: "xds",
            router: xds::routes(xds::Context {
                fleet,
                peers: Peers::new(settings.max_per_peer),
                patience: settings.patience,
                closing: closing.clone(),
                tasks: tasks.clone(),
            }),
            protocol: Protocol::Grpc,
            tls: guards.tls,
            clients: guards.clients,
            max_connections: settings.max_proxies,
            max_per_peer: settings.max_per_peer,
            patience: settings.patience,
            metrics,
            closing: closing.clone(),
            tasks: tasks.clone(),
        };
        let http = Server {
            name: "http",
            router: rest::routes(desk),
            protocol: Protocol::Http,
            max_connections: MAX_HTTP_CONNECTIONS,
            ..common.clone()
        };
        let checks = Server {
            name: "health",
            router: rest::health_routes(state),
            tls: None,
            clients: None,
            max_connections: MAX_HEALTH_CONNECTIONS,
            ..http.clone()
        };
        tasks.spawn(async move {
            // Before all policies are known, a proxy would be told that none is for it.
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

    /// Where proxies connect.
    #[must_use]
    pub const fn xds(&self) -> SocketAddr {
        self.xds
    }

    /// Where REST, metrics and the page are.
    #[must_use]
    pub const fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where health checks are.
    #[must_use]
    pub const fn health(&self) -> SocketAddr {
        self.health
    }

    /// Ends streams and connections, and waits for them as long as the settings say. Proxies go on with what
    /// they have.
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
    settings: Option<&kube::Settings>,
    around: &Surroundings,
) -> Result<Option<Health>, KubeError> {
    let Some(settings) = settings else {
        return Ok(None);
    };
    let client = kube::client(&settings.access).await?;
    kube::start(&client, settings.clone(), around).map(Some)
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

fn catalogue(
    settings: &Settings,
    fleet: &Fleet,
    metrics: &Arc<Metrics>,
) -> Result<Catalogue, ServeError> {
    let open = |path: &PathBuf| {
        Store::open(path.join("policies")).map_err(|source| ServeError::State {
            path: path.clone(),
            source,
        })
    };
    let store = settings.state.as_ref().map(open).transpose()?;
    let directory = settings.policies.clone().map(Directory::new);
    Ok(Catalogue::new(
        directory,
        store,
        fleet.clone(),
        Arc::clone(metrics),
    ))
}
