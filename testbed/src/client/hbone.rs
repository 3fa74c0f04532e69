//! HBONE: connections to a service through its waypoint, as ztunnel makes them for a pod.
//!
//! The outer connection is HTTP/2 inside mutual TLS to the waypoint; each connection of the caller is one CONNECT stream on
//! it, whose authority is the service's own address. The waypoint learns the caller from the certificate and the service from
//! the authority, and treats the bytes in the stream as a separate connection. A waypoint bounds the streams of one
//! connection; at the bound, another connection is opened.
//!
//! Source: <https://istio.io/latest/docs/ambient/architecture/hbone/>.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper::upgrade::Upgraded;
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::CallError;
use super::identity::{Identity, IdentityError};

/// Streams that a waypoint of Istio accepts on one connection (`max_concurrent_streams`).
const MAX_TUNNELS: usize = 100;

/// A workload's route to a waypoint; clones share its connections.
#[derive(Clone)]
pub struct Hbone {
    waypoint: SocketAddr,
    tls: TlsConnector,
    outers: Arc<Mutex<Vec<Outer>>>,
}

/// A connection to the waypoint.
#[derive(Debug)]
struct Outer {
    sender: http2::SendRequest<Empty<Bytes>>,
    /// Each tunnel holds an additional reference.
    driver: Arc<TunnelDriver>,
}

/// Reads and writes a connection until dropped.
#[derive(Debug)]
struct TunnelDriver(JoinHandle<()>);

impl Drop for TunnelDriver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Keeps a tunnel's connection open, and counts towards the bound of its streams.
#[derive(Debug, Clone)]
pub(super) struct HeldConnection(#[expect(dead_code, reason = "held, not read")] Arc<TunnelDriver>);

impl std::fmt::Debug for Hbone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hbone")
            .field("waypoint", &self.waypoint)
            .finish_non_exhaustive()
    }
}

impl Hbone {
    /// A route to `waypoint` for the workload with this `identity`; the waypoint must prove to be `server`, such as
    /// `spiffe://cluster.local/ns/shop/sa/waypoint`. Opens no connection yet.
    ///
    /// # Errors
    /// When the identity cannot be read or used.
    pub fn new(
        waypoint: SocketAddr,
        identity: &Identity,
        server: &str,
    ) -> Result<Self, IdentityError> {
        Ok(Self {
            waypoint,
            tls: TlsConnector::from(Arc::new(identity.config(server)?)),
            outers: Arc::default(),
        })
    }

    /// A stream of bytes to `service`.
    pub(super) async fn open(
        &self,
        service: SocketAddr,
    ) -> Result<(Upgraded, HeldConnection), CallError> {
        let (mut sender, held) = self.outer().await?;
        let request = Request::builder()
            .method(Method::CONNECT)
            .uri(service.to_string())
            .body(Empty::new())?;
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        if !response.status().is_success() {
            return Err(CallError::Tunnel {
                service,
                status: response.status().as_u16(),
            });
        }
        Ok((hyper::upgrade::on(response).await?, held))
    }

    /// A connection with room for one more tunnel.
    async fn outer(&self) -> Result<(http2::SendRequest<Empty<Bytes>>, HeldConnection), CallError> {
        let mut outers = self.outers.lock().await;
        outers.retain(|outer| !outer.sender.is_closed());
        // The list itself holds one reference.
        let roomy = |outer: &&Outer| Arc::strong_count(&outer.driver) <= MAX_TUNNELS;
        if let Some(outer) = outers.iter().find(roomy) {
            return Ok((
                outer.sender.clone(),
                HeldConnection(Arc::clone(&outer.driver)),
            ));
        }
        let outer = self.connect().await?;
        let found = (
            outer.sender.clone(),
            HeldConnection(Arc::clone(&outer.driver)),
        );
        outers.push(outer);
        Ok(found)
    }

    async fn connect(&self) -> Result<Outer, CallError> {
        let addr = self.waypoint;
        let connect = |source| CallError::Connect { addr, source };
        let stream = TcpStream::connect(addr).await.map_err(connect)?;
        stream.set_nodelay(true).map_err(connect)?;
        // The certificate is checked by identity; this name is neither sent nor compared.
        let name = ServerName::from(addr.ip());
        let stream = self.tls.connect(name, stream).await.map_err(connect)?;
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        // The tunnels on a connection see how it ends.
        let driver = tokio::spawn(async move { connection.await.unwrap_or_default() });
        Ok(Outer {
            sender,
            driver: Arc::new(TunnelDriver(driver)),
        })
    }
}
