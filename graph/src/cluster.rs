//! Figures from Kubernetes for workloads, services and nodes, and how they become part of the graph.
//!
//! A vertex and an object belong together if namespace and name are the same: Istio names workloads as Kubernetes does, and a
//! cluster of Envoy in Istio names its service. Nothing is inferred from names alone.
//!
//! Source: Algorithm 1 of "Microservice communication graph" (PLOS ONE), which weighs vertices by replicas, CPU and memory.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{
    ClusterNode, EndpointCounts, KubernetesFacts, ServiceGraph, VertexKey, VertexKind,
};
use crate::warning::{GraphWarning, WarningKind, WarningTally};

/// What Kubernetes says at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClusterFacts {
    /// Deployments and the like, by namespace and name.
    pub workloads: Vec<WorkloadFacts>,
    /// Services with endpoints, by namespace and name.
    pub services: Vec<ServiceFacts>,
    /// Nodes, by name.
    pub nodes: Vec<ClusterNode>,
    /// What could not be read, and why.
    pub unread: Vec<String>,
}

/// A workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The kind of the object, such as Deployment.
    pub kind: String,
    /// The labels by which it selects its pods; empty if not known.
    pub selector: BTreeMap<String, String>,
    /// The labels of its pods.
    pub labels: BTreeMap<String, String>,
    /// Figures.
    pub facts: KubernetesFacts,
}

/// A service with its endpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceFacts {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its endpoints.
    pub endpoints: EndpointCounts,
    /// Endpoints on each node.
    pub nodes: BTreeMap<String, u32>,
    /// The workloads of its endpoints, in its namespace.
    pub workloads: BTreeSet<String>,
}

impl ClusterFacts {
    /// The workload of that namespace and name.
    #[must_use]
    pub fn workload(&self, namespace: &str, name: &str) -> Option<&WorkloadFacts> {
        self.workloads
            .iter()
            .find(|found| found.namespace == namespace && found.name == name)
    }

    /// The service of that namespace and name.
    #[must_use]
    pub fn service(&self, namespace: &str, name: &str) -> Option<&ServiceFacts> {
        self.services
            .iter()
            .find(|found| found.namespace == namespace && found.name == name)
    }

    /// Finds the workload of a vertex.
    pub(crate) fn positions(&self) -> WorkloadPositions<'_> {
        let workloads = self.workloads.iter().enumerate();
        let services = self
            .services
            .iter()
            .filter(|found| found.workloads.len() == 1);
        WorkloadPositions {
            workloads: workloads
                .map(|(position, found)| {
                    ((found.namespace.as_str(), found.name.as_str()), position)
                })
                .collect(),
            services: services
                .filter_map(|found| {
                    let name = (found.namespace.as_str(), found.name.as_str());
                    Some((name, found.workloads.first()?.as_str()))
                })
                .collect(),
        }
    }

    /// Adds the known figures to each vertex, and reports what is not known.
    pub(crate) fn join(&self, graph: &mut ServiceGraph) -> Vec<GraphWarning> {
        let name = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        let workloads: BTreeMap<_, _> = self
            .workloads
            .iter()
            .map(|found| (name(&found.namespace, &found.name), found))
            .collect();
        let services: BTreeMap<_, _> = self
            .services
            .iter()
            .map(|found| (name(&found.namespace, &found.name), found))
            .collect();
        let mut unmatched = WarningTally::default();
        graph.describe(|key| {
            let key_name = name(&key.namespace, &key.name);
            let found = match key.kind {
                VertexKind::Workload => workloads.get(&key_name).map(|found| found.facts.clone()),
                VertexKind::Service => services
                    .get(&key_name)
                    .map(|service| of_service(service, &workloads)),
                VertexKind::Unknown => return None,
            };
            if found.is_none() {
                unmatched.add(|| VertexKey::to_string(key));
            }
            found
        });
        let unread = self.unread.iter().map(|reason| GraphWarning {
            kind: WarningKind::Kubernetes,
            count: 1,
            message: format!("not read from Kubernetes: {reason}"),
        });
        unread
            .chain(unmatched.warning(
                WarningKind::Kubernetes,
                "vertices without a Kubernetes object among those that were read",
            ))
            .collect()
    }
}

/// The positions of workloads, by namespace and name.
#[derive(Debug)]
pub(crate) struct WorkloadPositions<'a> {
    workloads: BTreeMap<(&'a str, &'a str), usize>,
    /// The only workload of a service.
    services: BTreeMap<(&'a str, &'a str), &'a str>,
}

impl WorkloadPositions<'_> {
    /// The workload that a vertex is, or the only one behind it.
    pub(crate) fn of(&self, key: &VertexKey) -> Option<usize> {
        let (namespace, name) = (key.namespace.as_str(), key.name.as_str());
        let workload = match key.kind {
            VertexKind::Workload => name,
            VertexKind::Service => self.services.get(&(namespace, name))?,
            VertexKind::Unknown => return None,
        };
        self.workloads.get(&(namespace, workload)).copied()
    }
}

impl std::fmt::Display for WorkloadFacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The known figures of a service. What its pods request is known only if one workload has all of them.
fn of_service(
    service: &ServiceFacts,
    workloads: &BTreeMap<(String, String), &WorkloadFacts>,
) -> KubernetesFacts {
    let mut behind = service
        .workloads
        .iter()
        .filter_map(|name| workloads.get(&(service.namespace.clone(), name.clone())));
    let only = behind.next().filter(|_| behind.next().is_none());
    let facts = only.map(|found| found.facts.clone()).unwrap_or_default();
    KubernetesFacts {
        endpoints: Some(service.endpoints),
        nodes: service.nodes.clone(),
        ..facts
    }
}
