//! The service graph and its recommendations by REST, with a scripted Prometheus.

use serde_json::{Value, json};
use tidegate_testbed::client::{Call, CallReply};

use crate::prometheus::{PrometheusScript, ScriptedPrometheus};
use crate::recordings::{CALL, Call as Traffic, recording};
use crate::stage::{ServingStage, until};

pub(crate) const SHOP: &str = include_str!("../../../advise/tests/recordings/shop.json");

/// A policy for the upstream `shop/cart` that is too tight for its latency: the median is 18 ms in [`SHOP`].
pub(crate) const TIGHT: &str = "apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata: {name: tight}
spec:
  proxies: [{id: '*'}]
  slo: {latency: {quantile: 0.99, target: 1ms}}
";

pub(crate) async fn stage_with(prometheus: &ScriptedPrometheus) -> ServingStage {
    ServingStage::with(|settings| settings.traffic = Some(prometheus.settings())).await
}

async fn graph(stage: &ServingStage) -> CallReply {
    stage.call(Call::get("/v1/graph")).await
}

async fn served(stage: &ServingStage) {
    until("the graph is read", async || {
        graph(stage).await.status == 200
    })
    .await;
}

async fn metric(stage: &ServingStage, name: &str) -> String {
    let text = stage.call(Call::get("/metrics")).await.body;
    let text = String::from_utf8_lossy(&text).into_owned();
    let lead = format!("tidegate_control_{name} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&lead));
    line.unwrap().to_owned()
}

fn detail(reply: &CallReply) -> String {
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
    let body: Value = serde_json::from_slice(&reply.body).unwrap();
    body["detail"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_prometheus_the_flag_is_named() {
    let stage = ServingStage::start().await;
    for path in ["/v1/graph", "/v1/graph/busiest", "/v1/recommendations"] {
        let reply = stage.call(Call::get(path)).await;
        assert_eq!(reply.status, 404, "{path}");
        assert!(detail(&reply).contains("--prometheus"), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_graph_and_its_recommendations_are_those_of_the_commands() {
    let prometheus = ScriptedPrometheus::start(PrometheusScript::Recording(SHOP.to_owned()));
    let stage = stage_with(&prometheus).await;
    served(&stage).await;

    let reply = graph(&stage).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert!(reply.header("age").unwrap().parse::<u64>().unwrap() < 3_600);
    assert_eq!(reply.header("tidegate-read-failure"), None);
    let document: tidegate_graph::output::GraphDocument =
        serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(document.edges.len(), 6);
    assert_eq!(metric(&stage, "graph_edges").await, "6");
    assert_ne!(metric(&stage, "graph_read_timestamp_seconds").await, "0");

    let advice = stage.json("/v1/recommendations").await;
    let cart = |advice: &Value| advice["upstreams"][0].clone();
    assert_eq!(cart(&advice)["upstream"], "shop/cart");
    assert_eq!(cart(&advice)["slo"]["latency"]["target"], "210ms");
    assert_eq!(advice["unreachable"], json!([]));

    stage.write("tight.yaml", TIGHT);
    until("the policy is compared", async || {
        let advice = stage.json("/v1/recommendations").await;
        let in_force = cart(&advice)["inForce"][0].clone();
        advice["unreachable"] == json!(["tight, top level"])
            && in_force["verdicts"][0]["verdict"] == "outOfReach"
    })
    .await;
    let shown = stage.json("/v1/graph/busiest").await;
    assert_eq!(
        shown["overview"]["unreachable"],
        json!(["tight, top level"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_graph_remains_while_prometheus_fails() {
    let prometheus = ScriptedPrometheus::start(PrometheusScript::Page("<html>log in</html>"));
    let stage = stage_with(&prometheus).await;
    until("the failure is known", async || {
        let reply = graph(&stage).await;
        reply.status == 503 && detail(&reply).contains("<html>log in</html>")
    })
    .await;
    assert_ne!(
        metric(&stage, "graph_reads_total{result=\"failed\"}").await,
        "0"
    );

    prometheus.play(PrometheusScript::Recording(SHOP.to_owned()));
    served(&stage).await;
    until("the failure is over", async || {
        let reply = graph(&stage).await;
        reply.header("tidegate-read-failure").is_none()
    })
    .await;
    let before = graph(&stage).await.body;

    prometheus.play(PrometheusScript::Page("<html>out \u{202e}of order</html>"));
    until("it fails again", async || {
        let reply = graph(&stage).await;
        let failure = reply.header("tidegate-read-failure");
        failure.is_some_and(|text| text.contains("of order"))
    })
    .await;
    let reply = graph(&stage).await;
    assert_eq!(reply.status, 200);
    let edges = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["edges"].clone();
    assert_eq!(edges(&reply.body), edges(&before));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prometheus_that_is_silent_delays_neither_answers_nor_the_end() {
    let prometheus = ScriptedPrometheus::start(PrometheusScript::Silence);
    let mut stage = stage_with(&prometheus).await;

    assert!(detail(&graph(&stage).await).contains("for the first time"));
    // The timeout of the Prometheus query is longer than the grace of the service. After the grace the service drops
    // its connections.
    let stopped = tokio::time::timeout(stage.settings.grace, stage.stop()).await;

    assert!(stopped.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_are_escaped_and_mean_the_same() {
    let text = recording(&[CALL], "<script>\u{202e}\u{1b}[31m");
    let prometheus = ScriptedPrometheus::start(PrometheusScript::Recording(text));
    let stage = stage_with(&prometheus).await;
    served(&stage).await;

    for path in ["/v1/graph", "/v1/graph/busiest", "/v1/recommendations"] {
        let reply = stage.call(Call::get(path)).await;
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(
            !text.contains(['\u{202e}', '\u{1b}']) && text.contains(r"\u202e\u001b[31m"),
            "{path}: {text}"
        );
    }
    let shown = stage.json("/v1/graph/busiest").await;
    assert_eq!(
        shown["overview"]["services"][0]["name"],
        "<script>\u{202e}\u{1b}[31mcart"
    );
}

/// One busy gateway that calls `count` services. It calls the first of them most often.
pub(crate) fn many(count: u32) -> String {
    let calls: Vec<Traffic> = (0..count)
        .map(|number| Traffic {
            caller: "gateway",
            upstream: format!("service-{number:04}").leak(),
            requests: 36_000 - number,
            ..CALL
        })
        .collect();
    recording(&calls, "")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_busiest_services_are_shown_and_the_others_are_counted() {
    let prometheus = ScriptedPrometheus::start(PrometheusScript::Recording(many(200)));
    let stage = stage_with(&prometheus).await;
    served(&stage).await;

    let overview = stage.json("/v1/graph/busiest").await["overview"].clone();

    let services = overview["services"].as_array().unwrap();
    assert_eq!(services.len(), 60);
    assert_eq!(overview["calls"].as_array().unwrap().len(), 59);
    assert_eq!(
        (&overview["totalServices"], &overview["totalCalls"]),
        (&json!(201), &json!(200))
    );
    assert_eq!(
        (&services[0]["name"], &services[59]["name"]),
        (&json!("gateway"), &json!("service-0058"))
    );
}
