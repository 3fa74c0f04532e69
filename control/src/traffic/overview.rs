//! The busiest services and their calls, with the policies for them, for people to look at.
//!
//! A picture of thousands of services is unreadable. So it contains only the services with the most requests, and the
//! calls between them; the totals show how much is left out.

use std::collections::BTreeMap;

use petgraph::Direction;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef as _;
use serde::Serialize;
use tidegate_advise::recommend::{AdviceDocument, AdviceEntry};
use tidegate_graph::{BuiltGraph, EdgeTraffic, ServiceVertex, VertexKind};

use super::advice_text::AdviceText;

/// Most services shown. The layout of twice as many takes a browser more than a second.
pub const MAX_SERVICES: usize = 60;

/// A call is degraded below this share of good answers, from 0 to 1.
const DEGRADED: f64 = 0.99;
/// A call is failing below this share of good answers, from 0 to 1.
const FAILING: f64 = 0.95;

/// See the module. Names come from labels and may contain any text.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrafficOverview {
    /// Length of the window, in seconds.
    pub window_seconds: u32,
    /// How many services and workloads the graph has.
    pub total_services: usize,
    /// How many calls it has.
    pub total_calls: usize,
    /// The busiest, by requests.
    pub services: Vec<ServiceEntry>,
    /// The calls between them.
    pub calls: Vec<CallEntry>,
    /// Policies whose objective is out of reach.
    pub unreachable: Vec<String>,
    /// What the graph does not show, or does not show reliably.
    pub warnings: Vec<String>,
}

/// A service or workload.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceEntry {
    /// Its namespace; may be empty.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether it is a workload, a service, or unknown.
    pub kind: VertexKind,
    /// The advice for it as an upstream, and the objectives in force.
    pub advice: Vec<AdviceText>,
}

/// A call.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallEntry {
    /// The caller's position in the list of services.
    pub caller: usize,
    /// The upstream's position.
    pub upstream: usize,
    /// Its health.
    pub health: CallHealth,
    /// What was observed.
    #[serde(flatten)]
    pub traffic: EdgeTraffic,
}

/// The health of a call, by its share of good answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CallHealth {
    /// At least 99 % of the answers are good.
    Good,
    /// At least 95 %.
    Degraded,
    /// Fewer.
    Failing,
    /// The samples are too few or unknown, or the metrics ended.
    Unknown,
}

impl CallHealth {
    /// The health of a call.
    #[must_use]
    pub fn of(traffic: &EdgeTraffic) -> Self {
        match traffic.success {
            Some(_) if traffic.too_few_samples || traffic.has_ended => Self::Unknown,
            Some(success) if success < FAILING => Self::Failing,
            Some(success) if success < DEGRADED => Self::Degraded,
            Some(_) => Self::Good,
            None => Self::Unknown,
        }
    }
}

/// The overview of a graph, with its advice.
#[must_use]
pub fn overview(built: &BuiltGraph, advice: &AdviceDocument) -> TrafficOverview {
    let graph = built.graph.petgraph();
    let by_name: BTreeMap<&str, &AdviceEntry> = advice
        .upstreams
        .iter()
        .map(|entry| (entry.upstream.as_str(), entry))
        .collect();
    let shown = busiest(built);
    let positions: BTreeMap<NodeIndex, usize> = shown
        .iter()
        .enumerate()
        .map(|(position, (index, _))| (*index, position))
        .collect();
    let mut calls: Vec<CallEntry> = graph
        .edge_references()
        .filter_map(|edge| {
            Some(CallEntry {
                caller: *positions.get(&edge.source())?,
                upstream: *positions.get(&edge.target())?,
                health: CallHealth::of(edge.weight()),
                traffic: edge.weight().clone(),
            })
        })
        .collect();
    calls.sort_by_key(|call| (call.caller, call.upstream));
    TrafficOverview {
        window_seconds: built.observed.window_seconds,
        total_services: graph.node_count(),
        total_calls: graph.edge_count(),
        services: shown
            .into_iter()
            .map(|(_, vertex)| ServiceEntry {
                namespace: vertex.key.namespace.clone(),
                name: vertex.key.name.clone(),
                kind: vertex.key.kind,
                advice: names(vertex)
                    .iter()
                    .filter_map(|name| by_name.get(name.as_str()))
                    .map(|entry| AdviceText::of(entry))
                    .collect(),
            })
            .collect(),
        calls,
        unreachable: advice.unreachable.clone(),
        warnings: built.warnings.iter().map(|w| w.message.clone()).collect(),
    }
}

/// The vertices with the most requests to and from them, the busiest first; equally busy ones by name.
fn busiest(built: &BuiltGraph) -> Vec<(NodeIndex, &ServiceVertex)> {
    let graph = built.graph.petgraph();
    let rate = |index: NodeIndex| -> f64 {
        [Direction::Incoming, Direction::Outgoing]
            .into_iter()
            .flat_map(|direction| graph.edges_directed(index, direction))
            .filter_map(|edge| edge.weight().rate)
            .sum()
    };
    // The sort is stable, and the vertices come by name.
    let mut all: Vec<_> = built
        .graph
        .vertices()
        .map(|(index, vertex)| (rate(index), index, vertex))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.truncate(MAX_SERVICES);
    all.into_iter()
        .map(|(_, index, vertex)| (index, vertex))
        .collect()
}

/// The names that the advice may use for a vertex.
fn names(vertex: &ServiceVertex) -> Vec<String> {
    if vertex.services.is_empty() {
        vec![vertex.key.to_string()]
    } else {
        vertex.services.iter().map(ToString::to_string).collect()
    }
}
