//! The dashboard and the alerts use only what a real Envoy shows, and access logs give the reason.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testbed::client::Call;
use tidegate_testbed::client::headers::{ATTEMPT_HEADER, CRITICALITY_HEADER};
use tidegate_testbed::dashboards::{self, DashboardNames};
use tidegate_testbed::envoy::{
    Cluster, Envoy, FailurePolicy, Plugin, Route, repository, test_module,
};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::{config, fixed_limit};
use crate::load::{Crowd, in_turn};
use crate::metrics::publish_tags;
use crate::stage::{Stage, answering, ensure, guarding, require};
use crate::turn;

/// The service behind it never answers.
const FULL: &str = "outbound|80||full.shop.svc.cluster.local";

/// Rules under which one proxy shows everything: what is shed and what would be, a cap, a breaker, and one upstream and one
/// destination beyond the maximum of states.
fn everything() -> Value {
    let full = json!({"min": 1, "max": 1});
    config(json!({
        "criticality": {"header": CRITICALITY_HEADER},
        "ignore": {"userAgents": ["kube-probe/"]},
        "maxUpstreams": 4,
        "maxDestinations": 1,
        "upstreams": [
            {"match": {"cluster": "observed"}, "mode": "observe", "limit": full},
            {"match": {"cluster": "capped"}, "shed": {"maxShare": 0.0}, "limit": full},
            {"match": {"cluster": "dead"}, "breaker": {"minOpen": "50ms", "maxOpen": "100ms"}},
            {"match": {"cluster": "many"}, "keyBy": "authority"},
            {"match": {"cluster": FULL}, "limit": full, "breaker": {"enabled": false}},
        ],
    }))
}

fn to(host: &str) -> Call {
    Call::get("/").authority(host)
}

/// The filter's metrics that Prometheus would scrape, and their labels.
async fn scraped(stage: &Stage) -> BTreeSet<String> {
    let admin = stage.envoy.admin();
    let text = admin.text("/stats/prometheus").await.unwrap();
    text.lines()
        .filter(|line| line.starts_with("tidegate_"))
        .flat_map(|line| line.split(['{', ' ', ',', '=']))
        .filter(|name| name.starts_with("tidegate_"))
        .map(str::to_owned)
        .collect()
}

/// A proxy that is full, dead, capped and overflowing at once, with everything that keeps it so.
async fn busy(document: &Value) -> (Stage, Vec<Crowd>, [Upstream; 2]) {
    let turn = turn::shared().await;
    let start = |script: Script| {
        let upstream = Upstream::builder("main").script(move |_| Some(script.clone()));
        upstream.start()
    };
    let held = start(Script::Hang).await.unwrap();
    let dead = start(Script::status(500)).await.unwrap();
    // Several workers would each fill the caps with different names.
    let mut envoy = Envoy::builder()
        .concurrency(1)
        .route_timeout(Duration::ZERO)
        .plugin(Plugin::tidegate(document).pushed())
        .edit(publish_tags);
    for name in [FULL, "observed", "capped", "dead", "beyond"] {
        let service = if name == "dead" { &dead } else { &held };
        let host = name.split("||").last().unwrap();
        envoy = envoy
            .cluster(Cluster::new(name, service.addr()))
            .route(Route::host(host).to(name));
    }
    envoy = envoy.cluster(Cluster::new("many", dead.addr()));
    for destination in ["one", "two"] {
        envoy = envoy.route(Route::host(destination).to("many"));
    }
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    for destination in ["one", "two"] {
        in_turn(&caller, &to(destination), 2).await;
    }
    let mut crowds = Vec::new();
    for host in ["full.shop.svc.cluster.local", "observed", "capped", "dead"] {
        crowds.push(Crowd::send(&caller, &to(host), 2));
    }
    stage.until_sum("upstreams", "", 4).await;
    crowds.push(Crowd::send(&caller, &to("beyond"), 2));
    let full = to("full.shop.svc.cluster.local");
    for class in ["sheddable", "sheddable_plus", "critical", "critical_plus"] {
        let call = full.clone().header(CRITICALITY_HEADER, class);
        in_turn(&caller, &call.header(ATTEMPT_HEADER, "2"), 2).await;
    }
    crowds.push(Crowd::send(
        &caller,
        &full.header("user-agent", "kube-probe/1.36"),
        1,
    ));
    (stage, crowds, [held, dead])
}

/// The filter's metrics of a proxy whose VM has crashed with requests in flight, and whose upstream answers late.
async fn after_a_crash() -> BTreeSet<String> {
    require(&test_module());
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main").script(|head| {
        let script = match head.path.as_str() {
            "/held" => Script::Hang,
            // Longer than the objective's target.
            "/slow" => Script::after(Duration::from_millis(400)),
            _ => Script::status(200),
        };
        Some(script)
    });
    let upstream = upstream.start().await.unwrap();
    let plugin = Plugin::tidegate(&fixed_limit(20, json!({})))
        .module(test_module())
        .failure_policy(FailurePolicy::Reload, Duration::from_millis(100));
    let envoy = Envoy::builder()
        .concurrency(1)
        .route_timeout(Duration::ZERO)
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(plugin)
        .edit(publish_tags);
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    let held = Crowd::send(&caller, &Call::get("/held"), 5);
    stage.until_sum("in_flight", "main", 5).await;
    let _ = caller
        .call(&Call::get("/").header("x-tidegate-test", "panic"))
        .await;
    drop(held);
    stage
        .until(
            "the requests that the crash took are corrected",
            async || {
                let _ = caller.get("/").await;
                stage.sum("in_flight_reconciled_total", "main").await > 0
            },
        )
        .await;
    let _ = caller.get("/slow").await;
    // Known latencies end the warm-up of the limit.
    stage
        .until(
            "a slow answer, and a limit that another law rules",
            async || {
                let _ = in_turn(&caller, &Call::get("/"), 5).await;
                let metrics = stage.metrics().await;
                let count = |name| metrics.sum(name, "main");
                count("requests_slow_total") > 0 && count("limit_changes_total") > 0
            },
        )
        .await;
    scraped(&stage).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_query_asks_for_a_metric_that_envoy_does_not_show() {
    let names = DashboardNames::read().unwrap();
    // The metrics that need a crash; this must end its turn before the next one begins.
    let crashed = after_a_crash().await;
    let (mut stage, crowds, upstreams) = busy(&everything()).await;
    let _ = stage.envoy.push("{").await;
    let mut missing: Vec<&String> = Vec::new();
    stage
        .until("every metric of dashboards/ is there", async || {
            let _ = in_turn(&stage.caller(), &to("dead"), 2).await;
            let seen = scraped(&stage).await;
            let wanted = names.filter.iter().chain(&names.labels);
            missing = wanted.filter(|name| !seen.contains(*name)).collect();
            missing.retain(|name| !crashed.contains(*name));
            missing.is_empty()
        })
        .await;
    drop((crowds, upstreams));
}

/// Rewrites the bootstrap's `stats_config` as Istio would for a proxy with these `extraStatTags`.
fn as_istio_does(bootstrap: &mut Value) {
    let tags: Vec<Value> = dashboards::tags("istio-mesh")
        .unwrap()
        .into_iter()
        .map(|tag| json!({"regex": format!("({tag}=\\.=(.*?);\\.;)"), "tag_name": tag}))
        // Those of Istio's own tags that match any name.
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
    let upstream = answering("main", Script::Hang).await;
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
            // Metrics without labels must not be dropped either.
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
    let upstream = answering("main", Script::Hang).await;
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
