//! Facts about workloads, services and nodes, read from the API server or from files as kubectl prints them. Nothing is
//! ever written.
//!
//! Objects become [`ClusterFacts`](tidegate_graph::ClusterFacts) one by one, so that only figures are kept of a large cluster.

mod api;
mod facts;
mod files;
mod nodes;
mod owner;
mod quantity;
mod resources;

pub use api::{ClusterScope, read_cluster};
pub use facts::{ClusterObject, FactsReader};
pub use files::{ObjectTexts, read_objects};
pub use nodes::read_nodes;
pub use quantity::{bytes, cores};
