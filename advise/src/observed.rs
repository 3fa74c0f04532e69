//! Upstreams as a policy can name them, with the traffic of each of their callers.
//!
//! A rule of a policy names a service or a cluster of Envoy, but Istio's metrics name workloads. So all workloads that the same
//! service leads to are one upstream.
//!
//! Edges: a workload behind several services is part of each of these upstreams, because its metrics do not separate them.

use std::collections::BTreeMap;
use std::fmt;

use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef as _;
use schemars::JsonSchema;
use serde::Serialize;
use tidegate_graph::{EdgeTraffic, ServiceGraph, ServiceVertex, VertexKey, VertexKind};

/// Longest pattern that a configuration accepts, in bytes.
const MAX_PATTERN: usize = 512;

/// What a rule of a configuration names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RuleTarget {
    /// The host of a service, such as `reviews.shop`.
    Service(String),
    /// A cluster of Envoy.
    Cluster(String),
}

/// Why no rule can name an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NoRule {
    /// The metrics do not say which service leads to the workload.
    ServiceUnknown,
    /// The name cannot be used in a rule.
    Name(String),
}

/// The traffic of one caller.
#[derive(Clone, Copy, Debug)]
pub struct CallerTraffic<'a> {
    /// The caller.
    pub caller: &'a VertexKey,
    /// The vertex that is called.
    pub callee: &'a VertexKey,
    /// What was observed.
    pub traffic: &'a EdgeTraffic,
}

/// An upstream and its callers.
#[derive(Clone, Debug)]
pub struct ObservedUpstream<'a> {
    /// Its name, as `namespace/name`. It may contain anything.
    pub name: String,
    /// What a rule names.
    pub target: Result<RuleTarget, NoRule>,
    /// Whether the metrics name it at all.
    pub is_known: bool,
    /// The calls, by caller and callee; at least one.
    pub calls: Vec<CallerTraffic<'a>>,
}

/// All upstreams of a graph that are called, by name.
#[must_use]
pub fn observed_upstreams(graph: &ServiceGraph) -> Vec<ObservedUpstream<'_>> {
    let petgraph = graph.petgraph();
    let mut found: BTreeMap<VertexKey, ObservedUpstream<'_>> = BTreeMap::new();
    for edge in petgraph.edge_references() {
        let ends = petgraph
            .node_weight(edge.source())
            .zip(petgraph.node_weight(edge.target()));
        let Some((caller, callee)) = ends else {
            continue;
        };
        for key in names(callee) {
            let upstream = found
                .entry(key.clone())
                .or_insert_with(|| ObservedUpstream {
                    name: key.to_string(),
                    target: target(&key, edge.weight()),
                    is_known: key.kind != VertexKind::Unknown,
                    calls: Vec::new(),
                });
            upstream.calls.push(CallerTraffic {
                caller: &caller.key,
                callee: &callee.key,
                traffic: edge.weight(),
            });
        }
    }
    let mut upstreams: Vec<_> = found.into_values().collect();
    for upstream in &mut upstreams {
        let by_name = |call: &CallerTraffic<'_>| {
            (
                call.caller.clone(),
                call.callee.clone(),
                call.traffic.cluster.clone(),
            )
        };
        upstream.calls.sort_by_cached_key(by_name);
    }
    upstreams
}

/// The name of a vertex, as `namespace/name`. It may contain anything.
pub(crate) fn vertex_name(graph: &ServiceGraph, index: NodeIndex) -> String {
    graph
        .petgraph()
        .node_weight(index)
        .map(|vertex| vertex.key.to_string())
        .unwrap_or_default()
}

/// The names of a vertex in rules: each service that leads to it.
pub(crate) fn rule_targets(
    vertex: &ServiceVertex,
    traffic: &EdgeTraffic,
) -> Vec<Result<RuleTarget, NoRule>> {
    names(vertex)
        .iter()
        .map(|key| target(key, traffic))
        .collect()
}

/// The services that lead to a vertex; itself, if none is known.
fn names(vertex: &ServiceVertex) -> Vec<VertexKey> {
    if vertex.services.is_empty() {
        vec![vertex.key.clone()]
    } else {
        vertex.services.iter().cloned().collect()
    }
}

fn target(key: &VertexKey, traffic: &EdgeTraffic) -> Result<RuleTarget, NoRule> {
    if key.kind != VertexKind::Service {
        return Err(NoRule::ServiceUnknown);
    }
    // Istio names a host outside the mesh by its whole host.
    let host = if key.name.contains('.') {
        Some(key.name.clone())
    } else if key.namespace.is_empty() {
        None
    } else {
        Some(format!("{}.{}", key.name, key.namespace))
    };
    match (host, &traffic.cluster) {
        (Some(host), _) if is_host(&host) => Ok(RuleTarget::Service(host)),
        // Outside Kubernetes the host is the cluster's name.
        (None, Some(cluster)) if is_name(cluster) => Ok(RuleTarget::Cluster(cluster.clone())),
        (host, cluster) => Err(NoRule::Name(
            host.or_else(|| cluster.clone())
                .unwrap_or_else(|| key.name.clone()),
        )),
    }
}

/// Whether a rule can name the host; a star would stand for other hosts as well.
fn is_host(text: &str) -> bool {
    let is_allowed = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
    (1..=MAX_PATTERN).contains(&text.len()) && text.bytes().all(is_allowed)
}

fn is_name(text: &str) -> bool {
    (1..=MAX_PATTERN).contains(&text.len())
        && !text.contains('*')
        && !text.chars().any(char::is_control)
}

impl RuleTarget {
    /// The key of `match` in a configuration, and its value.
    #[must_use]
    pub fn condition(&self) -> (&'static str, &str) {
        match self {
            Self::Service(host) => ("service", host),
            Self::Cluster(cluster) => ("cluster", cluster),
        }
    }
}

impl fmt::Display for NoRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServiceUnknown => f.write_str(
                "the metrics do not say which service leads to it, and a rule names services",
            ),
            Self::Name(name) => write!(
                f,
                "found the name {name:?}, expected one that can stand in a rule: without stars, and for a service in lower case"
            ),
        }
    }
}
