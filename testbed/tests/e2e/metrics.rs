//! The metrics are the documented ones, and Prometheus sees their labels.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};
use tidegate_testbed::client::Call;
use tidegate_testbed::dashboards::stats_config;
use tidegate_testbed::envoy::{Cluster, Envoy, EnvoyBuilder, Plugin, repository};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::open_for_long;
use crate::load::{in_turn, open_breaker};
use crate::stage::{Stage, ensure};
use crate::turn;

const CLUSTER: &str = "outbound|80||web.shop.svc.cluster.local";

/// A stage on which a breaker has opened, so that most metrics have a value.
async fn after_an_outage(edit: impl FnOnce(EnvoyBuilder) -> EnvoyBuilder) -> Stage {
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main")
        .script(|head| Some(Script::status(if head.number < 50 { 200 } else { 500 })))
        .start()
        .await
        .unwrap();
    let envoy = Envoy::builder()
        .cluster(Cluster::new(CLUSTER, upstream.addr()))
        .plugin(Plugin::tidegate(&open_for_long(json!({}))));
    let stage = Stage::start(turn, edit(envoy)).await;
    let caller = stage.caller();
    let tally = in_turn(&caller, &Call::get("/"), 49).await;
    ensure!(stage, tally.ok == 49, "{tally:?}");
    open_breaker(&stage, &caller, &Call::get("/"), CLUSTER).await;
    stage
}

/// The rows of docs/metrics.md: from a name to its kind and label names.
fn documented() -> BTreeMap<String, (String, BTreeSet<String>)> {
    let path = repository().join("docs/metrics.md");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let quoted = |cell: &str| cell.trim().trim_matches('`').to_owned();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let name = quoted(cells.first()?.strip_prefix('|')?);
        let kind = (*cells.get(1)?).trim().to_owned();
        // "`upstream`; `reason`: `limit`, `retry`": a label, a colon and its values.
        let labels = cells.get(2)?.split(';');
        let labels = labels.map(|label| quoted(label.split(':').next().unwrap_or_default()));
        let labels = labels.filter(|label| !label.is_empty()).collect();
        name.starts_with("tidegate_")
            .then_some((name, (kind, labels)))
    };
    text.lines().filter_map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_is_documented() {
    let documented = documented();
    assert!(documented.len() > 10, "{documented:?}");
    let stage = after_an_outage(|envoy| envoy).await;
    stage
        .until("the trip and a shed request are published", async || {
            let shed = stage.metrics().await.sum("requests_shed_total", CLUSTER);
            stage.opened(CLUSTER).await == 1 && shed > 0
        })
        .await;
    let metrics = stage.metrics().await;
    for metric in metrics.iter() {
        let name = format!("tidegate_{}", metric.name);
        let row = documented.get(&name);
        ensure!(stage, row.is_some(), "{name} is not in docs/metrics.md");
        let labels: BTreeSet<String> = metric.labels.keys().cloned().collect();
        let expected = row.map(|(_, labels)| labels);
        ensure!(
            stage,
            expected == Some(&labels),
            "{name} has the labels {labels:?}, documented are {expected:?}"
        );
    }
    let seen: BTreeSet<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    for name in [
        "requests_total",
        "requests_admitted_total",
        "requests_shed_total",
        "outcomes_total",
        "in_flight",
        "limit",
        "baseline_rtt_us",
        "sample_rtt_us",
        "breaker_state",
        "breaker_transitions_total",
        "open_interval_ms",
        "upstreams",
        "info",
    ] {
        ensure!(stage, seen.contains(name), "{name} is missing");
    }
    let state = metrics.value("breaker_state", CLUSTER, &[]);
    ensure!(
        stage,
        state == Some(2),
        "the breaker is open, its state {state:?}"
    );
    let faults = metrics.sum("faults_total", "");
    ensure!(stage, faults == 0, "{faults} faults");
}

/// Puts the published `stats_tags` into the bootstrap.
pub(crate) fn publish_tags(bootstrap: &mut Value) {
    bootstrap["stats_config"] = stats_config().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_sees_labels_with_the_published_stats_tags() {
    let stage = after_an_outage(|envoy| envoy.edit(publish_tags)).await;
    let wanted = [
        ("tidegate_requests_total", vec![("upstream", CLUSTER)]),
        ("tidegate_in_flight", vec![("upstream", CLUSTER)]),
        (
            "tidegate_requests_shed_total",
            vec![("upstream", CLUSTER), ("reason", "breaker_open")],
        ),
        (
            "tidegate_breaker_transitions_total",
            vec![("upstream", CLUSTER), ("to", "open")],
        ),
        (
            "tidegate_outcomes_total",
            vec![("upstream", CLUSTER), ("outcome", "failure")],
        ),
        ("tidegate_upstreams", vec![]),
        ("tidegate_info", vec![("mode", "enforce")]),
    ];
    for (name, labels) in wanted {
        let is_it = |line: &str| {
            let Some((head, _value)) = line.rsplit_once(' ') else {
                return false;
            };
            let (found, labelled) = head.split_once('{').unwrap_or((head, ""));
            // Envoy adds its own prefix, and the rest of a name may end in separators.
            found.trim_end_matches('_').ends_with(name)
                && labels
                    .iter()
                    .all(|(key, value)| labelled.contains(&format!("tidegate_{key}=\"{value}\"")))
        };
        let mut text = String::new();
        stage
            .until(
                &format!("{name} with {labels:?} in /stats/prometheus"),
                async || {
                    text = stage
                        .envoy
                        .admin()
                        .text("/stats/prometheus?filter=tidegate")
                        .await
                        .unwrap();
                    text.lines().any(is_it)
                },
            )
            .await;
        let leftover = text.lines().find(|line| {
            line.split('{')
                .next()
                .is_some_and(|name| name.contains("upstream_"))
                && line.contains("tidegate")
                && !line.starts_with('#')
        });
        ensure!(
            stage,
            leftover.is_none(),
            "a label is left in a name: {leftover:?}"
        );
    }
}
