//! One connection of a caller.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::rt::{Read, Write};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::CallError;
use super::hbone::{Hbone, HeldConnection};
use crate::pace::AnyBody;

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionProtocol {
    Http1,
    Http2,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<AnyBody>),
    Http2(http2::SendRequest<AnyBody>),
}

/// A connection; it is closed when the last handle is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    sender: Sender,
    driver: Arc<Driver>,
    /// The outer connection that it runs through.
    held: Option<HeldConnection>,
}

/// The task that reads and writes; dropping this ends it.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    pub(super) async fn open(
        addr: SocketAddr,
        protocol: ConnectionProtocol,
    ) -> Result<Self, CallError> {
        let connect = |source| CallError::Connect { addr, source };
        let stream = TcpStream::connect(addr).await.map_err(connect)?;
        stream.set_nodelay(true).map_err(connect)?;
        let (sender, driver) = match protocol {
            ConnectionProtocol::Http1 => speak_http1(TokioIo::new(stream)).await?,
            ConnectionProtocol::Http2 => {
                let io = TokioIo::new(stream);
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
                let driver = tokio::spawn(async move { connection.await.unwrap_or_default() });
                (Sender::Http2(sender), driver)
            }
        };
        Ok(Self {
            sender,
            driver: Arc::new(Driver(driver)),
            held: None,
        })
    }

    /// A connection to `service` through its waypoint, with HTTP/1.1.
    pub(super) async fn open_through(way: &Hbone, service: SocketAddr) -> Result<Self, CallError> {
        let (stream, held) = way.open(service).await?;
        let (sender, driver) = speak_http1(stream).await?;
        Ok(Self {
            sender,
            driver: Arc::new(Driver(driver)),
            held: Some(held),
        })
    }

    /// Whether another request can be sent on it.
    pub(super) fn is_usable(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_ready(),
            Sender::Http2(sender) => !sender.is_closed(),
        }
    }

    /// A second handle, if the connection takes several requests at once.
    pub(super) fn shared(&self) -> Option<Self> {
        match &self.sender {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => Some(Self {
                sender: Sender::Http2(sender.clone()),
                driver: Arc::clone(&self.driver),
                held: self.held.clone(),
            }),
        }
    }

    pub(super) async fn send(
        &mut self,
        mut request: Request<AnyBody>,
    ) -> Result<Response<Incoming>, CallError> {
        match &mut self.sender {
            Sender::Http1(sender) => {
                // HTTP/1.1 names the host in a header and only the path in the first line.
                if let Some(host) = request
                    .uri()
                    .authority()
                    .and_then(|a| a.as_str().parse().ok())
                {
                    request.headers_mut().insert("host", host);
                }
                if let Some(path) = request.uri().path_and_query().cloned() {
                    *request.uri_mut() = Uri::from(path);
                }
                Ok(sender.send_request(request).await?)
            }
            Sender::Http2(sender) => {
                *request.version_mut() = Version::HTTP_2;
                sender.ready().await?;
                Ok(sender.send_request(request).await?)
            }
        }
    }
}

async fn speak_http1(
    io: impl Read + Write + Send + Unpin + 'static,
) -> Result<(Sender, JoinHandle<()>), CallError> {
    let (sender, connection) = http1::handshake(io).await?;
    // The calls on a connection see how it ends.
    let driver = tokio::spawn(async move { connection.with_upgrades().await.unwrap_or_default() });
    Ok((Sender::Http1(sender), driver))
}

/// The bytes of an upgraded connection.
#[derive(Debug)]
pub struct Tunnel {
    io: TokioIo<Upgraded>,
    _connection: Connection,
}

impl Tunnel {
    pub(super) fn new(upgraded: Upgraded, connection: Connection) -> Self {
        Self {
            io: TokioIo::new(upgraded),
            _connection: connection,
        }
    }

    /// Sends bytes and waits until as many are echoed.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn echo(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        self.io.write_all(bytes).await?;
        let mut back = vec![0; bytes.len()];
        self.io.read_exact(&mut back).await?;
        Ok(back)
    }
}
