//! Figures from the graph for the services of a tree: own time, calls per request, and the probability of being late.

use petgraph::Direction;
use petgraph::graph::NodeIndex;
use tidegate_graph::{EdgeTraffic, ServiceGraph};

use super::tail::OwnTime;
use super::tree::CallTree;
use crate::observed::vertex_name as name;

/// The own time of each service, by position; `None` where no latency is known.
pub(super) fn services(
    graph: &ServiceGraph,
    tree: &CallTree,
    notes: &mut Vec<String>,
) -> Vec<Option<OwnTime>> {
    let means: Vec<Option<f64>> = tree
        .nodes
        .iter()
        .map(|node| slowest(graph, node.index)?.mean_seconds)
        .collect();
    tree.nodes
        .iter()
        .enumerate()
        .map(|(position, node)| {
            let found = slowest(graph, node.index);
            let known = found.map(quantiles).unwrap_or_default();
            let mean = means.get(position).copied().flatten();
            let calls: Option<f64> = node
                .calls
                .iter()
                .map(|call| Some(call.ratio * means.get(call.callee).copied().flatten()?))
                .sum();
            let share = match (mean.filter(|mean| *mean > 0.0), calls) {
                (Some(mean), Some(calls)) => (mean - calls) / mean,
                // The whole latency, because it is better to reserve too much than too little.
                _ => 1.0,
            };
            let own = OwnTime::new(&known, share);
            if own.is_none() {
                notes.push(format!(
                    "no latency of {} is known: nothing is reserved for it",
                    name(graph, node.index)
                ));
            }
            own
        })
        .collect()
}

/// The traffic of the caller for which the service is slowest at the highest known level. A caller of whose calls only lower
/// levels are known comes before it if the service is slower for that caller at such a level.
fn slowest(graph: &ServiceGraph, index: NodeIndex) -> Option<&EdgeTraffic> {
    let mut callers: Vec<_> = graph
        .petgraph()
        .edges_directed(index, Direction::Incoming)
        .map(|edge| edge.weight())
        .filter(|traffic| !traffic.has_ended)
        .filter_map(|traffic| {
            let known = quantiles(traffic);
            Some((known.last().copied()?, known, traffic))
        })
        .collect();
    callers.sort_by(|((a_level, a), ..), ((b_level, b), ..)| {
        b_level.total_cmp(a_level).then(b.total_cmp(a))
    });
    callers
        .into_iter()
        .reduce(|slowest, next| {
            let (level, seconds) = next.0;
            // The level itself, or the next higher one where it is not known.
            let same = slowest.1.iter().find(|(known, _)| *known >= level);
            if same.is_some_and(|(_, other)| seconds > *other) {
                next
            } else {
                slowest
            }
        })
        .map(|(_, _, traffic)| traffic)
}

/// The known quantiles as level and seconds. A quantile below a lower one is raised to it.
fn quantiles(traffic: &EdgeTraffic) -> Vec<(f64, f64)> {
    let all = [
        (0.5, traffic.p50_seconds),
        (0.95, traffic.p95_seconds),
        (0.99, traffic.p99_seconds),
    ];
    let mut most: f64 = 0.0;
    all.into_iter()
        .filter_map(|(level, seconds)| {
            most = most.max(seconds.filter(|seconds| seconds.is_finite())?);
            Some((level, most))
        })
        .collect()
}

/// How often a request of the entry calls each service, by position.
pub(super) fn visits(tree: &CallTree) -> Vec<f64> {
    let mut visits = vec![0.0; tree.nodes.len()];
    if let Some(first) = visits.first_mut() {
        *first = 1.0;
    }
    for (position, node) in tree.nodes.iter().enumerate() {
        let own: f64 = visits.get(position).copied().unwrap_or_default();
        for call in &node.calls {
            if let Some(callee) = visits.get_mut(call.callee) {
                *callee += own * call.ratio;
            }
        }
    }
    visits
}

/// The expected share of calls of each service that is late, itself or something that it calls: at most the sum of all.
pub(super) fn late(tree: &CallTree, services: &[Option<OwnTime>], own: &[f64]) -> Vec<f64> {
    let mut late: Vec<f64> = services
        .iter()
        .zip(own)
        .map(|(service, own)| service.as_ref().map_or(0.0, |service| service.missed(*own)))
        .collect();
    for (position, node) in tree.nodes.iter().enumerate().rev() {
        let below: f64 = node
            .calls
            .iter()
            .map(|call| call.ratio * late.get(call.callee).copied().unwrap_or_default())
            .sum();
        if let Some(share) = late.get_mut(position) {
            *share = (*share + below).min(1.0);
        }
    }
    late
}
