//! Istio makes labels of the published tags, and the published access log tells the reason.

use std::fs;

use serde_json::{Value, json};
use tidegate_testbed::client::Call;
use tidegate_testbed::client::open_loop::{ATTEMPT_HEADER, CRITICALITY_HEADER};
use tidegate_testbed::dashboards;
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin, repository};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::fixed_limit;
use crate::load::Crowd;
use crate::stage::{Stage, ensure, guarding};
use crate::turn;

/// The service behind it answers nothing.
const FULL: &str = "outbound|80||full.shop.svc.cluster.local";

/// Rewrites the bootstrap's `stats_config` as Istio writes it for a proxy with these `extraStatTags`.
fn as_istio_does(bootstrap: &mut Value) {
    let tags: Vec<Value> = dashboards::tags("istio-mesh")
        .unwrap()
        .into_iter()
        .map(|tag| json!({"regex": format!("({tag}=\\.=(.*?);\\.;)"), "tag_name": tag}))
        // Of Istio's own those that look into any name.
        .chain([
            json!({"tag_name": "response_code", "regex": "_rq(_(\\d{3}))$"}),
            json!({"tag_name": "cache", "regex": "(cache\\.(.+?)\\.)"}),
            json!({"tag_name": "component", "regex": "(component\\.(.+?)\\.)"}),
            json!({"tag_name": "tag", "regex": "(tag\\.(.+?);\\.)"}),
        ])
        .collect();
    let kept = ["cluster_manager", "listener_manager", "server", "wasm"];
    let kept: Vec<Value> = kept
        .iter()
        .map(|prefix| json!({"prefix": prefix}))
        .collect();
    bootstrap["stats_config"] = json!({
        "use_all_default_tags": false,
        "stats_tags": tags,
        "stats_matcher": {"inclusion_list": {"patterns": kept}},
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn istio_makes_labels_of_its_extra_stat_tags() {
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main")
        .script(|_| Some(Script::Hang))
        .start()
        .await
        .unwrap();
    let envoy = Envoy::builder()
        .cluster(Cluster::new(FULL, upstream.addr()))
        .plugin(Plugin::tidegate(&fixed_limit(1, json!({}))))
        .edit(as_istio_does);
    let stage = Stage::start(turn, envoy).await;
    let crowd = Crowd::send(&stage.caller(), &Call::get("/"), 3);
    let wanted = format!("tidegate_reason=\"limit\",tidegate_upstream=\"{FULL}\"");
    stage
        .until(&format!("a shed with {wanted}"), async || {
            let admin = stage.envoy.admin();
            let text = admin.text("/stats/prometheus").await.unwrap();
            let mut lines = text.lines();
            let is_shed = |line: &str| {
                let labels = line.strip_prefix("tidegate_requests_shed_total{");
                labels.is_some_and(|labels| in_order(labels) == wanted)
            };
            // One without labels must not be dropped either.
            let is_plain = |line: &str| line.starts_with("tidegate_workers{} ");
            lines.clone().any(is_shed) && lines.any(is_plain)
        })
        .await;
    drop(crowd);
}

/// The labels of a line, sorted.
fn in_order(labels: &str) -> String {
    let labels = labels.split('}').next().unwrap_or_default();
    let mut labels: Vec<&str> = labels.split(',').collect();
    labels.sort_unstable();
    labels.join(",")
}

/// Replaces the access log's format with the published one.
fn publish_format(bootstrap: &mut Value) {
    let text = fs::read_to_string(repository().join("dashboards/access-log/envoy.yaml")).unwrap();
    let field = |line: &str| {
        let (name, value) = line.trim().split_once(": \"")?;
        Some((name.to_owned(), Value::from(value.strip_suffix('"')?)))
    };
    let fields: serde_json::Map<String, Value> = text.lines().filter_map(field).collect();
    assert!(fields.len() > 5, "{fields:?}");
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    let log = format!("{manager}/access_log/0/typed_config/log_format");
    *bootstrap.pointer_mut(&log).unwrap() = json!({"json_format": fields});
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_access_log_tells_who_was_shed_and_why() {
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main")
        .script(|_| Some(Script::Hang))
        .start()
        .await
        .unwrap();
    let document = fixed_limit(1, json!({"criticality": {"header": CRITICALITY_HEADER}}));
    let envoy = guarding(&upstream, &document).edit(publish_format);
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    let held = Crowd::send(&caller, &Call::get("/held"), 1);
    stage.until_sum("in_flight", "main", 1).await;
    let call = Call::get("/second?x=1")
        .header(CRITICALITY_HEADER, "sheddable")
        .header(ATTEMPT_HEADER, "2");
    let reply = caller.call(&call).await.unwrap();
    let mut line = Value::Null;
    stage
        .until("a line of the access log", async || {
            let text = stage.envoy.access_log_text();
            line = text
                .lines()
                .next()
                .map_or(Value::Null, |line| serde_json::from_str(line).unwrap());
            line != Value::Null
        })
        .await;
    drop(held);
    let expected = [
        ("status", json!(503)),
        ("details", json!(reply.details())),
        ("upstream", json!("main")),
        ("criticality", json!("sheddable")),
        ("attempt", json!("2")),
        ("retry_after", json!(reply.header("retry-after"))),
        ("path", json!("/second?x=1")),
    ];
    for (name, value) in expected {
        ensure!(
            stage,
            line[name] == value,
            "{name}: {} in {line}, expected {value}",
            line[name]
        );
    }
}
