//! Where services should run, so that little traffic crosses nodes.
//!
//! A partition of the workloads with a small cut: each part is a node with its own free CPU and memory. The traffic of the graph is
//! the weight of the edges, by rate, which favors throughput, or by latency, which favors the slowest calls.
//!
//! A workload with all its replicas is one vertex. A workload that fits on no node as a whole is divided into several,
//! each with some of its replicas and their share of the traffic. Pods outside the graph keep their place and their
//! requests. Nothing is applied.
//!
//! Source: Algorithm 3 of "Microservice communication graph" (PLOS ONE).

mod affinity;
mod error;
mod partition;
mod problem;
mod report;

use petgraph::visit::EdgeRef as _;
use serde::Serialize;

use crate::build::BuiltGraph;
use crate::cluster::ClusterFacts;
use crate::model::{ClusterNode, EdgeTraffic};

pub use error::PlacementError;
use partition::partition;
use problem::PlacementProblem;
pub use report::{NodeUse, PlacementFigures, PlacementMove, PlacementReport};

/// The cost of an edge between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeCost {
    /// Its requests per second.
    #[default]
    Rate,
    /// Its 99th percentile of the latency in seconds, or the mean if that is all that is known.
    Latency,
}

/// What the operator chooses.
#[derive(Clone, Debug, Default)]
pub struct PlacementTerms {
    /// What is minimized.
    pub cost: EdgeCost,
    /// The nodes, instead of those that Kubernetes names.
    pub nodes: Option<Vec<ClusterNode>>,
    /// Seed: the same seed gives the same placement.
    pub seed: u64,
}

/// Places the workloads of a graph on nodes.
///
/// # Errors
///
/// If Kubernetes was not read, the capacity of nodes is not known, or the workloads do not fit on them.
pub fn place(
    built: &BuiltGraph,
    terms: &PlacementTerms,
) -> Result<PlacementReport, PlacementError> {
    let cluster = built.kubernetes.as_ref().ok_or(PlacementError::NoCluster)?;
    let nodes = terms.nodes.as_deref().unwrap_or(&cluster.nodes);
    let problem = PlacementProblem::of(cluster, nodes, &calls(built, cluster), terms.cost)?;
    let parts = partition(
        &problem.graph,
        &problem.capacities,
        problem.present.as_deref(),
        terms.seed,
    )
    .ok_or(PlacementError::Fragmented)?;
    Ok(report::report(&problem, cluster, &parts, terms))
}

/// The calls between two workloads of the cluster, by position.
#[derive(Clone, Copy, Debug)]
struct WorkloadCall {
    caller: usize,
    upstream: usize,
    /// Requests per second.
    rate: f64,
    /// Latency in seconds.
    latency: f64,
}

impl WorkloadCall {
    fn cost(&self, by: EdgeCost) -> f64 {
        match by {
            EdgeCost::Rate => self.rate,
            EdgeCost::Latency => self.latency,
        }
    }
}

/// The calls between workloads. Calls from or to vertices outside the cluster are left out, because their nodes cannot
/// be chosen.
fn calls(built: &BuiltGraph, cluster: &ClusterFacts) -> Vec<WorkloadCall> {
    let positions = cluster.positions();
    let of_vertex: Vec<Option<usize>> = built
        .graph
        .petgraph()
        .node_weights()
        .map(|vertex| positions.of(&vertex.key))
        .collect();
    let position = |index: petgraph::graph::NodeIndex| of_vertex.get(index.index()).copied()?;
    let latency = |traffic: &EdgeTraffic| {
        let seconds = traffic.p99_seconds.or(traffic.mean_seconds);
        seconds.filter(|seconds| seconds.is_finite())
    };
    built
        .graph
        .petgraph()
        .edge_references()
        .filter_map(|edge| {
            Some(WorkloadCall {
                caller: position(edge.source())?,
                upstream: position(edge.target())?,
                rate: edge.weight().rate.unwrap_or_default(),
                latency: latency(edge.weight()).unwrap_or_default(),
            })
        })
        .filter(|call| call.caller != call.upstream)
        .collect()
}
