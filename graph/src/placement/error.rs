//! Why a placement could not be found.

use thiserror::Error;

/// Why a placement could not be found.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PlacementError {
    /// Kubernetes was not read.
    #[error(
        "found nothing from Kubernetes, expected --kubernetes, --objects, or a recording made with one of them"
    )]
    NoCluster,
    /// No node may take pods.
    #[error("found no node that takes pods, expected some from Kubernetes or --nodes")]
    NoNodes,
    /// The graph has no calls between workloads of the cluster.
    #[error(
        "found no calls between workloads that Kubernetes knows, expected a graph of this cluster"
    )]
    NoWorkloads,
    /// The capacity of a node is not known.
    #[error("node {node}: found no {what}, expected how much its pods may request")]
    CapacityUnknown {
        /// The node.
        node: String,
        /// What is not known.
        what: &'static str,
    },
    /// All workloads together request more than is free.
    #[error(
        "the workloads request {wanted}, but the nodes have {free} free: expected at least as much"
    )]
    TooMuch {
        /// What they request.
        wanted: String,
        /// What is free on all nodes.
        free: String,
    },
    /// One pod requests more than any node has free.
    #[error(
        "a pod of {workload} requests {wanted}, but no node has that free: expected a node with room for it"
    )]
    PodTooLarge {
        /// The workload.
        workload: String,
        /// What the pod requests.
        wanted: String,
    },
    /// The total room suffices, but no distribution was found.
    #[error(
        "no placement was found: the nodes have room enough in all, but not in pieces that fit the workloads; expected more room, or smaller workloads"
    )]
    Fragmented,
}
