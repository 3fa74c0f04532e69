//! A real Kubernetes API server and a real istiod, started from Rust.
//!
//! The tests of the reconciler and the conformance tests use this crate. It gives them servers, not
//! opinions: what is installed, which user may do what, and what is expected is theirs to say. Its rooms:
//!
//! - the cluster: [`KubeCluster`] (etcd and the API server), [`definitions`] (kinds to install), [`accounts`] (rights),
//!   [`audit`] (writes and their users);
//! - the mesh on it: [`Istiod`], [`Controllers`] (what Kubernetes does by itself), [`MeshNode`] and [`MeshProxy`] (an Envoy that
//!   istiod configures);
//! - [`agent`]: a proxy as Istio runs it in a pod, with certificates, and [`ImageRegistry`], from which it fetches modules,
//!   with a [`LoginGate`] before it where it asks for a password;
//! - [`Replica`]: `tidegate serve` as it runs in a cluster;
//! - [`suite`]: cases that share one world, and the line in which they end.
//!
//! `make tools-kube`, and for istiod and the controllers `make tools-mesh`, puts the binaries where [`place`] looks for
//! them.

pub mod accounts;
pub mod agent;
pub mod audit;
mod certificates;
mod cluster;
mod controllers;
pub mod definitions;
mod gate;
mod injection;
mod istiod;
mod leavings;
pub mod place;
pub mod ports;
mod proxy;
mod registry;
mod replica;
pub mod suite;
mod wait;

pub use cluster::{ClusterError, KubeCluster, User};
pub use controllers::Controllers;
pub use gate::{Login, LoginGate};
pub use istiod::{Istiod, MeshMode, ROOT_NAMESPACE};
pub use proxy::{MeshNode, MeshProxy, ProxyRole};
pub use registry::{Image, ImageRegistry};
pub use replica::{Replica, ReplicaBuilder};
pub use tidegate_supervise::{Process, ProcessError};
pub use wait::{BOUND, until, until_equal};
