//! What is printed: hostile names, the schema, and a large graph.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fmt::Write as _;

use tidegate_graph::output::{GraphDocument, document, dot, json, mermaid, rows, schema};
use tidegate_graph::{BuildTerms, BuiltGraph, Recording, build};

/// A quote, a line end, HTML, Markdown, the syntax of Mermaid and Graphviz, and what acts on a terminal.
const HOSTILE: &str = "a\"]; n0 --> n1\n%% `x` <script>&lt;#35;\\N|{}\u{1b}[31m\u{9b}2J\u{202e}";

fn built(text: &str) -> BuiltGraph {
    build(&Recording::parse(text).unwrap(), BuildTerms::default()).unwrap()
}

/// A recording with one row of every measure for each edge.
fn recording(edges: &[(String, String)]) -> String {
    let answers: Vec<String> = [
        (r#""rate""#, "10"), (r#""points""#, "12"), (r#""last_seen""#, "1700000000"), (r#""requests""#, "36000"),
        (r#""failures""#, "36"), (r#"{"mean":"classic"}"#, "20"), (r#"{"p50":"classic"}"#, "15"),
        (r#"{"p95":"classic"}"#, "40"), (r#"{"p99":"classic"}"#, "80"),
    ]
    .iter()
    .map(|(measure, value)| {
        let mut rows = String::new();
        for (caller, upstream) in edges {
            for reporter in ["source", "destination"] {
                let comma = if rows.is_empty() { "" } else { "," };
                write!(rows, r#"{comma}{{"metric":{{"reporter":"{reporter}","source_workload_namespace":"shop","source_workload":{caller},"destination_workload_namespace":"shop","destination_workload":{upstream}}},"value":[1700000000,"{value}"]}}"#).unwrap();
            }
        }
        format!(r#"{{"family":"istio-workloads","measure":{measure},"promql":"x","body":{{"status":"success","data":{{"resultType":"vector","result":[{rows}]}}}}}}"#)
    })
    .collect();
    format!(
        r#"{{"format":"tidegate-graph-recording/1","observed":{{"end":1700000000,"window_seconds":3600,"step_seconds":300}},"caller_label":"job","answers":[{}]}}"#,
        answers.join(",")
    )
}

fn hostile() -> BuiltGraph {
    let name = serde_json::to_string(HOSTILE).unwrap();
    built(&recording(&[(name, "\"cart\"".to_owned())]))
}

#[test]
fn a_hostile_name_is_one_line_of_text_in_the_table() {
    let rows = rows(&hostile());

    assert_eq!(rows.len(), 1);
    assert!(
        !rows[0][0].contains(|c: char| c.is_control() || c == '\u{202e}'),
        "{:?}",
        rows[0][0]
    );
    assert!(
        rows[0][0].contains(r"\u{1b}[31m\u{9b}2J\u{202e}"),
        "{:?}",
        rows[0][0]
    );
}

#[test]
fn a_hostile_name_stays_in_its_label_in_dot() {
    let text = dot(&hostile());

    assert_eq!(text.lines().count(), 3 + 2 + 1 + 1, "{text}");
    let line = text.lines().find(|line| line.contains("script")).unwrap();
    assert!(
        line.contains(
            r#"label="shop/a\"]; n0 --> n1\\u{a}%% `x` <script>&amp;lt;#35;\\N|{}\\u{1b}[31m"#
        ),
        "{line}"
    );
}

#[test]
fn a_hostile_name_stays_in_its_label_in_mermaid() {
    let text = mermaid(&hostile());

    assert_eq!(text.lines().count(), 1 + 2 + 1, "{text}");
    let line = text.lines().find(|line| line.contains("script")).unwrap();
    let label = line.split('"').nth(1).unwrap();
    assert_eq!(line.matches('"').count(), 2, "{line}");
    assert!(
        !label.contains(['<', '>', '`', '[', '{', '|', '&', '%', '\\']),
        "{label}"
    );
    assert!(
        label.starts_with("shop/a#34;#93;#59; n0 --#62; n1"),
        "{label}"
    );
}

#[test]
fn a_hostile_name_keeps_its_meaning_in_json() {
    let text = json(&document(&hostile())).unwrap();

    assert!(
        !text.contains(|c: char| c != '\n' && c.is_control() || c == '\u{202e}'),
        "{text}"
    );
    let read: GraphDocument = serde_json::from_str(&text).unwrap();
    assert!(read.vertices.iter().any(|vertex| vertex.name == HOSTILE));
    assert_eq!(read.edges.len(), 1);
}

#[test]
fn the_committed_schema_is_the_one_of_the_code() {
    let committed = include_str!("../schema.json");

    assert_eq!(
        committed,
        format!("{:#}\n", schema()),
        "make docs writes it anew"
    );
}

#[test]
fn five_thousand_services_and_fifty_thousand_edges_become_a_graph() {
    let name = |number: usize| format!("\"service-{}\"", number % 5_000);
    let edges: Vec<_> = (0..50_000)
        .map(|edge| (name(edge), name(edge + 1 + edge / 5_000)))
        .collect();
    let text = recording(&edges);
    // For a measurement of the command: tidegate graph --from FILE.
    std::fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/large.json"), &text).unwrap();

    let built = built(&text);

    assert_eq!(built.graph.petgraph().node_count(), 5_000);
    assert_eq!(built.graph.petgraph().edge_count(), 50_000);
    assert_eq!(rows(&built).len(), 50_000);
}
