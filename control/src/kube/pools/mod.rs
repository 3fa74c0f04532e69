//! Static bounds of Istio that are tighter than a policy, for the condition `Constrained`.
//!
//! A `connectionPool` in a `DestinationRule` bounds the requests in flight of a proxy, whatever limit the filter learns.
//! The watch reads the rules of the followed namespaces, and compares them with the policies whenever either changes.

mod compare;
mod declared;
mod watch;

pub use compare::{PoolFinding, constrained};
pub use declared::DeclaredRule;
pub(super) use watch::PoolWatch;
pub use watch::RESOURCE;
