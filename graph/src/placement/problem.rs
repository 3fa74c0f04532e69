//! Turns workloads, nodes and calls into a graph that can be partitioned.

use std::collections::{BTreeMap, BTreeSet};

use super::partition::{Amounts, Partitioned};
use super::{EdgeCost, PlacementError, WorkloadCall};
use crate::cluster::{ClusterFacts, WorkloadFacts};
use crate::model::{ClusterNode, ComputeResources};
use crate::output::memory;

/// Tolerance, so that rounding does not count as a lack of room.
const ROUNDING: f64 = 1.0 + 1e-9;

/// Some replicas of a workload that are placed together.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedUnit {
    /// The position of the workload.
    pub(super) workload: usize,
    pub(super) replicas: u32,
}

/// The units to place, and the nodes for them.
#[derive(Clone, Debug)]
pub(super) struct PlacementProblem {
    pub(super) nodes: Vec<ClusterNode>,
    /// The free capacity of each node, without pods that are not placed.
    pub(super) capacities: Vec<Amounts>,
    pub(super) units: Vec<PlacedUnit>,
    pub(super) graph: Partitioned,
    /// The node of each unit where most of its pods are now; `None` if some are on none of the nodes.
    pub(super) present: Option<Vec<usize>>,
    pub(super) calls: Vec<WorkloadCall>,
    pub(super) notes: Vec<String>,
}

impl PlacementProblem {
    pub(super) fn of(
        cluster: &ClusterFacts,
        nodes: &[ClusterNode],
        calls: &[WorkloadCall],
        cost: EdgeCost,
    ) -> Result<Self, PlacementError> {
        let movable = |position: &usize| cluster.workloads.get(*position).is_some_and(is_movable);
        let calls: Vec<WorkloadCall> = calls
            .iter()
            .copied()
            .filter(|call| movable(&call.caller) && movable(&call.upstream))
            .collect();
        let placed: BTreeSet<usize> = calls
            .iter()
            .flat_map(|call| [call.caller, call.upstream])
            .collect();
        if placed.is_empty() {
            return Err(PlacementError::NoWorkloads);
        }
        let open = nodes.iter().filter(|node| node.is_schedulable);
        let nodes: Vec<ClusterNode> = open.cloned().collect();
        if nodes.is_empty() {
            return Err(PlacementError::NoNodes);
        }
        let capacities = capacities(cluster, &nodes, &placed)?;
        let mut notes = Vec::new();
        let mut units = Vec::new();
        let mut of_workload: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut unknown = Vec::new();
        for position in placed {
            let Some(workload) = cluster.workloads.get(position) else {
                continue;
            };
            if workload.facts.requests.cpu_cores.is_none()
                || workload.facts.requests.memory_bytes.is_none()
            {
                unknown.push(workload.to_string());
            }
            let all = workload.facts.replicas.unwrap_or_default();
            let together = together(workload, &capacities)?;
            if together < all {
                notes.push(format!(
                    "{workload} fits on no node as a whole: at most {together} of its {all} replicas are placed together"
                ));
            }
            let mut left = all;
            while left > 0 {
                let replicas = left.min(together);
                of_workload.entry(position).or_default().push(units.len());
                units.push(PlacedUnit {
                    workload: position,
                    replicas,
                });
                left -= replicas;
            }
        }
        if !unknown.is_empty() {
            notes.push(format!(
                "{} workloads have pods without requests for CPU or memory, which count as 0: {}",
                unknown.len(),
                listed(&unknown)
            ));
        }
        let demands: Vec<Amounts> = units
            .iter()
            .filter_map(|unit| Some(demand(cluster.workloads.get(unit.workload)?, unit.replicas)))
            .collect();
        enough(&demands, &capacities)?;
        let edges = edges(&calls, &of_workload, &units, cluster, cost);
        let present = present(cluster, &nodes, &units);
        Ok(Self {
            capacities,
            graph: Partitioned::new(demands, edges.into_iter()),
            present,
            nodes,
            units,
            calls,
            notes,
        })
    }
}

/// Whether its pods may run on any node.
fn is_movable(workload: &WorkloadFacts) -> bool {
    workload.kind != "DaemonSet" && workload.facts.replicas.unwrap_or_default() > 0
}

/// The first few of many names.
pub(super) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// CPU and memory for people.
pub(super) fn amounts(of: Amounts) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes, which are not negative"
    )]
    let bytes = of[1].max(0.0) as u64;
    format!("{:.2} cores and {}", of[0], memory(bytes))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "memory far below 2^53 bytes, or so much that the rest does not matter"
)]
pub(super) const fn bytes(of: u64) -> f64 {
    of as f64
}

fn demand(workload: &WorkloadFacts, replicas: u32) -> Amounts {
    let each = known(workload.facts.requests);
    each.map(|amount| amount * f64::from(replicas))
}

fn known(of: ComputeResources) -> Amounts {
    [
        of.cpu_cores.unwrap_or_default(),
        bytes(of.memory_bytes.unwrap_or_default()),
    ]
}

/// The free capacity of each node, without pods that are not placed.
fn capacities(
    cluster: &ClusterFacts,
    nodes: &[ClusterNode],
    placed: &BTreeSet<usize>,
) -> Result<Vec<Amounts>, PlacementError> {
    let mut taken: BTreeMap<&str, Amounts> = BTreeMap::new();
    let stays = cluster.workloads.iter().enumerate();
    for (_, workload) in stays.filter(|(position, _)| !placed.contains(position)) {
        for (node, pods) in &workload.facts.nodes {
            let [cpu, memory] = demand(workload, *pods);
            let sum = taken.entry(node).or_default();
            *sum = [sum[0] + cpu, sum[1] + memory];
        }
    }
    let capacity = |node: &ClusterNode| {
        let unknown = |what| PlacementError::CapacityUnknown {
            node: node.name.clone(),
            what,
        };
        let cpu = node.allocatable.cpu_cores.ok_or_else(|| unknown("CPU"))?;
        let whole = node.allocatable.memory_bytes;
        let memory = bytes(whole.ok_or_else(|| unknown("memory"))?);
        let taken = taken.get(node.name.as_str()).copied().unwrap_or_default();
        Ok([(cpu - taken[0]).max(0.0), (memory - taken[1]).max(0.0)])
    };
    nodes.iter().map(capacity).collect()
}

/// How many replicas fit on a node together, at most all of them.
fn together(workload: &WorkloadFacts, capacities: &[Amounts]) -> Result<u32, PlacementError> {
    let each = known(workload.facts.requests);
    let all = workload.facts.replicas.unwrap_or_default();
    let fit = |capacity: &Amounts| {
        let pods = |wanted: f64, free: f64| {
            if wanted > 0.0 {
                (free * ROUNDING / wanted).floor().min(f64::from(all))
            } else {
                f64::from(all)
            }
        };
        pods(each[0], capacity[0]).min(pods(each[1], capacity[1]))
    };
    let most = capacities.iter().map(fit).fold(0.0, f64::max);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to the number of replicas"
    )]
    let most = most as u32;
    if most == 0 {
        return Err(PlacementError::PodTooLarge {
            workload: workload.to_string(),
            wanted: amounts(each),
        });
    }
    Ok(most)
}

fn enough(demands: &[Amounts], capacities: &[Amounts]) -> Result<(), PlacementError> {
    let sum = |of: &[Amounts]| {
        of.iter().fold([0.0; 2], |sum: Amounts, one| {
            [sum[0] + one[0], sum[1] + one[1]]
        })
    };
    let (wanted, free) = (sum(demands), sum(capacities));
    if wanted[0] > free[0] * ROUNDING || wanted[1] > free[1] * ROUNDING {
        return Err(PlacementError::TooMuch {
            wanted: amounts(wanted),
            free: amounts(free),
        });
    }
    Ok(())
}

/// The calls between units: those of a workload in several units are divided by replicas.
fn edges(
    calls: &[WorkloadCall],
    of_workload: &BTreeMap<usize, Vec<usize>>,
    units: &[PlacedUnit],
    cluster: &ClusterFacts,
    cost: EdgeCost,
) -> Vec<(usize, usize, f64)> {
    let share = |unit: usize| {
        let unit = units.get(unit)?;
        let all = cluster.workloads.get(unit.workload)?.facts.replicas?;
        Some(f64::from(unit.replicas) / f64::from(all))
    };
    let mut edges = Vec::new();
    for call in calls {
        let of = |workload| of_workload.get(workload).into_iter().flatten().copied();
        for caller in of(&call.caller) {
            for upstream in of(&call.upstream) {
                let part = share(caller).zip(share(upstream));
                let part = part.map_or(0.0, |(caller, upstream)| caller * upstream);
                edges.push((caller, upstream, call.cost(cost) * part));
            }
        }
    }
    edges
}

/// The node where most of the pods of each unit are now.
fn present(
    cluster: &ClusterFacts,
    nodes: &[ClusterNode],
    units: &[PlacedUnit],
) -> Option<Vec<usize>> {
    let position = |name: &String| nodes.iter().position(|node| node.name == *name);
    let of = |unit: &PlacedUnit| {
        let pods = &cluster.workloads.get(unit.workload)?.facts.nodes;
        let most = pods.iter().max_by_key(|(_, count)| **count);
        most.and_then(|(node, _)| position(node))
    };
    units.iter().map(of).collect()
}
