//! Accepts connections and serves a router on them until it is told to stop.
//!
//! Each connection is a task of its own: a handshake that never ends, a client that never reads or sends
//! rubbish costs its own task until a deadline. Their number is bounded; beyond it new ones wait in the
//! kernel's queue.

use std::convert::Infallible;
use std::future::Future;
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

use super::identity::identities;
use super::{Allowed, Peer, Tls};

/// A client that has not finished its handshake or first request by then is not coming.
const HANDSHAKE_BOUND: Duration = Duration::from_secs(10);

/// A proxy that has gone without a word is noticed after about the sum of these.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_BOUND: Duration = Duration::from_secs(20);

/// Requests at once on one HTTP/2 connection: a proxy has one stream per filter, or one in all.
const MAX_STREAMS: u32 = 100;

/// Largest request headers, in bytes.
const MAX_HEADER_BYTES: u32 = 16 << 10;

/// Bytes that a client may send ahead of what is read.
const WINDOW_BYTES: u32 = 64 << 10;

/// Pause after an accept that failed, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is spoken on a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 only, as gRPC needs it.
    Grpc,
    /// HTTP/1.1 and HTTP/2.
    Http,
}

/// What serves a port.
#[derive(Debug, Clone)]
pub struct Server {
    /// What answers.
    pub router: axum::Router,
    /// What is spoken.
    pub protocol: Protocol,
    /// Certificates; `None`: plaintext.
    pub tls: Option<Tls>,
    /// Clients that may come in; of no account without client certificates.
    pub allowed: Allowed,
    /// Most connections at once.
    pub max_connections: usize,
    /// Ends it.
    pub closing: CancellationToken,
    /// Counts its tasks.
    pub tasks: TaskTracker,
}

impl Server {
    /// Accepts until told to stop; connections then finish what they have begun.
    pub async fn run(self, listener: TcpListener) {
        let places = Arc::new(Semaphore::new(self.max_connections));
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
                    let one = Arc::clone(&server);
                    server.tasks.spawn(async move {
                        let peer = Peer {
                            addr,
                            identities: Arc::new([]),
                        };
                        one.connection(socket, peer).await;
                        drop(place);
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
        let handshake = TlsAcceptor::from(tls.config()).accept(socket);
        let stream = match tokio::time::timeout(HANDSHAKE_BOUND, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return warn!(%peer, %error, "TLS handshake failed"),
            Err(_) => return debug!(%peer, "TLS handshake not finished in time"),
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
        let is_admitted = self.tls.is_none() || self.allowed.admits(&peer);
        if !is_admitted {
            warn!(%peer, identities = ?peer.identities, "a client that is not on the list");
        }
        let router = is_admitted.then(|| self.router.clone());
        let service = service_fn({
            let peer = peer.clone();
            move |request| answer(router.clone(), peer.clone(), request)
        });
        let builder = self.builder();
        let connection = builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            debug!(%peer, error, "connection ended");
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
            .header_read_timeout(HANDSHAKE_BOUND)
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

fn answer(
    router: Option<axum::Router>,
    peer: Peer,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Body>, Infallible>> {
    request.extensions_mut().insert(peer);
    async move {
        match router {
            Some(router) => router.oneshot(request.map(Body::new)).await,
            None => Ok(StatusCode::FORBIDDEN.into_response()),
        }
    }
}
