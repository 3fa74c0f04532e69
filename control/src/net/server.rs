//! Accepts connections and serves a router on them until it is told to stop.
//!
//! Each connection is a task of its own: a handshake that never ends, a client that never sends a request, or
//! sends one by the byte, costs its own task until a deadline. Their number is bounded, of one peer more closely
//! than of all; a peer's that are too many are closed, of all they wait in the kernel's queue.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;
use tracing::{debug, warn};

use super::activity::{Activity, Sent, UnderWay};
use super::identity::identities;
use super::{Followed, Names, Peer, Peers, Protocol, Tls, Turned};
use crate::metrics::Metrics;

/// A client that has not finished its handshake by then, or has no request under way for so long, is not coming.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Longest time from a request's headers to those of its answer, most of it for its body, in patience.
const REQUEST_PATIENCE: u32 = 3;

/// A proxy that has gone without a word is noticed after about the sum of these.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_BOUND: Duration = Duration::from_secs(20);

/// Requests at once on one HTTP/2 connection: a proxy has one stream per filter, or one in all.
const MAX_STREAMS: u32 = 32;

/// Largest request headers, in bytes.
const MAX_HEADER_BYTES: u32 = 16 << 10;

/// Bytes that a client may send ahead of what is read.
const WINDOW_BYTES: u32 = 64 << 10;

/// Pause after an accept that failed, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What serves a port.
#[derive(Debug, Clone)]
pub struct Server {
    /// What the port is called in metrics.
    pub name: &'static str,
    /// What answers.
    pub router: axum::Router,
    /// What is spoken.
    pub protocol: Protocol,
    /// Certificates; `None`: plaintext.
    pub tls: Option<Tls>,
    /// Clients that may come in; `None`: all that show a certificate where one is asked for.
    pub clients: Option<Followed<Names>>,
    /// Most connections at once.
    pub max_connections: usize,
    /// Most connections of one peer at once.
    pub max_per_peer: usize,
    /// How long a connection may be without a request; see [`PATIENCE`].
    pub patience: Duration,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Ends it.
    pub closing: CancellationToken,
    /// Counts its tasks.
    pub tasks: TaskTracker,
}

impl Server {
    /// Accepts until told to stop; connections then finish what they have begun.
    pub async fn run(self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(self.max_connections));
        let peers = Peers::new(self.max_per_peer);
        let server = Arc::new(self);
        loop {
            let place = tokio::select! {
                () = server.closing.cancelled() => return,
                // The semaphore is never closed.
                place = Arc::clone(&places).acquire_owned() => place,
            };
            let accepted = tokio::select! {
                () = server.closing.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((socket, addr)) => {
                    let Some(share) = peers.take(addr.ip()) else {
                        debug!(%addr, "one connection too many of this peer");
                        server.metrics.turned(server.name, Turned::Crowded);
                        continue;
                    };
                    let one = Arc::clone(&server);
                    server.tasks.spawn(async move {
                        let peer = Peer {
                            addr,
                            identities: Arc::new([]),
                        };
                        one.connection(socket, peer).await;
                        drop((place, share));
                    });
                }
                Err(error) => {
                    warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn connection(&self, socket: TcpStream, mut peer: Peer) {
        // Pushes are small and wanted at once. Without it they only come later.
        let _ = socket.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.serve(socket, peer).await;
        };
        let handshake = TlsAcceptor::from(tls.config(self.protocol)).accept(socket);
        let stream = match tokio::time::timeout(self.patience, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return warn!(%peer, %error, "TLS handshake failed"),
            Err(_) => {
                self.metrics.turned(self.name, Turned::Silent);
                return debug!(%peer, "TLS handshake not finished in time");
            }
        };
        let certificates = stream.get_ref().1.peer_certificates();
        if let Some(certificate) = certificates.and_then(|all| all.first()) {
            peer.identities = identities(certificate).into();
        }
        self.serve(stream, peer).await;
    }

    async fn serve<S>(&self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let is_admitted = self.admits(&peer);
        if !is_admitted {
            warn!(%peer, identities = ?peer.identities, "a client that is not on the list");
            self.metrics.turned(self.name, Turned::Unlisted);
        }
        let router = is_admitted.then(|| self.router.clone());
        let activity = Activity::new();
        let service = service_fn({
            let (peer, activity) = (peer.clone(), activity.clone());
            let bound = self.patience.saturating_mul(REQUEST_PATIENCE);
            move |request| {
                let (router, peer) = (router.clone(), peer.clone());
                answer(router, peer, activity.begin(), request, bound)
            }
        });
        let builder = self.builder();
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = activity.rest(self.patience) => {
                self.metrics.turned(self.name, Turned::Silent);
                return debug!(%peer, "no request for too long");
            }
            () = self.struck_off(&peer, is_admitted) => {
                self.metrics.turned(self.name, Turned::Unlisted);
                return warn!(%peer, identities = ?peer.identities, "a client that is no longer on the list");
            }
            () = self.closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            debug!(%peer, error, "connection ended");
        }
    }

    fn admits(&self, peer: &Peer) -> bool {
        let clients = self.clients.as_ref().map(Followed::current);
        clients.is_none_or(|clients| clients.contain(peer))
    }

    /// Ends once a client that was on the list no longer is.
    async fn struck_off(&self, peer: &Peer, was_admitted: bool) {
        let Some(clients) = self.clients.as_ref().filter(|_| was_admitted) else {
            return std::future::pending().await;
        };
        let mut clients = clients.changes();
        let struck = clients.wait_for(|clients| !clients.contain(peer));
        if struck.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        if self.protocol == Protocol::Grpc {
            builder = builder.http2_only();
        }
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience)
            .http2()
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES * 2)
            .keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_BOUND)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEADER_BYTES);
        builder
    }
}

async fn answer(
    router: Option<axum::Router>,
    peer: Peer,
    under_way: UnderWay,
    mut request: Request<Incoming>,
    bound: Duration,
) -> Result<Response<Sent>, Infallible> {
    request.extensions_mut().insert(peer);
    let response = match router {
        None => StatusCode::FORBIDDEN.into_response(),
        Some(router) => {
            let answered = router.oneshot(request.map(Body::new));
            match tokio::time::timeout(bound, answered).await {
                Ok(response) => response?,
                Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
            }
        }
    };
    Ok(response.map(|body| Sent::new(body, under_way)))
}
