//! The service: sources, fleet, and the two ports, put together.

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
use crate::net::{Allowed, Protocol, Server, Tls, TlsError, TlsFiles};
use crate::rest::{self, Access, Desk, Token};
use crate::source::{Catalogue, Directory, Store, watch};
use crate::xds::{self, Plugin};

/// HTTP connections at once: people, scrapers, health checks.
const MAX_HTTP_CONNECTIONS: usize = 1_024;

/// What the service is to do.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Directory of policy files, watched.
    pub policies: Option<PathBuf>,
    /// Directory in which policies are stored that come by REST; `None`: none are taken.
    pub state: Option<PathBuf>,
    /// The cluster whose policies are followed and reconciled.
    pub kubernetes: Option<kube::Settings>,
    /// Longest time until a change of policy files is noticed without being told, and of certificates.
    pub rescan: Duration,
    /// Where proxies connect.
    pub xds: SocketAddr,
    /// Where REST, metrics and the page are.
    pub http: SocketAddr,
    /// Certificates; `None`: plaintext, and then only on loopback unless [`Settings::allow_plaintext`].
    pub tls: Option<TlsFiles>,
    /// Clients that may come in, by the names in their certificates.
    pub allowed: Allowed,
    /// Plaintext on every address.
    pub allow_plaintext: bool,
    /// Bearer token for writing.
    pub token: Option<Token>,
    /// Most connections of proxies at once.
    pub max_proxies: usize,
    /// How long connections may take to end.
    pub grace: Duration,
    /// What surrounds the configuration at the proxies.
    pub plugin: Plugin,
}

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
}

/// A running service.
#[derive(Debug)]
pub struct Service {
    xds: SocketAddr,
    http: SocketAddr,
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
            if settings.tls.is_none() && !settings.allow_plaintext && !addr.ip().is_loopback() {
                return Err(ServeError::Plaintext(addr));
            }
        }
        let closing = CancellationToken::new();
        let tasks = TaskTracker::new();
        let xds_listener = listen(settings.xds).await?;
        let http_listener = listen(settings.http).await?;
        let (xds_addr, http_addr) = (addr(&xds_listener)?, addr(&http_listener)?);
        let metrics = Arc::new(Metrics::default());
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
            cluster: health.clone(),
            fleet: fleet.clone(),
            metrics: Arc::clone(&metrics),
            access: Arc::new(Access {
                token: settings.token.clone(),
                takes_certificates: takes_certificates(&settings),
            }),
            closing: closing.clone(),
        };
        let common = Server {
            router: xds::routes(fleet, closing.clone(), tasks.clone()),
            protocol: Protocol::Grpc,
            tls: tls(&settings, &["h2"], &metrics, (&tasks, &closing))?,
            allowed: settings.allowed.clone(),
            max_connections: settings.max_proxies,
            closing: closing.clone(),
            tasks: tasks.clone(),
        };
        let http = Server {
            router: rest::routes(desk),
            protocol: Protocol::Http,
            tls: tls(&settings, &["h2", "http/1.1"], &metrics, (&tasks, &closing))?,
            max_connections: MAX_HTTP_CONNECTIONS,
            ..common.clone()
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
        info!(xds = %xds_addr, http = %http_addr, tls = settings.tls.is_some(), "serving");
        Ok(Self {
            xds: xds_addr,
            http: http_addr,
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

fn takes_certificates(settings: &Settings) -> bool {
    let authorities = settings.tls.as_ref().map(|tls| &tls.client_authorities);
    authorities.is_some_and(Option::is_some)
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

fn tls(
    settings: &Settings,
    protocols: &[&str],
    metrics: &Arc<Metrics>,
    (tasks, closing): (&TaskTracker, &CancellationToken),
) -> Result<Option<Tls>, ServeError> {
    let Some(files) = settings.tls.clone() else {
        return Ok(None);
    };
    let tls = Tls::load(files, protocols)?;
    let metrics = Arc::clone(metrics);
    tasks.spawn(follow(
        tls.clone(),
        settings.rescan,
        metrics,
        closing.clone(),
    ));
    Ok(Some(tls))
}

/// Reads the certificates again, on and on, and says when they expire.
async fn follow(tls: Tls, every: Duration, metrics: Arc<Metrics>, closing: CancellationToken) {
    let mut ticks = tokio::time::interval(every);
    loop {
        tokio::select! {
            () = closing.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let one = tls.clone();
        // A panic there is none of ours to pass on: the next look comes.
        let _ = tokio::task::spawn_blocking(move || one.reload()).await;
        let expiry = tls.expiry();
        metrics.certificate("served", expiry.served);
        metrics.certificate("authority", expiry.authorities);
    }
}
