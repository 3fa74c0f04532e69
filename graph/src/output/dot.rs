//! The graph for Graphviz.
//!
//! Names are in quoted labels only. In them, a quote and a backslash are escaped by a backslash, and `&` begins an entity.
//! Source: <https://graphviz.org/doc/info/lang.html> and <https://graphviz.org/docs/attr-types/escString/>.

use std::fmt::Write as _;

use petgraph::visit::EdgeRef as _;

use super::escape::plain;
use super::table::{number, time};
use crate::build::BuiltGraph;
use crate::model::{EdgeTraffic, VertexKind};

/// The graph in the language of Graphviz.
#[must_use]
pub fn dot(built: &BuiltGraph) -> String {
    let mut out = String::from("digraph services {\n  rankdir=LR;\n  node [shape=box];\n");
    // Writing to a String does not fail.
    for (index, vertex) in built.graph.vertices() {
        let shape = match vertex.key.kind {
            VertexKind::Workload => "box",
            VertexKind::Service => "ellipse",
            VertexKind::Unknown => "diamond",
        };
        let facts = vertex.kubernetes.as_ref();
        let replicas = facts.and_then(|facts| facts.replicas);
        // `\\n` is a line end in a label.
        let replicas = replicas.map(|count| format!("\\n{count} replicas"));
        let label = quoted(&vertex.key.to_string()) + &replicas.unwrap_or_default();
        let _ = writeln!(
            out,
            "  n{} [label=\"{label}\", shape={shape}];",
            index.index()
        );
    }
    for edge in built.graph.petgraph().edge_references() {
        let traffic = edge.weight();
        let style = if traffic.too_few_samples {
            ", style=dashed"
        } else {
            ""
        };
        let (from, to) = (edge.source().index(), edge.target().index());
        let label = quoted(&label(traffic));
        let _ = writeln!(out, "  n{from} -> n{to} [label=\"{label}\"{style}];");
    }
    out.push_str("}\n");
    out
}

/// The label of an edge in charts.
pub(super) fn label(traffic: &EdgeTraffic) -> String {
    let parts = [
        traffic.rate.map(|rate| format!("{}/s", number(rate))),
        traffic.p99_seconds.map(|p99| format!("p99 {}", time(p99))),
        traffic
            .success
            .filter(|share| *share < 1.0)
            .map(|share| format!("success {share:.4}")),
    ];
    let known: Vec<String> = parts.into_iter().flatten().collect();
    known.join(", ")
}

fn quoted(text: &str) -> String {
    plain(text)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('&', "&amp;")
}
