//! The calls of the graph with the routes that they take.

use std::collections::BTreeMap;

use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef as _;
use tidegate_graph::ServiceGraph;

use super::settings::RouteTerms;
use crate::observed::{RuleTarget, rule_targets, vertex_name};

/// A call, and the routes that it may take.
#[derive(Clone, Debug)]
pub(super) struct ChainHop<'a> {
    pub(super) caller: NodeIndex,
    pub(super) callee: NodeIndex,
    pub(super) routes: Vec<&'a RouteTerms>,
}

/// All calls, and the services in an order in which callers come first.
#[derive(Debug)]
pub(super) struct Hops<'a> {
    pub(super) graph: &'a ServiceGraph,
    pub(super) hops: Vec<ChainHop<'a>>,
    /// Services that call each other in a cycle.
    pub(super) circles: Vec<Vec<NodeIndex>>,
    /// The position of each service: callers first; services of a cycle share one.
    ranks: BTreeMap<NodeIndex, usize>,
}

impl<'a> Hops<'a> {
    pub(super) fn of(graph: &'a ServiceGraph, routes: &'a [RouteTerms]) -> Self {
        let petgraph = graph.petgraph();
        let mut by_host: BTreeMap<&str, Vec<&RouteTerms>> = BTreeMap::new();
        for route in routes {
            by_host.entry(&route.host).or_default().push(route);
        }
        let is_root = |index| {
            petgraph
                .neighbors_directed(index, Direction::Incoming)
                .next()
                .is_none()
        };
        let mut hops: BTreeMap<(NodeIndex, NodeIndex), ChainHop<'a>> = BTreeMap::new();
        for edge in petgraph.edge_references() {
            let (caller, callee) = (edge.source(), edge.target());
            let Some(vertex) = petgraph.node_weight(callee) else {
                continue;
            };
            let hosts = rule_targets(vertex, edge.weight());
            let taken = hosts
                .iter()
                .filter_map(|target| match target {
                    Ok(RuleTarget::Service(host)) => by_host.get(host.as_str()),
                    _ => None,
                })
                .flatten()
                // The graph does not say which workloads are gateways; no workload of the mesh calls a gateway.
                .filter(|route| !route.is_for_gateways || is_root(caller));
            let hop = hops.entry((caller, callee)).or_insert_with(|| ChainHop {
                caller,
                callee,
                routes: Vec::new(),
            });
            if hop.routes.is_empty() {
                hop.routes.extend(taken.copied());
            }
        }
        // The components come in reverse order: upstreams first.
        let mut components = kosaraju_scc(petgraph);
        components.reverse();
        let ranks = components
            .iter()
            .enumerate()
            .flat_map(|(rank, services)| services.iter().map(move |index| (*index, rank)))
            .collect();
        let circles = components
            .into_iter()
            .filter(|services| {
                services.len() > 1
                    || services
                        .first()
                        .is_some_and(|index| petgraph.contains_edge(*index, *index))
            })
            .collect();
        let mut found = Self {
            graph,
            hops: hops.into_values().collect(),
            circles,
            ranks,
        };
        let ranks = &found.ranks;
        let rank = |index: &NodeIndex| ranks.get(index).copied().unwrap_or_default();
        found
            .hops
            .sort_by_key(|hop| (rank(&hop.caller), rank(&hop.callee), hop.caller, hop.callee));
        found
    }

    /// Whether a hop leads from one service of a cycle to another.
    pub(super) fn is_in_circle(&self, hop: &ChainHop<'_>) -> bool {
        self.ranks.get(&hop.caller) == self.ranks.get(&hop.callee)
    }

    /// The name of a service.
    pub(super) fn name(&self, index: NodeIndex) -> String {
        vertex_name(self.graph, index)
    }
}
