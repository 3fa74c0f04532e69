//! The graph as JSON, and the schema of that document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::escape::plain_json;
use crate::build::BuiltGraph;
use crate::model::{
    ClusterNode, EdgeTraffic, KubernetesFacts, MetricsSource, VertexKey, VertexKind,
};
use crate::warning::GraphWarning;

/// The version of the document. A reader must not use one that it does not know.
const VERSION: u32 = 1;

/// The service graph from observed traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GraphDocument {
    /// The version of this document: 1.
    pub version: u32,
    /// End of the window, in seconds since 1970.
    pub end: u64,
    /// Length of the window, in seconds.
    pub window_seconds: u32,
    /// Distance of the points in the window, in seconds.
    pub step_seconds: u32,
    /// How many points the window has.
    pub points: u32,
    /// Edges with fewer requests in the window are marked.
    pub min_samples: u32,
    /// Workloads and services, by name.
    pub vertices: Vec<VertexEntry>,
    /// Who calls whom, by name.
    pub edges: Vec<EdgeEntry>,
    /// The nodes of the cluster; absent if Kubernetes was not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<ClusterNode>>,
    /// What the graph does not show, or shows with doubt.
    pub warnings: Vec<GraphWarning>,
}

/// A vertex.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VertexEntry {
    /// What edges call it: `kind:namespace/name`. In each part, `%`, `/` and `:` are written as in a URL.
    pub id: String,
    /// The namespace; empty where the metrics name none.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// What it stands for.
    pub kind: VertexKind,
    /// The metrics that name it.
    pub sources: Vec<MetricsSource>,
    /// The services that lead to a workload, as `namespace/name`.
    pub services: Vec<String>,
    /// What Kubernetes knows about it; absent in a graph from metrics alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesFacts>,
}

/// An edge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EdgeEntry {
    /// The id of the vertex that calls.
    pub caller: String,
    /// The id of the vertex that is called.
    pub upstream: String,
    /// What was observed.
    #[serde(flatten)]
    pub traffic: EdgeTraffic,
}

/// The document of a graph.
#[must_use]
pub fn document(built: &BuiltGraph) -> GraphDocument {
    let graph = built.graph.petgraph();
    let vertices = built.graph.vertices().map(|(_, vertex)| VertexEntry {
        id: id(&vertex.key),
        namespace: vertex.key.namespace.clone(),
        name: vertex.key.name.clone(),
        kind: vertex.key.kind,
        sources: vertex.sources.iter().copied().collect(),
        services: vertex.services.iter().map(ToString::to_string).collect(),
        kubernetes: vertex.kubernetes.clone(),
    });
    let mut edges: Vec<EdgeEntry> = graph
        .edge_indices()
        .filter_map(|edge| {
            let (caller, upstream) = graph.edge_endpoints(edge)?;
            Some(EdgeEntry {
                caller: id(&graph.node_weight(caller)?.key),
                upstream: id(&graph.node_weight(upstream)?.key),
                traffic: graph.edge_weight(edge)?.clone(),
            })
        })
        .collect();
    edges.sort_by(|a, b| {
        (&a.caller, &a.upstream, &a.traffic.cluster).cmp(&(
            &b.caller,
            &b.upstream,
            &b.traffic.cluster,
        ))
    });
    GraphDocument {
        version: VERSION,
        end: built.observed.end,
        window_seconds: built.observed.window_seconds,
        step_seconds: built.observed.step_seconds,
        points: built.observed.points(),
        min_samples: built.terms.min_samples,
        vertices: vertices.collect(),
        edges,
        nodes: built.kubernetes.as_ref().map(|found| found.nodes.clone()),
        warnings: built.warnings.clone(),
    }
}

/// The document as text. Characters that act on a terminal are escaped, which does not change their meaning.
///
/// # Errors
///
/// None that is known: the document has no keys but names.
pub fn json(document: &GraphDocument) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    Ok(plain_json(&text))
}

/// The JSON schema of the document.
#[must_use]
pub fn schema() -> Value {
    schemars::schema_for!(GraphDocument).to_value()
}

fn id(key: &VertexKey) -> String {
    let part = |text: &str| {
        text.replace('%', "%25")
            .replace('/', "%2F")
            .replace(':', "%3A")
    };
    format!("{}:{}/{}", key.kind, part(&key.namespace), part(&key.name))
}
