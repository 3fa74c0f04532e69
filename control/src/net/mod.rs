//! Sockets: which clients may connect, over which protocol, and how connections are served and ended.

mod activity;
mod expiry;
mod followed;
mod identity;
mod peer;
mod peers;
mod port;
mod server;
mod tls;

pub use expiry::Expiry;
pub use followed::{FollowError, Followed, ReloadOutcome};
pub use identity::ClientNames;
pub use peer::Peer;
pub use peers::{PeerShare, Peers};
pub use port::{PortEvent, PortProtocol, TurnedAway};
pub use server::{PATIENCE, PortServer};
pub use tls::{ServerTlsFiles, Tls, TlsError};
