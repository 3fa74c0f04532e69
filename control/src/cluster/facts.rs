//! Turns objects of Kubernetes into figures of workloads, services and nodes.
//!
//! Requests and limits are those of the running pods, with the proxies that an injector added; without pods they are
//! those of the template. An endpoint that several slices list (one per port or address family) counts once.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplateSpec};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use tidegate_graph::{
    ClusterFacts, ClusterNode, EndpointCounts, KubernetesFacts, ServiceFacts, WorkloadFacts,
};

use super::owner::workload;
use super::resources::{amounts, larger, of_pod};

/// The label of a slice with the name of its service.
const SERVICE: &str = "kubernetes.io/service-name";
/// Labels that differ between the pods of a workload, or between its versions.
const OWN_LABELS: [&str; 6] = [
    "pod-template-hash",
    "rollouts-pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
];

/// Namespace and name.
type ObjectName = (String, String);

/// An object that contributes figures.
#[derive(Clone, Debug)]
pub enum ClusterObject {
    /// A Deployment.
    Deployment(Box<Deployment>),
    /// A `StatefulSet`.
    StatefulSet(Box<StatefulSet>),
    /// A `DaemonSet`.
    DaemonSet(Box<DaemonSet>),
    /// A pod.
    Pod(Box<Pod>),
    /// Endpoints of a service.
    EndpointSlice(Box<EndpointSlice>),
    /// A node.
    Node(Box<Node>),
}

/// Collects figures from objects in any order.
#[derive(Clone, Debug, Default)]
pub struct FactsReader {
    workloads: BTreeMap<ObjectName, WorkloadFacts>,
    /// Running pods of each workload.
    running: BTreeMap<ObjectName, u32>,
    /// The workload of each pod.
    pods: BTreeMap<ObjectName, String>,
    /// The endpoints of each service, by pod or address.
    endpoints: BTreeMap<ObjectName, BTreeMap<String, SeenEndpoint>>,
    nodes: BTreeMap<String, ClusterNode>,
}

#[derive(Clone, Debug, Default)]
struct SeenEndpoint {
    is_ready: bool,
    node: Option<String>,
    /// Whether the endpoint is a pod.
    is_pod: bool,
}

impl FactsReader {
    /// Adds an object.
    pub fn take(&mut self, object: ClusterObject) {
        match object {
            ClusterObject::Deployment(found) => {
                let (replicas, spec) = found.spec.map_or((None, None), |spec| {
                    (
                        spec.replicas.or(Some(1)),
                        Some((spec.selector, spec.template)),
                    )
                });
                self.template("Deployment", found.metadata, replicas, spec);
            }
            ClusterObject::StatefulSet(found) => {
                let (replicas, spec) = found.spec.map_or((None, None), |spec| {
                    (
                        spec.replicas.or(Some(1)),
                        Some((spec.selector, spec.template)),
                    )
                });
                self.template("StatefulSet", found.metadata, replicas, spec);
            }
            ClusterObject::DaemonSet(found) => {
                let replicas = found.status.map(|status| status.desired_number_scheduled);
                let spec = found.spec.map(|spec| (spec.selector, spec.template));
                self.template("DaemonSet", found.metadata, replicas, spec);
            }
            ClusterObject::Pod(pod) => self.pod(&pod),
            ClusterObject::EndpointSlice(slice) => self.slice(*slice),
            ClusterObject::Node(node) => self.node(*node),
        }
    }

    fn template(
        &mut self,
        kind: &str,
        metadata: ObjectMeta,
        replicas: Option<i32>,
        spec: Option<(LabelSelector, PodTemplateSpec)>,
    ) {
        let name = named(&metadata);
        let entry = self.workloads.entry(name.clone()).or_default();
        (entry.namespace, entry.name) = name;
        kind.clone_into(&mut entry.kind);
        entry.facts.replicas = replicas.and_then(|count| u32::try_from(count).ok());
        let Some((selector, template)) = spec else {
            return;
        };
        entry.selector = selector.match_labels.unwrap_or_default();
        let labels = template.metadata.and_then(|found| found.labels);
        entry.labels = labels.unwrap_or_default();
        let name = (entry.namespace.clone(), entry.name.clone());
        if let Some(spec) = template.spec.filter(|_| !self.running.contains_key(&name)) {
            (entry.facts.requests, entry.facts.limits) = of_pod(&spec);
        }
    }

    fn pod(&mut self, pod: &Pod) {
        let phase = pod.status.as_ref().and_then(|found| found.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return;
        }
        let (kind, workload) = workload(pod);
        let (namespace, pod_name) = named(&pod.metadata);
        let name = (namespace.clone(), workload.clone());
        self.pods.insert((namespace, pod_name), workload);
        let entry = self.workloads.entry(name.clone()).or_insert_with(|| {
            let mut labels = pod.metadata.labels.clone().unwrap_or_default();
            labels.retain(|label, _| !OWN_LABELS.contains(&label.as_str()));
            WorkloadFacts {
                namespace: name.0.clone(),
                name: name.1.clone(),
                kind,
                labels,
                ..WorkloadFacts::default()
            }
        });
        let Some(spec) = &pod.spec else {
            return;
        };
        let (requests, limits) = of_pod(spec);
        let facts = &mut entry.facts;
        let running = self.running.entry(name).or_default();
        // The pods of two versions may differ while one replaces the other.
        (facts.requests, facts.limits) = if *running == 0 {
            (requests, limits)
        } else {
            (
                larger(facts.requests, requests),
                larger(facts.limits, limits),
            )
        };
        *running += 1;
        if let Some(node) = &spec.node_name {
            *facts.nodes.entry(node.clone()).or_default() += 1;
        }
    }

    fn slice(&mut self, slice: EndpointSlice) {
        let labels = slice.metadata.labels.unwrap_or_default();
        let Some(service) = labels.get(SERVICE) else {
            return;
        };
        let namespace = slice.metadata.namespace.unwrap_or_default();
        let seen = self
            .endpoints
            .entry((namespace, service.clone()))
            .or_default();
        for endpoint in slice.endpoints {
            let pod = endpoint
                .target_ref
                .filter(|target| target.kind.as_deref() == Some("Pod"))
                .and_then(|target| target.name);
            let is_pod = pod.is_some();
            let Some(key) = pod.or_else(|| endpoint.addresses.into_iter().next()) else {
                continue;
            };
            let conditions = endpoint.conditions.unwrap_or_default();
            let found = SeenEndpoint {
                // An unset condition means ready.
                is_ready: conditions.ready.unwrap_or(true),
                node: endpoint.node_name,
                is_pod,
            };
            seen.insert(key, found);
        }
    }

    fn node(&mut self, node: Node) {
        let name = node.metadata.name.unwrap_or_default();
        let status = node.status.unwrap_or_default();
        let is_ready = |found: &k8s_openapi::api::core::v1::NodeCondition| {
            found.type_ != "Ready" || found.status == "True"
        };
        let conditions = status.conditions.unwrap_or_default();
        let spec = node.spec.unwrap_or_default();
        let taints = spec.taints.unwrap_or_default();
        let is_closed = taints
            .iter()
            .any(|taint| taint.effect != "PreferNoSchedule");
        let found = ClusterNode {
            name: name.clone(),
            allocatable: status
                .allocatable
                .or(status.capacity)
                .map(|list| amounts(&list))
                .unwrap_or_default(),
            is_schedulable: spec.unschedulable != Some(true)
                && !is_closed
                && conditions.iter().all(is_ready),
        };
        self.nodes.insert(name, found);
    }

    /// The figures of all objects taken; `unread` is what could not be read, and why.
    #[must_use]
    pub fn finish(mut self, unread: Vec<String>) -> ClusterFacts {
        let mut services = Vec::new();
        let mut of_workload: BTreeMap<ObjectName, BTreeMap<String, bool>> = BTreeMap::new();
        for ((namespace, name), endpoints) in self.endpoints {
            let mut service = ServiceFacts {
                namespace: namespace.clone(),
                name,
                ..ServiceFacts::default()
            };
            for (key, endpoint) in endpoints {
                service.endpoints.count(endpoint.is_ready);
                if let Some(node) = endpoint.node {
                    *service.nodes.entry(node).or_default() += 1;
                }
                let pod = (namespace.clone(), key);
                let workload = self.pods.get(&pod).filter(|_| endpoint.is_pod);
                if let Some(workload) = workload {
                    service.workloads.insert(workload.clone());
                    let pods = of_workload
                        .entry((namespace.clone(), workload.clone()))
                        .or_default();
                    *pods.entry(pod.1).or_default() |= endpoint.is_ready;
                }
            }
            services.push(service);
        }
        for (name, entry) in &mut self.workloads {
            let facts: &mut KubernetesFacts = &mut entry.facts;
            if facts.replicas.is_none() {
                facts.replicas = self.running.get(name).copied();
            }
            if let Some(pods) = of_workload.get(name) {
                let mut endpoints = EndpointCounts::default();
                pods.values()
                    .for_each(|is_ready| endpoints.count(*is_ready));
                facts.endpoints = Some(endpoints);
            }
        }
        let unread: BTreeSet<String> = unread.into_iter().collect();
        ClusterFacts {
            workloads: self.workloads.into_values().collect(),
            services,
            nodes: self.nodes.into_values().collect(),
            unread: unread.into_iter().collect(),
        }
    }
}

fn named(metadata: &ObjectMeta) -> ObjectName {
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}
