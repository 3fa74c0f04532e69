//! The other end of a connection.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// The client at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub addr: SocketAddr,
    /// The names in its certificate (URIs and DNS names); empty without a certificate.
    pub identities: Arc<[String]>,
}

/// The first name in its certificate with its address, or the address alone.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.identities.first() {
            Some(identity) => write!(f, "{identity} ({})", self.addr),
            None => write!(f, "{}", self.addr),
        }
    }
}
