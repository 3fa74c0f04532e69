//! The changes that a placement makes.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::affinity::patches;
use super::partition::Amounts;
use super::problem::{PlacementProblem, bytes};
use super::{EdgeCost, PlacementTerms};
use crate::cluster::ClusterFacts;
use crate::model::ComputeResources;

/// A saving below this share does not count.
const MIN_SAVING: f64 = 1e-6;

/// A placement for people and programs. Names in it may contain anything.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacementReport {
    /// The version of this document: 1.
    pub version: u32,
    /// What was minimized.
    pub cost: EdgeCost,
    /// The seed.
    pub seed: u64,
    /// Requests per second between workloads, in all and across nodes.
    pub rate: PlacementFigures,
    /// The cost of all calls between workloads, and of those across nodes: requests per second, or seconds of latency.
    pub weight: PlacementFigures,
    /// Whether less traffic crosses nodes than now. If not, nothing moves.
    pub is_better: bool,
    /// The pods on each node afterwards.
    pub nodes: Vec<NodeUse>,
    /// The moves, by workload.
    pub moves: Vec<PlacementMove>,
    /// Workloads that are left out, and doubts.
    pub notes: Vec<String>,
    /// Partial objects that prefer nodes on which pods that they call run.
    pub patches: Vec<Value>,
}

/// A sum over calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PlacementFigures {
    /// Of all calls.
    pub total: f64,
    /// Of those across nodes now; `None` if it is not known where pods run.
    pub across_before: Option<f64>,
    /// Of those across nodes afterwards.
    pub across_after: f64,
}

/// A node afterwards.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeUse {
    /// Its name.
    pub node: String,
    /// Free capacity, without pods that are not placed.
    pub free: ComputeResources,
    /// Requests of the pods that are placed there.
    pub used: ComputeResources,
    /// Pods of each workload.
    pub workloads: BTreeMap<String, u32>,
}

/// The move of a workload's pods.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacementMove {
    /// The workload, as `namespace/name`.
    pub workload: String,
    /// Pods on each node now.
    pub from: BTreeMap<String, u32>,
    /// Pods on each node afterwards.
    pub to: BTreeMap<String, u32>,
    /// Number of pods that change their node.
    pub moved: u32,
}

/// Pods on each node, of each workload by position.
type PodSpread = BTreeMap<usize, BTreeMap<String, u32>>;

/// The report for a placement; `parts` has the node of each unit.
pub(super) fn report(
    problem: &PlacementProblem,
    cluster: &ClusterFacts,
    parts: &[usize],
    terms: &PlacementTerms,
) -> PlacementReport {
    let mut after = PodSpread::new();
    for (unit, part) in problem.units.iter().zip(parts) {
        if let Some(node) = problem.nodes.get(*part) {
            let pods = after.entry(unit.workload).or_default();
            *pods.entry(node.name.clone()).or_default() += unit.replicas;
        }
    }
    let workload = |position: &usize| cluster.workloads.get(*position);
    let before: Option<PodSpread> = after
        .keys()
        .map(|position| {
            let pods = &workload(position)?.facts.nodes;
            (!pods.is_empty()).then(|| (*position, pods.clone()))
        })
        .collect();
    let figures = |cost: EdgeCost| {
        let across = |spread: &PodSpread| {
            let calls = problem.calls.iter();
            calls
                .map(|call| call.cost(cost) * crossing(spread, call.caller, call.upstream))
                .sum()
        };
        PlacementFigures {
            total: problem.calls.iter().map(|call| call.cost(cost)).sum(),
            across_before: before.as_ref().map(across),
            across_after: across(&after),
        }
    };
    let weight = figures(terms.cost);
    let is_better = weight
        .across_before
        .is_none_or(|before| weight.across_after < before - weight.total * MIN_SAVING);
    let mut notes = problem.notes.clone();
    let (moves, found) = if is_better {
        let moves = after.iter().filter_map(|(position, to)| {
            let workload = workload(position)?;
            let from = &workload.facts.nodes;
            let moved = to
                .iter()
                .map(|(node, pods)| {
                    pods.saturating_sub(from.get(node).copied().unwrap_or_default())
                })
                .sum();
            (moved > 0).then(|| PlacementMove {
                workload: workload.to_string(),
                from: from.clone(),
                to: to.clone(),
                moved,
            })
        });
        let found = patches(cluster, &after, &problem.calls, terms.cost);
        notes.extend(found.notes);
        (moves.collect(), found.patches)
    } else {
        notes.push("no placement was found that is better than where the pods run now".to_owned());
        (Vec::new(), Vec::new())
    };
    if before.is_none() {
        notes.push(
            "where pods run now is not known: what crosses nodes now is not known either"
                .to_owned(),
        );
    }
    PlacementReport {
        version: 1,
        cost: terms.cost,
        seed: terms.seed,
        rate: figures(EdgeCost::Rate),
        weight,
        is_better,
        nodes: uses(problem, cluster, &after),
        moves,
        notes,
        patches: found,
    }
}

/// The share of the calls between two workloads that cross nodes, if each pod calls each pod alike.
fn crossing(spread: &PodSpread, caller: usize, upstream: usize) -> f64 {
    let (Some(callers), Some(upstreams)) = (spread.get(&caller), spread.get(&upstream)) else {
        return 0.0;
    };
    let all = |pods: &BTreeMap<String, u32>| f64::from(pods.values().sum::<u32>()).max(1.0);
    let (of_callers, of_upstreams) = (all(callers), all(upstreams));
    let same: f64 = callers
        .iter()
        .filter_map(|(node, pods)| {
            let others = upstreams.get(node)?;
            Some(f64::from(*pods) / of_callers * f64::from(*others) / of_upstreams)
        })
        .sum();
    1.0 - same
}

fn uses(problem: &PlacementProblem, cluster: &ClusterFacts, after: &PodSpread) -> Vec<NodeUse> {
    let resources = |[cpu, memory]: Amounts| ComputeResources {
        cpu_cores: Some(cpu),
        memory_bytes: Some(whole(memory)),
    };
    let nodes = problem.nodes.iter().zip(&problem.capacities);
    nodes
        .map(|(node, capacity)| {
            let mut used = [0.0; 2];
            let mut workloads = BTreeMap::new();
            for (position, spread) in after {
                let here = spread.get(&node.name).zip(cluster.workloads.get(*position));
                let Some((pods, workload)) = here else {
                    continue;
                };
                workloads.insert(workload.to_string(), *pods);
                let each = workload.facts.requests;
                used[0] += each.cpu_cores.unwrap_or_default() * f64::from(*pods);
                used[1] += bytes(each.memory_bytes.unwrap_or_default()) * f64::from(*pods);
            }
            NodeUse {
                node: node.name.clone(),
                free: resources(*capacity),
                used: resources(used),
                workloads,
            }
        })
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes, which are not negative"
)]
const fn whole(bytes: f64) -> u64 {
    bytes as u64
}
