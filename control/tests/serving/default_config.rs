//! An Envoy that starts while no service answers: its default configuration lets requests pass until the service's comes.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testbed::client::{Call, CallReply, Caller};
use tidegate_testbed::envoy::{Cluster, DiscoveryProtocol, Envoy, Plugin, binary, release_module};
use tidegate_testbed::upstream::Upstream;

use crate::stage::{ServingStage, policy, until};

/// Requests that are sent at once.
const AT_ONCE: usize = 8;

/// Slots of the upstream for all of them, and a service time that lets them overlap.
const SLOTS: u32 = 64;
const SERVICE: Duration = Duration::from_millis(500);

/// Less than the 15 s for which an Envoy waits that cannot start with its default configuration.
pub(crate) const READY: Duration = Duration::from_secs(14);

/// The default configuration of the documents.
pub(crate) fn observing() -> Value {
    json!({"mode": "observe", "slo": {"latency": {"quantile": 0.99, "target": "1s"}}})
}

/// A limit of one request in flight. Of several requests at once, the filter sheds all but one.
fn tight() -> String {
    policy("tight", "tidegate-testbed", 1).replace("{max: 1}", "{min: 1, max: 1, initial: 1}")
}

/// A service that has chosen its ports, and is away.
async fn away() -> ServingStage {
    let mut stage = ServingStage::start().await;
    stage.write("a.yaml", &tight());
    stage.stop().await;
    stage
}

async fn at_once(envoy: &Envoy) -> Vec<CallReply> {
    let caller = Caller::http1(envoy.addr());
    let calls = (0..AT_ONCE).map(|_| {
        let caller = caller.clone();
        tokio::spawn(async move { caller.call(&Call::get("/")).await.unwrap() })
    });
    let mut replies = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        replies.push(call.await.unwrap());
    }
    replies
}

async fn all_pass(envoy: &Envoy) {
    let replies = at_once(envoy).await;
    let statuses = replies.iter().map(|reply| reply.status);
    assert_eq!(statuses.collect::<Vec<_>>(), [200; AT_ONCE]);
}

async fn all_but_few_are_shed(envoy: &Envoy) {
    let replies = at_once(envoy).await;
    let is_shed = |reply: &&CallReply| reply.details() == Some("tidegate_shed_limit");
    let shed = replies.iter().filter(is_shed).count();
    assert!(shed >= 6, "only {shed} of 8 were shed at a limit of 1");
}

/// The sum of the statistics of discovery whose names match.
async fn sum(envoy: &Envoy, filter: &str) -> u64 {
    let stats = envoy.admin().stats(filter).await.unwrap();
    assert!(!stats.is_empty(), "no statistic matches {filter}");
    stats.values().sum()
}

/// Starts an Envoy with this plugin, whose service comes later and goes again.
pub(crate) async fn passes_then_follows(plugin: Plugin, resource: &str, by: DiscoveryProtocol) {
    let mut stage = away().await;
    let upstream = Upstream::constant("main", SLOTS, SERVICE).await.unwrap();
    let envoy = Envoy::builder()
        .cluster(Cluster::new("main", upstream.addr()))
        .cluster(Cluster::new("control", stage.settings.xds).http2())
        .plugin(plugin.by_default().served("control", by))
        .ready_within(READY)
        .start()
        .await
        .unwrap();

    all_pass(&envoy).await;
    until("the default configuration has counted them", async || {
        let metrics = envoy.admin().tidegate().await.unwrap();
        let observing = metrics.value("info", "", &[("mode", "observe")]);
        observing == Some(1) && metrics.sum("requests_total", "main") == AT_ONCE as u64
    })
    .await;
    assert_eq!(sum(&envoy, "init_fetch_timeout$").await, 0, "{by:?}");
    assert_eq!(sum(&envoy, "config_reload$").await, 0, "{by:?}");

    stage.resume().await;
    until("the policy is current", async || {
        let proxies = stage.json("/v1/proxies").await;
        let resource = &proxies["proxies"][0]["resources"][resource];
        resource["running"].is_string() && resource["running"] == resource["wanted"]
    })
    .await;
    all_but_few_are_shed(&envoy).await;

    stage.stop().await;
    until("envoy has noticed that the service is away", async || {
        sum(&envoy, "control_plane.connected_state$").await == 0
    })
    .await;
    all_but_few_are_shed(&envoy).await;
    until("what was counted by default is kept", async || {
        let metrics = envoy.admin().tidegate().await.unwrap();
        metrics.sum("requests_total", "main") == 3 * AT_ONCE as u64
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_pass_before_the_service_answers_and_its_policy_stays_in_every_dialect() {
    for part in [binary(), release_module()] {
        let path = part.display();
        assert!(part.is_file(), "{path} is not there: make tools module");
    }
    for by in DiscoveryProtocol::ALL {
        passes_then_follows(Plugin::tidegate(&observing()), "tidegate", by).await;
    }
}

/// Envoy waits for the service for 15 s, and then goes on without it. Nothing depends on how long.
fn wait_briefly(bootstrap: &mut Value) {
    let chain = &mut bootstrap["static_resources"]["listeners"][0]["filter_chains"][0];
    let manager = &mut chain["filters"][0]["typed_config"];
    for filter in manager["http_filters"].as_array_mut().unwrap() {
        if filter["config_discovery"].is_object() {
            filter["config_discovery"]["config_source"]["initial_fetch_timeout"] = json!("0.1s");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_default_every_request_fails_until_the_service_answers() {
    let mut stage = away().await;
    let upstream = Upstream::constant("main", SLOTS, SERVICE).await.unwrap();
    let envoy = Envoy::builder()
        .cluster(Cluster::new("main", upstream.addr()))
        .cluster(Cluster::new("control", stage.settings.xds).http2())
        .plugin(Plugin::tidegate(&Value::Null).served("control", DiscoveryProtocol::Ecds))
        .edit(wait_briefly)
        .start()
        .await
        .unwrap();

    let replies = at_once(&envoy).await;
    assert!(replies.iter().all(|reply| reply.status == 500));
    until("the access log has the flag", async || {
        let log = envoy.access_log();
        log.len() == AT_ONCE && log.iter().all(|line| line.flags == "NFCF")
    })
    .await;

    stage.resume().await;
    until("requests are answered", async || {
        let reply = Caller::http1(envoy.addr()).get("/").await.unwrap();
        reply.status == 200
    })
    .await;
}
