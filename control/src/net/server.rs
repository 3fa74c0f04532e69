//! Accepts connections and serves a router on them until it is told to stop.
//!
//! Each connection is a task of its own: a handshake that never ends, or a client that sends its request byte by byte
//! or not at all, costs only its own task until a deadline. The number of connections is bounded, per peer and in
//! total. A peer's excess connections are closed; beyond the total bound, connections wait in the kernel's queue.

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

use super::activity::{ActiveRequest, Activity, TrackedBody};
use super::followed::Followed;
use super::identity::{ClientNames, identities};
use super::peer::Peer;
use super::peers::Peers;
use super::port::{PortEvent, PortProtocol, TurnedAway};
use super::tls::Tls;
use crate::event::EventSink;

/// A connection is closed if its handshake takes longer, or if it has no active request for this long.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Longest time from a request's headers to the headers of its response, as a multiple of the patience. Most of it
/// is for the request's body.
const REQUEST_PATIENCE: u32 = 3;

/// A proxy that disappears without closing its connection is noticed after about the sum of these.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_BOUND: Duration = Duration::from_secs(20);

/// Most concurrent requests on one HTTP/2 connection: a proxy has one stream per filter, or a single one.
const MAX_STREAMS: u32 = 32;

/// Largest request headers, in bytes.
const MAX_HEADER_BYTES: u32 = 16 << 10;

/// Bytes that a client may send before they are read.
const WINDOW_BYTES: u32 = 64 << 10;

/// Pause after a failed accept, most likely because file descriptors ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The server of one port.
#[derive(Debug, Clone)]
pub struct PortServer {
    /// The name of the port in metrics.
    pub name: &'static str,
    /// Answers the requests.
    pub router: axum::Router,
    /// The protocol.
    pub protocol: PortProtocol,
    /// Certificates; `None`: plaintext.
    pub tls: Option<Tls>,
    /// Clients that may connect; `None`: all, or all with a certificate if one is required.
    pub clients: Option<Followed<ClientNames>>,
    /// Most connections at once.
    pub max_connections: usize,
    /// Most connections of one peer at once.
    pub max_per_peer: usize,
    /// How long a connection may be without an active request; see [`PATIENCE`].
    pub patience: Duration,
    /// Receives the events of the port.
    pub events: EventSink<PortEvent>,
    /// Stops the server when canceled.
    pub closing: CancellationToken,
    /// Tracks its tasks.
    pub tasks: TaskTracker,
}

impl PortServer {
    /// Accepts connections until told to stop; open connections then finish their active requests.
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
                        debug!(%addr, "the peer has too many connections");
                        server.turn_away(TurnedAway::Crowded);
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
        // Pushes are small and urgent. If this fails, they only arrive later.
        let _ = socket.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return self.serve(socket, peer).await;
        };
        let handshake = TlsAcceptor::from(tls.config(self.protocol)).accept(socket);
        let stream = match tokio::time::timeout(self.patience, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return warn!(%peer, %error, "TLS handshake failed"),
            Err(_) => {
                self.turn_away(TurnedAway::Silent);
                return debug!(%peer, "TLS handshake timed out");
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
            warn!(%peer, identities = ?peer.identities, "the client is not on the list");
            self.turn_away(TurnedAway::Unlisted);
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
                self.turn_away(TurnedAway::Silent);
                return debug!(%peer, "no request for too long");
            }
            () = self.delisted(&peer, is_admitted) => {
                self.turn_away(TurnedAway::Unlisted);
                return warn!(%peer, identities = ?peer.identities, "the client is no longer on the list");
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

    fn turn_away(&self, reason: TurnedAway) {
        let port = self.name;
        self.events.send(PortEvent::TurnedAway { port, reason });
    }

    fn admits(&self, peer: &Peer) -> bool {
        let clients = self.clients.as_ref().map(Followed::current);
        clients.is_none_or(|clients| clients.contain(peer))
    }

    /// Returns once a client that was on the list is removed from it.
    async fn delisted(&self, peer: &Peer, was_admitted: bool) {
        let Some(clients) = self.clients.as_ref().filter(|_| was_admitted) else {
            return std::future::pending().await;
        };
        let mut clients = clients.changes();
        let removed = clients.wait_for(|clients| !clients.contain(peer));
        if removed.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn builder(&self) -> Builder<TokioExecutor> {
        let mut builder = Builder::new(TokioExecutor::new());
        if self.protocol == PortProtocol::Grpc {
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
    active: ActiveRequest,
    mut request: Request<Incoming>,
    bound: Duration,
) -> Result<Response<TrackedBody>, Infallible> {
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
    Ok(response.map(|body| TrackedBody::new(body, active)))
}
