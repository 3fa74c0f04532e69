//! Objectives along the graph: a target for each call from one objective end to end.
//!
//! The calls of a service are assumed to follow one another, the worst case, unless they are declared to be made at the
//! same time. A call that only some requests make counts in full; its probability only decides where a unit of the
//! objective saves most. So the targets along every path sum to at most the objective.
//!
//! Edges: nothing is reserved for a service without known latencies, and a note names it. Services on a cycle get a target
//! for the calls that do not close it.

mod estimate;
mod greedy;
mod tail;
mod terms;
mod tree;

use petgraph::graph::NodeIndex;
use tidegate_core::config::Readable;
use tidegate_graph::{ServiceGraph, ServiceVertex};

use crate::observed::vertex_name as name;
use crate::quantity::{rounded_down, target_range};
use estimate::{late, services, visits};
use tail::OwnTime;
pub use terms::{EndToEnd, MAX_SERVICES, ObjectiveSplit, ParallelCalls, SplitError, SplitPart};
use tree::{CallGroup, CallTree, TreeNode};

/// Highest quantile that a configuration accepts.
const MAX_QUANTILE: f64 = 0.999;
/// Lowest quantile that a configuration accepts.
const MIN_QUANTILE: f64 = 0.5;

/// Splits one objective among the calls of a request.
///
/// # Errors
///
/// If a name is not that of one vertex, or there are too many services.
pub fn split(graph: &ServiceGraph, objective: &EndToEnd) -> Result<ObjectiveSplit, SplitError> {
    let entry = vertex(graph, &objective.entry)?;
    let groups = groups(graph, &objective.parallel)?;
    let tree = CallTree::of(graph, entry, &groups);
    if tree.nodes.len() > MAX_SERVICES {
        return Err(SplitError::TooMany {
            found: tree.nodes.len(),
        });
    }
    let target = objective.target.as_secs_f64();
    let mut notes = vec![
        "the calls of a service are assumed to follow one another, unless --parallel says otherwise"
            .to_owned(),
    ];
    let services = services(graph, &tree, &mut notes);
    let least: Vec<f64> = services
        .iter()
        .map(|service| service.as_ref().map_or(0.0, OwnTime::least))
        .collect();
    let mut done = ObjectiveSplit {
        parts: Vec::new(),
        least_seconds: greedy::end_to_end(&tree, &least),
        used_seconds: 0.0,
        expected_late: None,
        allowed_late: 1.0 - objective.quantile,
        cycles: tree
            .cycles
            .iter()
            .map(|cycle| cycle.iter().map(|index| name(graph, *index)).collect())
            .collect(),
        notes,
    };
    if done.least_seconds > target {
        done.notes.push(format!(
            "the medians alone take {:.1} ms, longer than the objective of {}: no split can keep it",
            done.least_seconds * 1_000.0,
            Readable(objective.target),
        ));
        return Ok(done);
    }
    let own = greedy::shared_out(&tree, &services, &visits(&tree), target);
    let whole = tree.whole(&own);
    let late = late(&tree, &services, &own);
    let at = |values: &[f64], position: usize| values.get(position).copied().unwrap_or_default();
    done.used_seconds = at(&whole, 0);
    let expected = at(&late, 0);
    done.expected_late = Some(expected);
    if expected > done.allowed_late {
        done.notes.push(format!(
            "{:.2} % of the requests are expected to be late, but the objective allows {:.2} %",
            expected * 100.0,
            done.allowed_late * 100.0,
        ));
    }
    let part = |caller: Option<NodeIndex>, position: usize, ratio: f64| {
        let node: &TreeNode = tree.nodes.get(position)?;
        services.get(position)?.as_ref()?;
        let quantile = (1.0 - at(&late, position)).clamp(MIN_QUANTILE, MAX_QUANTILE);
        Some(SplitPart {
            caller: caller.map(|caller| name(graph, caller)),
            upstream: name(graph, node.index),
            calls: ratio,
            own_seconds: at(&own, position),
            target: Readable(rounded_down(at(&whole, position))).to_string(),
            // Rounded down: a stricter quantile than expected would be missed.
            quantile: (quantile * 1_000.0).floor() / 1_000.0,
        })
    };
    done.parts.extend(part(None, 0, 1.0));
    for node in &tree.nodes {
        for call in &node.calls {
            done.parts
                .extend(part(Some(node.index), call.callee, call.ratio));
        }
    }
    let shortest = target_range().0;
    if whole
        .iter()
        .any(|seconds| *seconds > 0.0 && *seconds < shortest.as_secs_f64())
    {
        done.notes.push(format!(
            "some targets are shorter than {}, the shortest that a policy accepts",
            Readable(shortest)
        ));
    }
    Ok(done)
}

/// The groups of calls, by vertex.
fn groups(graph: &ServiceGraph, parallel: &[ParallelCalls]) -> Result<Vec<CallGroup>, SplitError> {
    parallel
        .iter()
        .map(|group| {
            let callees = group.upstreams.iter().map(|name| vertex(graph, name));
            Ok(CallGroup {
                caller: vertex(graph, &group.caller)?,
                callees: callees.collect::<Result<_, _>>()?,
            })
        })
        .collect()
}

/// The one vertex of a name: its own, or that of the service that leads to it.
fn vertex(graph: &ServiceGraph, name: &str) -> Result<NodeIndex, SplitError> {
    let by_key = |(_, vertex): &(NodeIndex, &ServiceVertex)| vertex.key.to_string() == name;
    let mut found: Vec<_> = graph.vertices().filter(by_key).collect();
    if found.is_empty() {
        found = graph
            .vertices()
            .filter(|(_, vertex)| {
                vertex
                    .services
                    .iter()
                    .any(|service| service.to_string() == name)
            })
            .collect();
    }
    match found[..] {
        [(index, _)] => Ok(index),
        _ => Err(SplitError::Service {
            name: name.to_owned(),
            found: found
                .iter()
                .map(|(_, vertex)| vertex.key.to_string())
                .collect(),
        }),
    }
}
