//! Finds objectives that are too short for the service's place in a chain of calls.
//!
//! If a caller needs a service, the service should have a longer objective than its caller, by a tenth: the first proxy then has the
//! least time to spare, and sheds before any service has worked (decision 0027). The graph does not say which calls a caller can do
//! without. But a service that is called for nearly every request of its caller is probably needed, so the value that
//! follows is reported, but not applied.
//!
//! Edges: in a cycle of calls no objective can be longer than all others, so calls within a cycle are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use petgraph::algo::kosaraju_scc;
use tidegate_graph::{ServiceGraph, VertexKey};

use super::UpstreamAdvice;
use crate::quantity::rounded_up;

/// A service that is called for this share of the requests of its caller is probably needed. Below 1, because rates differ by chance.
const NEARLY_ALL: f64 = 0.95;
/// Factor by which the objective of a service should be longer than that of its caller.
const LONGER: f64 = 1.1;
/// Longest chain that is followed.
const MAX_LENGTH: usize = 64;

/// The objective that follows from that of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainHint {
    /// The caller, as `namespace/name`. It may contain anything.
    pub caller: String,
    /// The target of the caller, as it would follow from its own callers.
    pub caller_target: Duration,
    /// The target that follows, if the caller needs the service.
    pub target: Duration,
}

/// Sets the objective that follows for each upstream whose objective is too short for its place.
pub(super) fn note_chains(graph: &ServiceGraph, advice: &mut [UpstreamAdvice<'_>]) {
    let targets: Vec<Option<Duration>> = advice
        .iter()
        .map(|found| found.objective.as_ref().ok().map(|found| found.target))
        .collect();
    let calls = needed_calls(graph, advice);
    let mut raised: Vec<Option<(Duration, Option<usize>)>> = targets
        .iter()
        .map(|target| target.map(|target| (target, None)))
        .collect();
    for _ in 0..MAX_LENGTH {
        let mut has_changed = false;
        for (caller, callee) in &calls {
            let of = |position: &usize| raised.get(*position).copied().flatten();
            let (Some((long, _)), Some((short, _))) = (of(caller), of(callee)) else {
                continue;
            };
            let needed = rounded_up(long.as_secs_f64() * LONGER);
            if let Some(needed) = needed.filter(|needed| *needed > short)
                && let Some(slot) = raised.get_mut(*callee)
            {
                *slot = Some((needed, Some(*caller)));
                has_changed = true;
            }
        }
        if !has_changed {
            break;
        }
    }
    let hints: Vec<Option<ChainHint>> = raised
        .iter()
        .map(|found| {
            let (target, caller) = (*found)?;
            let caller = caller?;
            Some(ChainHint {
                caller: advice.get(caller)?.upstream.name.clone(),
                caller_target: raised.get(caller).copied().flatten()?.0,
                target,
            })
        })
        .collect();
    for (found, hint) in advice.iter_mut().zip(hints) {
        found.chain = hint;
    }
}

/// Calls for nearly every request of the caller, as positions of caller and callee, outside cycles.
fn needed_calls(graph: &ServiceGraph, advice: &[UpstreamAdvice<'_>]) -> BTreeSet<(usize, usize)> {
    let mut circles: BTreeMap<&VertexKey, usize> = BTreeMap::new();
    for (number, members) in kosaraju_scc(graph.petgraph()).into_iter().enumerate() {
        for index in members {
            circles.extend(
                graph
                    .petgraph()
                    .node_weight(index)
                    .map(|vertex| (&vertex.key, number)),
            );
        }
    }
    let mut upstreams: BTreeMap<&VertexKey, BTreeSet<usize>> = BTreeMap::new();
    let mut requests: BTreeMap<&VertexKey, f64> = BTreeMap::new();
    for (position, found) in advice.iter().enumerate() {
        for call in &found.upstream.calls {
            let all = upstreams.entry(call.callee).or_default();
            all.insert(position);
            // A workload behind several services has the same calls in each.
            if all.first() == Some(&position) {
                *requests.entry(call.callee).or_default() += call.traffic.rate.unwrap_or_default();
            }
        }
    }
    let mut needed = BTreeSet::new();
    for (position, found) in advice.iter().enumerate() {
        let mut made: BTreeMap<&VertexKey, f64> = BTreeMap::new();
        for call in &found.upstream.calls {
            if circles.get(call.caller) != circles.get(call.callee) {
                *made.entry(call.caller).or_default() += call.traffic.rate.unwrap_or_default();
            }
        }
        for (caller, rate) in made {
            let all = requests.get(caller).copied().unwrap_or_default();
            if all > 0.0 && rate >= all * NEARLY_ALL {
                let callers = upstreams.get(caller).into_iter().flatten();
                needed.extend(callers.map(|caller| (*caller, position)));
            }
        }
    }
    needed.retain(|(caller, callee)| caller != callee);
    needed
}
