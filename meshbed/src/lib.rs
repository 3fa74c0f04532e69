//! A real Kubernetes API server and a real istiod, started from Rust.
//!
//! The tests of the reconciler and the conformance tests use this crate. It provides servers; the tests decide what is
//! installed, which user has which rights, and what is expected. Its parts:
//!
//! - the cluster: [`KubeCluster`] (etcd and the API server), [`definitions`] (kinds to install), [`accounts`] (rights),
//!   [`audit`] (writes and their users);
//! - the mesh on it: [`Istiod`], [`Controllers`] (what Kubernetes does by itself), [`MeshNode`] and [`MeshProxy`] (an Envoy that
//!   istiod configures);
//! - [`agent`]: a proxy as Istio runs it in a pod, with certificates, and [`ImageRegistry`], from which it fetches modules,
//!   with a [`LoginGate`] in front if it requires a login;
//! - [`Replica`]: `tidegate serve` as it runs in a cluster; [`release`]: whether a release is under test;
//! - [`suite`]: cases that share one world, and the summary of their results.
//!
//! `make tools-kube`, and `make tools-mesh` for istiod and the controllers, put the binaries where [`place`] looks for them.

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
pub mod release;
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
pub use wait::{BOUND, until, until_equal, until_within};
