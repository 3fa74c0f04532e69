//! From recordings to graphs: Istio with sidecars, Istio ambient, and what may be wrong with a recording.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use tidegate_graph::output::{EdgeEntry, GraphDocument, document};
use tidegate_graph::{
    BuildTerms, HistogramForm, QueryMeasure, Recording, TrafficReporter, WarningKind, build,
    planned,
};

const SIDECAR: &str = include_str!("recordings/istio-sidecar.json");
const AMBIENT: &str = include_str!("recordings/istio-ambient.json");

fn graph(text: &str) -> GraphDocument {
    document(&build(&Recording::parse(text).unwrap(), BuildTerms::default()).unwrap())
}

fn edge<'a>(graph: &'a GraphDocument, caller: &str, upstream: &str) -> &'a EdgeEntry {
    let of = |edge: &&EdgeEntry| edge.caller.ends_with(caller) && edge.upstream.ends_with(upstream);
    graph.edges.iter().find(of).unwrap()
}

fn warning(graph: &GraphDocument, kind: WarningKind) -> &str {
    let found = graph.warnings.iter().find(|warning| warning.kind == kind);
    found.map_or("", |warning| &warning.message)
}

#[test]
fn the_caller_s_sidecar_is_preferred_and_nothing_is_counted_twice() {
    let graph = graph(SIDECAR);

    let edge = &edge(&graph, "istio-ingressgateway", "productpage-v1").traffic;
    assert_eq!(edge.reporter, Some(TrafficReporter::Source));
    assert_eq!(edge.rate, Some(20.0));
    assert_eq!(edge.samples, Some(72_000.0));
    assert_eq!(edge.success, Some(0.999));
    assert_eq!(edge.p99_seconds, Some(0.18), "milliseconds became seconds");
    assert_eq!(edge.concurrency, Some(0.8), "20/s x 40 ms");
    assert!(!edge.too_few_samples && !edge.has_ended);
    assert_eq!(graph.edges.len(), 7);
}

#[test]
fn an_edge_without_failures_has_success_1() {
    assert_eq!(
        edge(&graph(SIDECAR), "productpage-v1", "reviews-v1")
            .traffic
            .success,
        Some(1.0)
    );
}

#[test]
fn few_samples_and_missing_quantiles_are_marked() {
    let graph = graph(SIDECAR);

    let edge = &edge(&graph, "productpage-v1", "details-v1").traffic;
    assert!(edge.too_few_samples, "36 < 100");
    assert_eq!((edge.p50_seconds, edge.success), (None, Some(0.0)));
    assert!(warning(&graph, WarningKind::NoLatency).contains("details-v1"));
}

#[test]
fn a_renamed_workload_leaves_an_edge_that_has_ended() {
    let graph = graph(SIDECAR);

    let edge = &edge(&graph, "productpage-v1", "details-v0").traffic;
    assert!(edge.has_ended);
    assert_eq!(edge.points, Some(5));
    assert!(warning(&graph, WarningKind::Ended).contains("bookinfo/details-v0"));
}

#[test]
fn unknown_ends_are_vertices_of_their_own() {
    let graph = graph(SIDECAR);

    assert_eq!(
        edge(&graph, "unknown caller", "details-v1").traffic.rate,
        Some(1.0)
    );
    assert!(warning(&graph, WarningKind::UnknownCaller).contains(" (1): "));
    assert!(warning(&graph, WarningKind::UnknownUpstream).contains("PassthroughCluster"));
    let failing = edge(&graph, "productpage-v1", "service:bookinfo/ratings");
    assert_eq!(
        failing.traffic.success,
        Some(0.0),
        "no endpoint: no workload, but a service"
    );
}

#[test]
fn workloads_know_their_services() {
    let graph = graph(SIDECAR);

    let reviews = graph
        .vertices
        .iter()
        .find(|vertex| vertex.name == "reviews-v1")
        .unwrap();
    assert_eq!(reviews.services, ["bookinfo/reviews"]);
}

#[test]
fn a_waypoint_reports_in_ambient_and_native_histograms_are_preferred() {
    let graph = graph(AMBIENT);

    let edge = &edge(&graph, "productpage-v1", "reviews-v1").traffic;
    assert_eq!(edge.reporter, Some(TrafficReporter::Waypoint));
    assert_eq!(edge.success, Some(0.99));
    assert_eq!(
        (edge.p95_seconds, edge.p99_seconds),
        (Some(0.045), Some(0.025))
    );
}

#[test]
fn reporters_that_disagree_are_reported() {
    let graph = graph(AMBIENT);

    let edge = &edge(&graph, "bookinfo-gateway-istio", "productpage-v1").traffic;
    assert_eq!(edge.reporter, Some(TrafficReporter::Source));
    let text = warning(&graph, WarningKind::ReportersDiffer);
    assert!(
        text.contains("source saw fewer requests than waypoint"),
        "{text}"
    );
}

#[test]
fn a_query_without_an_answer_is_a_gap_and_no_zero() {
    let mut recording = Recording::parse(SIDECAR).unwrap();
    for answer in &mut recording.answers {
        if answer.measure == QueryMeasure::Failures {
            answer.body = None;
            answer.error = Some("timeout".to_owned());
        }
    }

    let graph = document(&build(&recording, BuildTerms::default()).unwrap());

    assert_eq!(
        edge(&graph, "productpage-v1", "reviews-v1").traffic.success,
        None
    );
    let text = warning(&graph, WarningKind::QueryFailed);
    assert!(
        text.contains("failures is unknown: no answer: timeout"),
        "{text}"
    );
}

#[test]
fn partial_answers_are_used_and_their_warning_is_told_once() {
    let whole = r#""status": "success","#;
    let partial = r#""status": "success", "warnings": ["store 2 is \u001b down"],"#;
    let text = SIDECAR.replace(whole, partial);
    assert_ne!(text, SIDECAR);

    let graph = graph(&text);

    assert_eq!(graph.edges.len(), 7);
    let answers = Recording::parse(SIDECAR).unwrap().answers.len();
    let said: Vec<_> = graph
        .warnings
        .iter()
        .filter(|warning| warning.kind == WarningKind::Prometheus)
        .collect();
    assert_eq!((said.len(), said[0].count), (1, answers));
    let expected = format!(
        r#"queries whose answers have a warning, "store 2 is \u{{1b}} down" ({answers}): istio-workloads rate, istio-workloads points, istio-workloads last_seen, ..."#
    );
    assert_eq!(said[0].message, expected);
}

#[test]
fn a_histogram_without_bounds_gives_a_mean_and_no_quantiles() {
    let mut recording = Recording::parse(SIDECAR).unwrap();
    let is_quantile =
        |measure| !matches!(measure, QueryMeasure::Mean(_)) && form(measure).is_some();
    let none: Vec<String> = recording
        .answers
        .iter()
        .map(|answer| number_free(answer.body.unwrap().get()))
        .collect();
    for (answer, none) in recording.answers.iter_mut().zip(&none) {
        if is_quantile(answer.measure) {
            answer.body = Some(serde_json::from_str(none).unwrap());
        }
    }

    let graph = document(&build(&recording, BuildTerms::default()).unwrap());

    let edge = &edge(&graph, "istio-ingressgateway", "productpage-v1").traffic;
    assert_eq!((edge.p50_seconds, edge.p99_seconds), (None, None));
    assert_eq!(
        (edge.mean_seconds, edge.concurrency),
        (Some(0.04), Some(0.8))
    );
    let text = warning(&graph, WarningKind::NoLatency);
    assert!(
        text.contains("with a mean latency but no quantiles") && text.contains("productpage-v1"),
        "{text}"
    );
}

/// The form of histogram that a latency is of.
const fn form(measure: QueryMeasure) -> Option<HistogramForm> {
    match measure {
        QueryMeasure::Mean(form)
        | QueryMeasure::P50(form)
        | QueryMeasure::P95(form)
        | QueryMeasure::P99(form) => Some(form),
        _ => None,
    }
}

/// The answer, in which no value is a number.
fn number_free(body: &str) -> String {
    let mut answer: serde_json::Value = serde_json::from_str(body).unwrap();
    let rows = answer.pointer_mut("/data/result").unwrap();
    for row in rows.as_array_mut().unwrap() {
        *row.pointer_mut("/value/1").unwrap() = "NaN".into();
    }
    answer.to_string()
}

#[test]
fn a_damaged_answer_says_where() {
    for (from, to, expected) in [
        (
            "\"72000.0\"",
            "\"many\"",
            "answers[3].body.data.result[0].value: found \"many\", expected a number",
        ),
        (
            "\"family\": \"istio-workloads\"",
            "\"family\": \"x\"",
            "answers[0].family: found \"x\", expected istio-workloads, istio-services",
        ),
        (
            "\"caller_label\": \"job\"",
            "\"caller_label\": \"a b\"",
            "caller_label: caller label: found \"a b\", expected the name of a label",
        ),
    ] {
        let text = SIDECAR.replacen(from, to, 1);
        assert_ne!(text, SIDECAR, "{from}");
        let error = build(&Recording::parse(&text).unwrap(), BuildTerms::default()).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn every_placeholder_is_replaced() {
    let observed = Recording::parse(SIDECAR).unwrap().observed;

    let plan = planned(observed, "node").unwrap();

    assert_eq!(plan.len(), 14 + 13 + 13 + 6);
    for query in &plan {
        assert!(!query.promql.contains('$'), "{}", query.promql);
        let (open, close) = (
            query.promql.matches('(').count(),
            query.promql.matches(')').count(),
        );
        assert_eq!(open, close, "{}", query.promql);
    }
    assert!(
        plan.iter()
            .any(|query| query.promql.contains("by (node, envoy_cluster_name)"))
    );
}

#[test]
fn a_caller_label_cannot_change_a_query() {
    let observed = Recording::parse(SIDECAR).unwrap().observed;
    for label in ["", "1a", "a b", "job) or vector(1", "jöb"] {
        assert!(planned(observed, label).is_err(), "{label}");
    }
}
