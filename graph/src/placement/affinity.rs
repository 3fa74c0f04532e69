//! Partial objects that ask the scheduler to run pods beside those that they call.
//!
//! The affinity is preferred, not required: pods must also run if the free capacity has changed. Names are in values
//! only.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::problem::listed;
use super::{EdgeCost, WorkloadCall};
use crate::cluster::{ClusterFacts, WorkloadFacts};

/// Most neighbors of a workload in a patch: the scheduler weighs each term for each node.
const MAX_TERMS: usize = 3;
/// The label of a node with its name.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Partial objects, and the workloads without one.
#[derive(Clone, Debug, Default)]
pub(super) struct AffinityPatches {
    pub(super) patches: Vec<Value>,
    pub(super) notes: Vec<String>,
}

/// The patches for workloads that share a node with workloads that they exchange calls with. `after` has the pods on each
/// node.
pub(super) fn patches(
    cluster: &ClusterFacts,
    after: &BTreeMap<usize, BTreeMap<String, u32>>,
    calls: &[WorkloadCall],
    cost: EdgeCost,
) -> AffinityPatches {
    let is_together = |a: &usize, b: &usize| {
        let nodes = after.get(a).zip(after.get(b));
        nodes.is_some_and(|(a, b)| a.keys().any(|node| b.contains_key(node)))
    };
    let mut neighbors: BTreeMap<usize, BTreeMap<usize, f64>> = BTreeMap::new();
    for call in calls
        .iter()
        .filter(|call| is_together(&call.caller, &call.upstream))
    {
        for (own, other) in [(call.caller, call.upstream), (call.upstream, call.caller)] {
            *neighbors.entry(own).or_default().entry(other).or_default() += call.cost(cost);
        }
    }
    let mut done = AffinityPatches::default();
    let (mut unlabelled, mut other_kinds) = (Vec::new(), Vec::new());
    for (position, weights) in neighbors {
        let Some(workload) = cluster.workloads.get(position) else {
            continue;
        };
        if !matches!(workload.kind.as_str(), "Deployment" | "StatefulSet") {
            other_kinds.push(workload.to_string());
            continue;
        }
        let mut weights: Vec<(&WorkloadFacts, f64)> = weights
            .into_iter()
            .filter_map(|(other, weight)| Some((cluster.workloads.get(other)?, weight)))
            .filter(|(other, weight)| {
                let has_labels = !labels(other).is_empty();
                if !has_labels {
                    unlabelled.push(other.to_string());
                }
                has_labels && *weight > 0.0
            })
            .collect();
        weights.sort_by(|a, b| b.1.total_cmp(&a.1));
        weights.truncate(MAX_TERMS);
        let most = weights.first().map_or(1.0, |(_, weight)| *weight);
        let terms: Vec<Value> = weights
            .into_iter()
            .map(|(other, weight)| term(workload, other, weight / most))
            .collect();
        if !terms.is_empty() {
            done.patches.push(patch(workload, &terms));
        }
    }
    for (names, reason) in [
        (unlabelled, "have no labels that could select their pods"),
        (
            other_kinds,
            "are neither a Deployment nor a StatefulSet, and get no patch",
        ),
    ] {
        let mut names: Vec<String> = names;
        names.sort();
        names.dedup();
        if !names.is_empty() {
            done.notes.push(format!(
                "{} workloads {reason}: {}",
                names.len(),
                listed(&names)
            ));
        }
    }
    done
}

fn labels(workload: &WorkloadFacts) -> &BTreeMap<String, String> {
    if workload.selector.is_empty() {
        &workload.labels
    } else {
        &workload.selector
    }
}

fn patch(workload: &WorkloadFacts, terms: &[Value]) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": workload.kind,
        "metadata": {"name": workload.name, "namespace": workload.namespace},
        "spec": {"template": {"spec": {"affinity": {"podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": terms,
        }}}}},
    })
}

fn term(workload: &WorkloadFacts, other: &WorkloadFacts, share: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 to 100, the range of the scheduler"
    )]
    let weight = (share * 100.0).round().clamp(1.0, 100.0) as u32;
    let mut term = json!({
        "labelSelector": {"matchLabels": labels(other)},
        "topologyKey": HOSTNAME,
    });
    if let Some(entries) = term
        .as_object_mut()
        .filter(|_| other.namespace != workload.namespace)
    {
        entries.insert("namespaces".to_owned(), json!([other.namespace]));
    }
    json!({"weight": weight, "podAffinityTerm": term})
}
