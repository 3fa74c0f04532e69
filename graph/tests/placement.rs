//! Placements of small clusters, refusals, and a large one.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_graph::output::{dot, service_rows};
use tidegate_graph::placement::{EdgeCost, PlacementError, PlacementReport, PlacementTerms, place};
use tidegate_graph::{BuildTerms, BuiltGraph, ClusterNode, ComputeResources, Recording, build};

/// A call with its rate and its 99th percentile in milliseconds.
type Call<'a> = (&'a str, &'a str, f64, f64);

fn answer(measure: &Value, calls: &[Call<'_>], value: impl Fn(&Call<'_>) -> f64) -> Value {
    let rows: Vec<Value> = calls
        .iter()
        .map(|call| {
            json!({"metric": {"reporter": "source", "source_workload_namespace": "shop", "source_workload": call.0,
                "destination_workload_namespace": "shop", "destination_workload": call.1},
                "value": [1_700_000_000, value(call).to_string()]})
        })
        .collect();
    json!({"family": "istio-workloads", "measure": measure, "promql": "x",
        "body": {"status": "success", "data": {"resultType": "vector", "result": rows}}})
}

/// A workload of pods that request `cpu` cores and 1 MiB each.
fn workload(name: &str, cpu: f64, pods: &[(&str, u32)]) -> Value {
    let nodes: BTreeMap<&str, u32> = pods.iter().copied().collect();
    json!({"namespace": "shop", "name": name, "kind": "Deployment", "selector": {"app": name}, "labels": {},
        "facts": {"replicas": nodes.values().sum::<u32>(), "endpoints": null, "nodes": nodes,
            "requests": {"cpu_cores": cpu, "memory_bytes": 1 << 20}, "limits": {"cpu_cores": null, "memory_bytes": null}}})
}

fn node(name: &str, cpu: f64) -> ClusterNode {
    ClusterNode {
        name: name.to_owned(),
        allocatable: ComputeResources {
            cpu_cores: Some(cpu),
            memory_bytes: Some(1 << 30),
        },
        is_schedulable: true,
    }
}

fn recording(calls: &[Call<'_>], workloads: &[Value], nodes: &[ClusterNode]) -> String {
    let answers = [
        answer(&json!("rate"), calls, |call| call.2),
        answer(&json!("requests"), calls, |call| call.2 * 3_600.0),
        answer(&json!({"p99": "classic"}), calls, |call| call.3),
    ];
    json!({"format": "tidegate-graph-recording/1", "caller_label": "job", "answers": answers,
        "observed": {"end": 1_700_000_000, "window_seconds": 3_600, "step_seconds": 300},
        "kubernetes": {"workloads": workloads, "services": [], "nodes": nodes, "unread": []}})
    .to_string()
}

fn built(calls: &[Call<'_>], workloads: &[Value], nodes: &[ClusterNode]) -> BuiltGraph {
    let text = recording(calls, workloads, nodes);
    build(&Recording::parse(&text).unwrap(), BuildTerms::default()).unwrap()
}

/// Two pairs with much traffic, each pair on two nodes.
fn pairs() -> BuiltGraph {
    built(
        &[
            ("web", "cart", 100.0, 5.0),
            ("mail", "ads", 80.0, 5.0),
            ("web", "mail", 10.0, 900.0),
        ],
        &[
            workload("web", 0.5, &[("a", 1), ("b", 1)]),
            workload("cart", 0.5, &[("a", 1), ("b", 1)]),
            workload("mail", 0.5, &[("a", 1), ("b", 1)]),
            workload("ads", 0.5, &[("a", 1), ("b", 1)]),
        ],
        &[node("a", 2.0), node("b", 2.0)],
    )
}

fn node_of(report: &PlacementReport, workload: &str) -> String {
    let of = |found: &&tidegate_graph::placement::NodeUse| found.workloads.contains_key(workload);
    report.nodes.iter().find(of).unwrap().node.clone()
}

#[test]
fn what_talks_much_shares_a_node() {
    let report = place(&pairs(), &PlacementTerms::default()).unwrap();

    assert_eq!(node_of(&report, "shop/web"), node_of(&report, "shop/cart"));
    assert_eq!(node_of(&report, "shop/mail"), node_of(&report, "shop/ads"));
    assert_eq!(Some(report.rate.total), Some(190.0));
    assert_eq!(report.rate.across_before, Some(95.0), "half of each");
    assert_eq!(Some(report.rate.across_after), Some(10.0));
    let moved: u32 = report.moves.iter().map(|found| found.moved).sum();
    assert_eq!(moved, 4, "one pod of each");
    let web = report
        .patches
        .iter()
        .find(|patch| patch["metadata"]["name"] == "web")
        .unwrap();
    let term = &web["spec"]["template"]["spec"]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(term[0]["weight"], 100);
    assert_eq!(
        term[0]["podAffinityTerm"]["labelSelector"]["matchLabels"]["app"],
        "cart"
    );
    assert_eq!(term.as_array().unwrap().len(), 1, "mail is elsewhere");
}

#[test]
fn latency_as_the_cost_keeps_the_slow_call_on_a_node() {
    let terms = PlacementTerms {
        cost: EdgeCost::Latency,
        ..PlacementTerms::default()
    };

    let report = place(&pairs(), &terms).unwrap();

    assert_eq!(node_of(&report, "shop/web"), node_of(&report, "shop/mail"));
}

#[test]
fn pods_that_are_not_placed_keep_their_room() {
    let mut found = pairs();
    let cluster = found.kubernetes.as_mut().unwrap();
    let mut other = cluster.workloads[0].clone();
    other.name = "elsewhere".to_owned();
    other.facts.nodes = [("a".to_owned(), 2)].into();
    cluster.workloads.push(other);

    let error = place(&found, &PlacementTerms::default()).unwrap_err();

    assert_eq!(
        error.to_string(),
        "the workloads request 4.00 cores and 8Mi, but the nodes have 3.00 cores and 2046Mi free: expected at least as much"
    );
}

#[test]
fn a_workload_that_is_too_large_for_a_node_is_divided() {
    let found = built(
        &[("web", "cart", 100.0, 5.0)],
        &[
            workload("web", 1.0, &[("a", 3)]),
            workload("cart", 0.5, &[("b", 1)]),
        ],
        &[node("a", 2.0), node("b", 2.0)],
    );

    let report = place(&found, &PlacementTerms::default()).unwrap();

    let pods: u32 = report
        .nodes
        .iter()
        .map(|node| node.workloads["shop/web"])
        .sum();
    assert_eq!(pods, 3);
    assert!(report.notes[0].contains("at most 2 of its 3 replicas"));
    for node in &report.nodes {
        assert!(node.used.cpu_cores.unwrap() <= 2.0, "{node:?}");
    }
}

#[test]
fn what_cannot_be_placed_is_refused_with_the_reason() {
    let terms = PlacementTerms::default();
    let call = [("web", "cart", 1.0, 5.0)];
    let workloads = [
        workload("web", 3.0, &[("a", 1)]),
        workload("cart", 1.0, &[("a", 1)]),
    ];
    let of = |nodes: &[ClusterNode]| place(&built(&call, &workloads, nodes), &terms).unwrap_err();

    assert_eq!(of(&[]), PlacementError::NoNodes);
    assert!(matches!(
        of(&[node("a", 2.0), node("b", 2.0)]),
        PlacementError::PodTooLarge { workload, .. } if workload == "shop/web"
    ));
    let mut unknown = node("a", 9.0);
    unknown.allocatable.memory_bytes = None;
    assert_eq!(
        of(&[unknown]).to_string(),
        "node a: found no memory, expected how much its pods may request"
    );
    let mut alone = pairs();
    alone.kubernetes = None;
    assert_eq!(place(&alone, &terms), Err(PlacementError::NoCluster));
    let fragmented = built(
        &[("web", "cart", 1.0, 5.0), ("web", "ads", 1.0, 5.0)],
        &[
            workload("web", 1.0, &[("a", 1)]),
            workload("cart", 1.0, &[("a", 1)]),
            workload("ads", 1.0, &[("a", 1)]),
        ],
        &[node("a", 1.5), node("b", 1.5)],
    );
    assert_eq!(place(&fragmented, &terms), Err(PlacementError::Fragmented));
}

#[test]
fn without_a_better_placement_nothing_moves() {
    let found = built(
        &[("web", "cart", 1.0, 5.0)],
        &[
            workload("web", 1.0, &[("a", 2)]),
            workload("cart", 1.0, &[("a", 1)]),
        ],
        &[node("a", 4.0), node("b", 4.0)],
    );

    let report = place(&found, &PlacementTerms::default()).unwrap();

    assert!(!report.is_better);
    assert_eq!((report.moves.len(), report.patches.len()), (0, 0));
}

#[test]
fn five_thousand_services_are_placed() {
    let names: Vec<String> = (0..5_000).map(|number| format!("s{number}")).collect();
    let nodes: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
    // A service calls ten others, most of them of its own fifty.
    let calls: Vec<Call<'_>> = (0..50_000)
        .map(|edge| {
            let (caller, step) = (edge / 10, edge % 10);
            let near = caller / 50 * 50 + (caller * 7 + step * step * 3 + 1) % 50;
            let far = (caller * 31 + step * 977) % 5_000;
            let upstream = if step < 7 { near } else { far };
            let rate = if step < 7 { 20.0 } else { 1.0 };
            (names[caller].as_str(), names[upstream].as_str(), rate, 10.0)
        })
        .filter(|call| call.0 != call.1)
        .collect();
    let workloads: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let place = [number, number + 37].map(|n| nodes[n % 100].as_str());
            workload(name, 0.1, &[(place[0], 1), (place[1], 1)])
        })
        .collect();
    let capacity: Vec<ClusterNode> = nodes.iter().map(|name| node(name, 12.0)).collect();
    let text = recording(&calls, &workloads, &capacity);
    // For a measurement of the command: tidegate graph --from FILE --placement.
    let path = concat!(env!("CARGO_TARGET_TMPDIR"), "/large-cluster.json");
    std::fs::write(path, &text).unwrap();

    let found = build(&Recording::parse(&text).unwrap(), BuildTerms::default()).unwrap();
    let report = place(&found, &PlacementTerms::default()).unwrap();

    let before = report.rate.across_before.unwrap();
    assert!(report.rate.across_after < before * 0.3, "{:?}", report.rate);
    for node in &report.nodes {
        assert!(node.used.cpu_cores.unwrap() <= 12.0 + 1e-6, "{node:?}");
    }
}

#[test]
fn hostile_names_stay_text_in_the_table_of_services() {
    let hostile = "a\u{1b}[31m\n\u{202e}b";
    let found = built(
        &[("web", "cart", 1.0, 5.0)],
        &[workload("web", 1.0, &[(hostile, 1)])],
        &[node(hostile, 4.0)],
    );

    let rows = service_rows(&found);

    assert_eq!(rows[0][7], r"a\u{1b}[31m\u{a}\u{202e}b (1)");
    assert!(dot(&found).contains(r"web\n1 replicas"), "{}", dot(&found));
}
