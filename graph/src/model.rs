//! The service graph: workloads and services as vertices, calls as edges.
//!
//! Parallel edges are possible: a caller may reach the same service through several of Envoy's clusters, and their latencies
//! cannot be added.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use petgraph::graph::{DiGraph, NodeIndex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a vertex stands for.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum VertexKind {
    /// A workload, such as a deployment.
    Workload,
    /// A service, a host outside the mesh, a cluster of Envoy, or a proxy that the caller label names.
    Service,
    /// A vertex that the metrics do not name.
    Unknown,
}

impl fmt::Display for VertexKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Workload => "workload",
            Self::Service => "service",
            Self::Unknown => "unknown",
        })
    }
}

/// Where metrics come from. The first one is preferred where several report the same edge.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum MetricsSource {
    /// Istio's standard metrics.
    Istio,
    /// Envoy's statistics of its clusters.
    Envoy,
    /// The metrics of Tidegate's filter.
    Tidegate,
}

impl MetricsSource {
    /// All sources, the preferred one first.
    pub const ALL: [Self; 3] = [Self::Istio, Self::Envoy, Self::Tidegate];
}

impl fmt::Display for MetricsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Istio => "istio",
            Self::Envoy => "envoy",
            Self::Tidegate => "tidegate",
        })
    }
}

/// Which proxy of an edge reported it. The first one is preferred.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrafficReporter {
    /// The caller's: it sees retries, timeouts, and the time on the way.
    Source,
    /// A waypoint between them.
    Waypoint,
    /// The upstream's.
    Destination,
    /// Another value of the label `reporter`.
    Other(String),
}

impl TrafficReporter {
    /// The reporter by the value of Istio's label `reporter`.
    #[must_use]
    pub fn from_label(value: &str) -> Self {
        match value {
            "source" => Self::Source,
            "waypoint" => Self::Waypoint,
            "destination" => Self::Destination,
            other => Self::Other(other.to_owned()),
        }
    }

    /// The value of the label.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Source => "source",
            Self::Waypoint => "waypoint",
            Self::Destination => "destination",
            Self::Other(other) => other,
        }
    }
}

/// The name of a vertex. No two vertices of a graph have the same key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VertexKey {
    /// The namespace; empty where the metrics name none.
    pub namespace: String,
    /// The name in the namespace.
    pub name: String,
    /// What the vertex stands for.
    pub kind: VertexKind,
}

impl fmt::Display for VertexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// CPU and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComputeResources {
    /// CPU, in cores.
    pub cpu_cores: Option<f64>,
    /// Memory, in bytes.
    pub memory_bytes: Option<u64>,
}

/// Endpoints of a service or a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointCounts {
    /// Endpoints that get requests.
    pub ready: u32,
    /// Endpoints that get none.
    pub not_ready: u32,
}

impl EndpointCounts {
    /// Counts one.
    pub const fn count(&mut self, is_ready: bool) {
        if is_ready {
            self.ready += 1;
        } else {
            self.not_ready += 1;
        }
    }
}

/// What Kubernetes knows about a workload or a service. Prometheus does not know it, so a graph from metrics alone does
/// not have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KubernetesFacts {
    /// Pods that should run.
    pub replicas: Option<u32>,
    /// Endpoints of the services that lead to it.
    pub endpoints: Option<EndpointCounts>,
    /// What each pod requests.
    pub requests: ComputeResources,
    /// What each pod may use at most.
    pub limits: ComputeResources,
    /// Pods on each node.
    pub nodes: BTreeMap<String, u32>,
}

/// A node of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterNode {
    /// Its name.
    pub name: String,
    /// What its pods may request.
    pub allocatable: ComputeResources,
    /// Whether it takes new pods.
    pub is_schedulable: bool,
}

/// A vertex.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceVertex {
    /// Its name.
    pub key: VertexKey,
    /// The metrics that name it.
    pub sources: BTreeSet<MetricsSource>,
    /// The services that lead to the workload.
    pub services: BTreeSet<VertexKey>,
    /// What Kubernetes knows about it; `None` if nothing.
    pub kubernetes: Option<KubernetesFacts>,
}

/// The traffic of an edge. An unknown value is `None`, never 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EdgeTraffic {
    /// The metrics that report it.
    pub source: MetricsSource,
    /// Which proxy reports it; only Istio says so.
    pub reporter: Option<TrafficReporter>,
    /// Envoy's cluster, where the metrics name one.
    pub cluster: Option<String>,
    /// Moving average of requests per second, over the points of the window that have data.
    pub rate: Option<f64>,
    /// Share of the requests in the window that did not fail, 0 to 1.
    pub success: Option<f64>,
    /// Mean latency in the window, in seconds.
    pub mean_seconds: Option<f64>,
    /// Median latency in the window, in seconds.
    pub p50_seconds: Option<f64>,
    /// 95th percentile of the latency in the window, in seconds.
    pub p95_seconds: Option<f64>,
    /// 99th percentile of the latency in the window, in seconds.
    pub p99_seconds: Option<f64>,
    /// Requests in flight: as counted, or by Little's law, rate x mean latency.
    pub concurrency: Option<f64>,
    /// Requests in the window: each is one sample of latency and success.
    pub samples: Option<f64>,
    /// Whether there are fewer samples than the threshold, or their number is not known.
    pub too_few_samples: bool,
    /// Points of the window that have data.
    pub points: Option<u32>,
    /// Whether the metrics ended before the end of the window.
    pub has_ended: bool,
}

/// Who calls whom.
#[derive(Clone, Debug, Default)]
pub struct ServiceGraph {
    graph: DiGraph<ServiceVertex, EdgeTraffic>,
    index: BTreeMap<VertexKey, NodeIndex>,
}

impl ServiceGraph {
    /// The vertex with that key; creates it if there is none. Records that `source` names it.
    pub fn vertex(&mut self, key: &VertexKey, source: MetricsSource) -> NodeIndex {
        let found = self.index.get(key).copied();
        let index = found.unwrap_or_else(|| {
            let index = self.graph.add_node(ServiceVertex {
                key: key.clone(),
                sources: BTreeSet::new(),
                services: BTreeSet::new(),
                kubernetes: None,
            });
            self.index.insert(key.clone(), index);
            index
        });
        if let Some(vertex) = self.graph.node_weight_mut(index) {
            vertex.sources.insert(source);
        }
        index
    }

    /// Adds an edge. Both vertices must be of this graph.
    pub fn connect(&mut self, caller: NodeIndex, upstream: NodeIndex, traffic: EdgeTraffic) {
        self.graph.add_edge(caller, upstream, traffic);
    }

    /// Records that `service` leads to the workload `key`. Does nothing if the workload is not in the graph.
    pub fn add_service(&mut self, key: &VertexKey, service: VertexKey) {
        let index = self.index.get(key).copied();
        if let Some(vertex) = index.and_then(|index| self.graph.node_weight_mut(index)) {
            vertex.services.insert(service);
        }
    }

    /// Adds the figures in `facts` to each vertex.
    pub(crate) fn describe(
        &mut self,
        mut facts: impl FnMut(&VertexKey) -> Option<KubernetesFacts>,
    ) {
        for vertex in self.graph.node_weights_mut() {
            vertex.kubernetes = facts(&vertex.key);
        }
    }

    /// The vertex with that key.
    #[must_use]
    pub fn find(&self, key: &VertexKey) -> Option<NodeIndex> {
        self.index.get(key).copied()
    }

    /// All vertices, by key.
    pub fn vertices(&self) -> impl Iterator<Item = (NodeIndex, &ServiceVertex)> {
        self.index
            .values()
            .filter_map(|index| Some((*index, self.graph.node_weight(*index)?)))
    }

    /// The graph, for algorithms of petgraph.
    #[must_use]
    pub const fn petgraph(&self) -> &DiGraph<ServiceVertex, EdgeTraffic> {
        &self.graph
    }
}
