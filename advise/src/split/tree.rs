//! The calls that a request of an entry causes: services without cycles, the callers before those that they call.
//!
//! A call that leads back to a service that waits for it closes a cycle. It is left out and reported, not followed.
//!
//! How often a service is called for one request of its caller is the rate of the edge divided by the rate of requests to the
//! caller. If that rate is not known, as for a gateway, the requests that it makes are used.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::Direction;
use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef as _;
use tidegate_graph::{EdgeTraffic, ServiceGraph};

/// Calls of one caller that are made at the same time.
#[derive(Clone, Debug)]
pub(super) struct CallGroup {
    pub(super) caller: NodeIndex,
    pub(super) callees: BTreeSet<NodeIndex>,
}

/// A call to a service.
#[derive(Clone, Debug)]
pub(super) struct TreeCall {
    /// The position of the service that is called.
    pub(super) callee: usize,
    /// Number of calls for one request of the caller; may be below 1.
    pub(super) ratio: f64,
    /// Calls of the same group are made at the same time; each call without a group comes after the others.
    pub(super) group: Option<usize>,
}

impl TreeCall {
    /// Tolerance for rates that differ by chance: 1.04 calls for each request are one.
    const TOLERANCE: f64 = 0.05;

    /// How many calls one request makes in sequence, if it makes any: at least one.
    pub(super) fn times(&self) -> f64 {
        (self.ratio - Self::TOLERANCE).ceil().max(1.0)
    }
}

/// A service and what it calls.
#[derive(Clone, Debug)]
pub(super) struct TreeNode {
    pub(super) index: NodeIndex,
    pub(super) calls: Vec<TreeCall>,
}

/// The services that an entry reaches, callers first; the entry has position 0.
#[derive(Clone, Debug)]
pub(super) struct CallTree {
    pub(super) nodes: Vec<TreeNode>,
    /// Calls that close a cycle: the services on it, in the order of the calls.
    pub(super) cycles: Vec<Vec<NodeIndex>>,
}

impl CallTree {
    pub(super) fn of(graph: &ServiceGraph, entry: NodeIndex, groups: &[CallGroup]) -> Self {
        let (order, cycles, dropped) = searched(graph, entry);
        let positions: BTreeMap<NodeIndex, usize> = order
            .iter()
            .enumerate()
            .map(|(position, index)| (*index, position))
            .collect();
        let nodes = order
            .iter()
            .map(|index| TreeNode {
                index: *index,
                calls: calls(graph, *index, &positions, &dropped, groups),
            })
            .collect();
        Self { nodes, cycles }
    }

    /// The whole time of each service, in seconds: its own, and its calls.
    pub(super) fn whole(&self, own: &[f64]) -> Vec<f64> {
        let mut whole = own.to_vec();
        for (position, node) in self.nodes.iter().enumerate().rev() {
            let mut groups: BTreeMap<usize, f64> = BTreeMap::new();
            let mut seconds = own.get(position).copied().unwrap_or_default();
            for call in &node.calls {
                let part = call.times() * whole.get(call.callee).copied().unwrap_or_default();
                match call.group {
                    Some(group) => {
                        let longest = groups.entry(group).or_default();
                        *longest = longest.max(part);
                    }
                    None => seconds += part,
                }
            }
            seconds += groups.values().sum::<f64>();
            if let Some(entry) = whole.get_mut(position) {
                *entry = seconds;
            }
        }
        whole
    }
}

/// An edge by its ends.
type Ends = (NodeIndex, NodeIndex);

/// Depth-first from the entry, by name: the services with the callers first, the cycles, and the edges that close them.
fn searched(
    graph: &ServiceGraph,
    entry: NodeIndex,
) -> (Vec<NodeIndex>, Vec<Vec<NodeIndex>>, BTreeSet<Ends>) {
    let mut finished = Vec::new();
    let mut seen = BTreeSet::from([entry]);
    let (mut cycles, mut dropped) = (Vec::new(), BTreeSet::new());
    // The services that wait for the last one, each with its remaining calls.
    let mut path = vec![(entry, callees(graph, entry))];
    while let Some((index, rest)) = path.last_mut() {
        let index = *index;
        let Some(next) = rest.pop() else {
            finished.push(index);
            path.pop();
            continue;
        };
        if let Some(start) = path.iter().position(|(waiting, _)| *waiting == next) {
            let circle = path.iter().skip(start).map(|(waiting, _)| *waiting);
            cycles.push(circle.collect());
            dropped.insert((index, next));
        } else if seen.insert(next) {
            path.push((next, callees(graph, next)));
        }
    }
    finished.reverse();
    (finished, cycles, dropped)
}

/// The calls of a service that have not ended, in reverse order of names.
fn callees(graph: &ServiceGraph, index: NodeIndex) -> Vec<NodeIndex> {
    let petgraph = graph.petgraph();
    let found: BTreeSet<_> = petgraph
        .edges(index)
        .filter(|edge| !edge.weight().has_ended)
        .filter_map(|edge| Some((&petgraph.node_weight(edge.target())?.key, edge.target())))
        .collect();
    found.into_iter().rev().map(|(_, index)| index).collect()
}

fn calls(
    graph: &ServiceGraph,
    index: NodeIndex,
    positions: &BTreeMap<NodeIndex, usize>,
    dropped: &BTreeSet<Ends>,
    groups: &[CallGroup],
) -> Vec<TreeCall> {
    let petgraph = graph.petgraph();
    let edges = |direction| {
        petgraph
            .edges_directed(index, direction)
            .filter(|edge| !edge.weight().has_ended)
            .filter_map(|edge| Some((edge.target(), rate(edge.weight())?)))
    };
    let incoming: f64 = edges(Direction::Incoming).map(|(_, rate)| rate).sum();
    let outgoing: f64 = edges(Direction::Outgoing).map(|(_, rate)| rate).sum();
    let requests = if incoming > 0.0 { incoming } else { outgoing };
    let mut rates: BTreeMap<NodeIndex, f64> = BTreeMap::new();
    for (callee, rate) in edges(Direction::Outgoing) {
        *rates.entry(callee).or_default() += rate;
    }
    callees(graph, index)
        .into_iter()
        .filter(|callee| !dropped.contains(&(index, *callee)))
        .filter_map(|callee| {
            let rate = rates.get(&callee).filter(|_| requests > 0.0);
            Some(TreeCall {
                callee: *positions.get(&callee)?,
                // A rate that is not known counts as one call for each request.
                ratio: rate.map_or(1.0, |rate| rate / requests),
                group: groups
                    .iter()
                    .position(|group| group.caller == index && group.callees.contains(&callee)),
            })
        })
        .collect()
}

fn rate(traffic: &EdgeTraffic) -> Option<f64> {
    traffic.rate.filter(|rate| rate.is_finite() && *rate > 0.0)
}
