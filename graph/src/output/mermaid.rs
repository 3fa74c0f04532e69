//! The graph as a Mermaid flowchart.
//!
//! Mermaid has no escape characters, but entities such as `#34;` for a quote. Every character of a name that is neither a letter
//! nor a digit nor one of a few others is written as one, so that no name can end its label, begin Markdown or contain HTML.
//! Source: <https://mermaid.js.org/syntax/flowchart.html>, "Entity codes to escape characters".

use std::fmt::Write as _;

use petgraph::visit::EdgeRef as _;

use super::dot::label;
use super::escape::plain;
use crate::build::BuiltGraph;
use crate::model::VertexKind;

/// Most edges that Mermaid draws unless `maxEdges` says otherwise.
pub const MAX_MERMAID_EDGES: usize = 500;

/// The graph as a flowchart.
#[must_use]
pub fn mermaid(built: &BuiltGraph) -> String {
    let mut out = String::from("graph LR\n");
    // Writing to a String does not fail.
    for (index, vertex) in built.graph.vertices() {
        let (open, close) = match vertex.key.kind {
            VertexKind::Workload => ("[", "]"),
            VertexKind::Service => ("(", ")"),
            VertexKind::Unknown => ("{", "}"),
        };
        let label = encoded(&vertex.key.to_string());
        let _ = writeln!(out, "    n{}{open}\"{label}\"{close}", index.index());
    }
    for edge in built.graph.petgraph().edge_references() {
        let traffic = edge.weight();
        let arrow = if traffic.too_few_samples {
            "-.->"
        } else {
            "-->"
        };
        let label = encoded(&label(traffic));
        let label = if label.is_empty() {
            String::new()
        } else {
            format!("|\"{label}\"|")
        };
        let (from, to) = (edge.source().index(), edge.target().index());
        let _ = writeln!(out, "    n{from} {arrow}{label} n{to}");
    }
    out
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text).chars() {
        // A dash, a slash, a dot, a comma and a space mean nothing between quotes.
        if c.is_alphanumeric() || matches!(c, '-' | '/' | '.' | ',' | ' ' | '…') {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}
