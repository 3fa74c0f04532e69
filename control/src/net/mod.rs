//! Sockets: who may come in, over what, and how a connection is served and ended.

mod activity;
mod expiry;
mod followed;
mod identity;
mod peers;
mod port;
mod server;
mod tls;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

pub use expiry::Expiry;
pub use followed::{FollowError, Followed, Look};
pub use identity::Names;
pub use peers::{Peers, Share};
pub use port::Protocol;
pub(crate) use port::Turned;
pub use server::{PATIENCE, Server};
pub use tls::{Tls, TlsError, TlsFiles};

/// Who is at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub addr: SocketAddr,
    /// The names in its certificate (URIs and DNS names), if it has shown one.
    pub identities: Arc<[String]>,
}

/// The first name in its certificate, else its address.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.identities.first() {
            Some(identity) => write!(f, "{identity} ({})", self.addr),
            None => write!(f, "{}", self.addr),
        }
    }
}
