//! What a pod requests, and what it may use at most.
//!
//! For each resource, the scheduler counts the sum over the containers and the sidecars among the init containers, or the
//! largest other init container if that is more, and adds the overhead of the runtime class.
//!
//! Source: <https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers>.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use tidegate_graph::ComputeResources;

use super::quantity::{bytes, cores};

/// The restart policy of a sidecar: an init container that keeps running beside the others.
const SIDECAR: &str = "Always";

type AmountsOf<'a> = fn(&'a ResourceRequirements) -> Option<&'a BTreeMap<String, Quantity>>;

/// Requests and limits of a pod. A resource that no container names is unknown.
pub(super) fn of_pod(spec: &PodSpec) -> (ComputeResources, ComputeResources) {
    (
        total(spec, |wanted| {
            // Without requests, Kubernetes takes the limits as requests.
            wanted.requests.as_ref().or(wanted.limits.as_ref())
        }),
        total(spec, |wanted| wanted.limits.as_ref()),
    )
}

/// CPU and memory in a list of resources.
pub(super) fn amounts(list: &BTreeMap<String, Quantity>) -> ComputeResources {
    ComputeResources {
        cpu_cores: list.get("cpu").and_then(|found| cores(&found.0)),
        memory_bytes: list.get("memory").and_then(|found| bytes(&found.0)),
    }
}

/// The sum; if one side is unknown, the other side's value.
pub(super) fn plus(a: ComputeResources, b: ComputeResources) -> ComputeResources {
    ComputeResources {
        cpu_cores: joined(a.cpu_cores, b.cpu_cores, |a, b| a + b),
        memory_bytes: joined(a.memory_bytes, b.memory_bytes, u64::saturating_add),
    }
}

/// The larger of each; if one side is unknown, the other side's value.
pub(super) fn larger(a: ComputeResources, b: ComputeResources) -> ComputeResources {
    ComputeResources {
        cpu_cores: joined(a.cpu_cores, b.cpu_cores, f64::max),
        memory_bytes: joined(a.memory_bytes, b.memory_bytes, u64::max),
    }
}

fn total<'a>(spec: &'a PodSpec, list: AmountsOf<'a>) -> ComputeResources {
    let of = |container: &'a Container| {
        let found = container.resources.as_ref().and_then(list);
        found.map(amounts).unwrap_or_default()
    };
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let (sidecars, others): (Vec<_>, Vec<_>) = init
        .iter()
        .partition(|container| container.restart_policy.as_deref() == Some(SIDECAR));
    let running = spec.containers.iter().chain(sidecars);
    let running = running.map(of).fold(ComputeResources::default(), plus);
    let first = others
        .into_iter()
        .map(of)
        .fold(ComputeResources::default(), larger);
    let overhead = spec.overhead.as_ref().map(amounts).unwrap_or_default();
    plus(larger(running, first), overhead)
}

fn joined<T>(a: Option<T>, b: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(join(a, b)),
        (a, b) => a.or(b),
    }
}
