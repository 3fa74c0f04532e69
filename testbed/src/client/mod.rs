//! Callers: single requests for tests, and open and closed loops for load.
//!
//! A [`Caller`] sends requests to one address over kept-alive connections, HTTP/1.1 or HTTP/2. Dropping a call before it ends
//! closes its connection (HTTP/2: resets its stream), like a caller that gives up. [`open_loop`] replays a
//! schedule, with callers in a closed loop beside it.
//! [`Hbone`] reaches a service through its waypoint in an ambient mesh.

mod attempt;
mod call;
mod closed_loop;
#[cfg(test)]
mod conduct_tests;
mod connection;
mod exchange;
#[cfg_attr(not(feature = "hbone"), path = "no_hbone.rs")]
mod hbone;
#[cfg(test)]
#[cfg(feature = "hbone")]
mod hbone_tests;
pub mod headers;
#[cfg(feature = "hbone")]
mod identity;
pub mod open_loop;
pub(crate) mod scheduled;
#[cfg(test)]
mod socket_tests;
mod stage;
mod upload;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use connection::{Connection, ConnectionProtocol};

pub use call::{Call, CallError, CallReply};
pub use connection::Tunnel;
pub use exchange::OpenExchange;
pub use hbone::Hbone;
#[cfg(feature = "hbone")]
pub use identity::{Identity, IdentityError};

/// Sends requests to one address; clones share its connections.
#[derive(Debug, Clone)]
pub struct Caller {
    addr: SocketAddr,
    protocol: ConnectionProtocol,
    way: Option<Hbone>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Caller {
    /// A caller that speaks HTTP/1.1, one request at a time on each connection.
    #[must_use]
    pub fn http1(addr: SocketAddr) -> Self {
        Self {
            addr,
            protocol: ConnectionProtocol::Http1,
            way: None,
            idle: Arc::default(),
        }
    }

    /// A caller that reaches the service at `addr` through its waypoint and speaks HTTP/1.1 in the tunnel.
    #[must_use]
    pub fn through(way: &Hbone, addr: SocketAddr) -> Self {
        Self {
            way: Some(way.clone()),
            ..Self::http1(addr)
        }
    }

    /// A caller that speaks HTTP/2 with prior knowledge, all requests on one connection.
    #[must_use]
    pub fn http2(addr: SocketAddr) -> Self {
        Self {
            addr,
            protocol: ConnectionProtocol::Http2,
            ..Self::http1(addr)
        }
    }

    /// A copy with its own connections. None is open yet.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        Self {
            idle: Arc::default(),
            ..self.clone()
        }
    }

    /// Sends a request and waits for the whole answer.
    ///
    /// # Errors
    /// When the connection fails before the answer is complete.
    pub async fn call(&self, call: &Call) -> Result<CallReply, CallError> {
        self.start(call).await?.finish().await
    }

    /// `GET path` and the whole answer.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub async fn get(&self, path: &str) -> Result<CallReply, CallError> {
        self.call(&Call::get(path)).await
    }

    /// Sends a request and waits for the head of the answer only.
    ///
    /// # Errors
    /// When the connection fails before the head is there.
    pub async fn start(&self, call: &Call) -> Result<OpenExchange, CallError> {
        let mut connection = match self.take() {
            Some(connection) => connection,
            None => self.open().await?,
        };
        if let Some(shared) = connection.shared() {
            self.give_back(shared);
        }
        let response = connection.send(call.request(self.addr)?).await?;
        Ok(OpenExchange::new(response, connection, self.clone()))
    }

    async fn open(&self) -> Result<Connection, CallError> {
        match &self.way {
            Some(way) => Connection::open_through(way, self.addr).await,
            None => Connection::open(self.addr, self.protocol).await,
        }
    }

    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    fn give_back(&self, connection: Connection) {
        if connection.is_usable() {
            self.idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(connection);
        }
    }
}
