//! The graph as rows of a table, the edge with the most requests first.

use petgraph::visit::EdgeRef as _;

use super::escape::plain;
use crate::build::BuiltGraph;
use crate::model::EdgeTraffic;

/// The text for an unknown value.
const NOT_KNOWN: &str = "-";

/// The headings of the columns.
pub const HEADINGS: [&str; 10] = [
    "CALLER",
    "UPSTREAM",
    "RATE/S",
    "SUCCESS",
    "P50",
    "P95",
    "P99",
    "IN FLIGHT",
    "SAMPLES",
    "NOTE",
];

/// One row for each edge; safe to print.
#[must_use]
pub fn rows(built: &BuiltGraph) -> Vec<[String; 10]> {
    let graph = built.graph.petgraph();
    let mut edges: Vec<_> = graph.edge_references().collect();
    let rate = |traffic: &EdgeTraffic| traffic.rate.unwrap_or_default();
    // Edges were added by name, and the sort is stable.
    edges.sort_by(|a, b| rate(b.weight()).total_cmp(&rate(a.weight())));
    edges
        .into_iter()
        .filter_map(|edge| {
            let traffic = edge.weight();
            Some([
                plain(&graph.node_weight(edge.source())?.key.to_string()),
                plain(&graph.node_weight(edge.target())?.key.to_string()),
                shown(traffic.rate, number),
                shown(traffic.success, |share| format!("{share:.4}")),
                shown(traffic.p50_seconds, time),
                shown(traffic.p95_seconds, time),
                shown(traffic.p99_seconds, time),
                shown(traffic.concurrency, number),
                shown(traffic.samples, |samples| format!("{samples:.0}")),
                notes(traffic, built.observed.points()),
            ])
        })
        .collect()
}

/// The headings of the table of services.
pub const SERVICE_HEADINGS: [&str; 8] = [
    "SERVICE",
    "REPLICAS",
    "READY",
    "CPU",
    "CPU LIMIT",
    "MEMORY",
    "MEMORY LIMIT",
    "NODES",
];

/// One row for each vertex that Kubernetes knows; safe to print.
#[must_use]
pub fn service_rows(built: &BuiltGraph) -> Vec<[String; 8]> {
    built
        .graph
        .vertices()
        .filter_map(|(_, vertex)| {
            let facts = vertex.kubernetes.as_ref()?;
            let nodes: Vec<String> = facts
                .nodes
                .iter()
                .map(|(node, pods)| format!("{} ({pods})", plain(node)))
                .collect();
            Some([
                plain(&vertex.key.to_string()),
                shown(facts.replicas, |replicas| replicas.to_string()),
                shown(facts.endpoints, |found| {
                    format!("{}/{}", found.ready, found.ready + found.not_ready)
                }),
                shown(facts.requests.cpu_cores, number),
                shown(facts.limits.cpu_cores, number),
                shown(facts.requests.memory_bytes, memory),
                shown(facts.limits.memory_bytes, memory),
                if nodes.is_empty() {
                    NOT_KNOWN.to_owned()
                } else {
                    nodes.join(", ")
                },
            ])
        })
        .collect()
}

/// Memory in MiB, or GiB from 10 GiB on.
#[must_use]
pub fn memory(bytes: u64) -> String {
    let mib = bytes.div_ceil(1 << 20);
    if mib >= 10 << 10 {
        format!("{}Gi", mib.div_ceil(1 << 10))
    } else {
        format!("{mib}Mi")
    }
}

/// A latency in the unit that suits it.
pub(super) fn time(seconds: f64) -> String {
    if seconds >= 1.0 {
        format!("{}s", number(seconds))
    } else {
        format!("{}ms", number(seconds * 1_000.0))
    }
}

/// Three figures, without trailing zeros.
pub(super) fn number(value: f64) -> String {
    match value {
        _ if value >= 100.0 => format!("{value:.0}"),
        _ if value >= 10.0 => format!("{value:.1}"),
        _ if value >= 0.01 || value <= 0.0 => format!("{value:.2}"),
        _ => format!("{value:.1e}"),
    }
}

fn shown<T>(value: Option<T>, write: impl Fn(T) -> String) -> String {
    value.map_or_else(|| NOT_KNOWN.to_owned(), write)
}

fn notes(traffic: &EdgeTraffic, points: u32) -> String {
    let mut notes = Vec::new();
    if traffic.too_few_samples {
        notes.push("few samples".to_owned());
    }
    if traffic.has_ended {
        notes.push("ended".to_owned());
    }
    if let Some(found) = traffic.points.filter(|found| *found < points) {
        notes.push(format!("{found}/{points} points"));
    }
    if let Some(cluster) = &traffic.cluster {
        notes.push(plain(cluster));
    }
    notes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        for (value, expected) in [
            (1234.5, "1234"),
            (12.34, "12.3"),
            (1.0, "1.00"),
            (0.0, "0.00"),
            (0.001, "1.0e-3"),
        ] {
            assert_eq!(number(value), expected);
        }
        assert_eq!(time(0.0123), "12.3ms");
        assert_eq!(time(2.5), "2.50s");
    }
}
