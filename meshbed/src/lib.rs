//! A real Kubernetes API server and a real istiod, started from Rust.
//!
//! The tests of the reconciler and the conformance tests stand on this crate. It gives them servers, not
//! opinions: what is installed, which user may do what, and what is expected is theirs to say. Its rooms:
//!
//! - the cluster: [`Cluster`] (etcd and the API server), [`definitions`] (kinds to install), [`accounts`] (who may do
//!   what), [`audit`] (who wrote what);
//! - [`Replica`]: `tidegate serve` as it runs in a cluster;
//! - [`suite`]: cases that share one world, and the line in which they end.
//!
//! `make tools-kube` puts the binaries where [`place`] looks for them.

pub mod accounts;
pub mod audit;
mod certificates;
mod cluster;
pub mod definitions;
mod leavings;
pub mod place;
mod ports;
mod process;
mod replica;
pub mod suite;
mod wait;

pub use cluster::{Cluster, ClusterError, User};
pub use process::{Process, ProcessError};
pub use replica::{Replica, ReplicaBuilder};
pub use wait::{BOUND, until};
