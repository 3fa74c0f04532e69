//! Clusters that lead to several destinations: a dynamic forward proxy, and the clusters through which Istio sends requests
//! to unknown destinations.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::profile::{Change, UpstreamMode};
use tidegate_testbed::client::Call;
use tidegate_testbed::envoy::{Cluster, Envoy, EnvoyBuilder, Plugin, PushOutcome};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::{config, fixed_limit, open_for_long};
use crate::load::{Crowd, in_turn, is_shed, open_breaker, until_shed};
use crate::stage::{Stage, ensure};
use crate::turn;

/// The cluster's name, as Envoy's documents have it.
const FORWARD: &str = "dynamic_forward_proxy_cluster";
const PASSTHROUGH: &str = "PassthroughCluster";

async fn serving() -> Upstream {
    let upstream = Upstream::builder("main").script(|_| Some(Script::status(200)));
    upstream.start().await.unwrap()
}

/// An upstream that refuses connections.
async fn dead() -> Upstream {
    let upstream = serving().await;
    upstream.change(&Change::mode(UpstreamMode::Refuse));
    upstream
}

/// A call to an upstream by this host name.
fn to(host: &str, upstream: &Upstream) -> Call {
    Call::get("/").authority(&format!("{host}:{}", upstream.addr().port()))
}

/// A call with an original destination, as after a redirect to the proxy.
fn redirected_to(upstream: &Upstream) -> Call {
    let address = upstream.addr().to_string();
    to("127.0.0.1", upstream).header("x-envoy-original-dst-host", &address)
}

fn forwarding(document: &Value) -> EnvoyBuilder {
    Envoy::builder()
        .cluster(Cluster::dynamic_forward_proxy(FORWARD))
        .filter(Cluster::dynamic_forward_proxy_filter())
        .plugin(Plugin::tidegate(document))
        .route_timeout(Duration::ZERO)
}

fn by_authority(cluster: &str) -> Value {
    json!([{"match": {"cluster": cluster}, "keyBy": "authority"}])
}

/// Sends `count` calls and checks that all were served.
async fn all_served(stage: &Stage, call: &Call, count: u64) {
    let tally = in_turn(&stage.caller(), call, count).await;
    ensure!(stage, tally.ok == count, "{tally:?}");
}

/// Sends `count` calls to a dead destination and checks that none was shed.
async fn none_shed(stage: &Stage, call: &Call, count: u64) {
    let tally = in_turn(&stage.caller(), call, count).await;
    ensure!(stage, tally.other == count, "{tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_destination_is_shed_and_no_other_and_comes_back() {
    let turn = turn::shared().await;
    let (alive, dead) = (serving().await, dead().await);
    let stage = Stage::start(
        turn,
        forwarding(&config(json!({"upstreams": by_authority(FORWARD)}))),
    )
    .await;
    let (to_alive, to_dead) = (to("127.0.0.1", &alive), to("localhost", &dead));
    all_served(&stage, &to_alive, 20).await;

    // Only the dead destination gets requests meanwhile: if all shared one state, the breaker would be open for all.
    let (failed, reply) = until_shed(&stage, &stage.caller(), &to_dead).await;
    // Open, or already half-open: a worker that opens on its own evidence stays open for a quarter of a second at first, and a
    // busy machine may send the next call to it later than that.
    let details = reply.details().unwrap_or_default();
    ensure!(
        stage,
        details.starts_with("tidegate_shed_breaker_"),
        "{reply:?}"
    );
    ensure!(stage, failed >= 3, "it opened after {failed} failures");
    all_served(&stage, &to_alive, 200).await;
    stage
        .until("what was shed is counted for the cluster", async || {
            stage.sum("requests_shed_total", FORWARD).await > 0
        })
        .await;
    ensure!(stage, stage.opened(FORWARD).await > 0, "no transition");

    dead.change(&Change::mode(UpstreamMode::Serve));
    stage
        .until("ten calls in a row are served", async || {
            in_turn(&stage.caller(), &to_dead, 10).await.ok == 10
        })
        .await;
    all_served(&stage, &to_alive, 20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_hangs_reaches_its_limit_and_no_other() {
    let turn = turn::shared().await;
    let hanging = Upstream::builder("main").script(|_| Some(Script::Hang));
    let (alive, hanging) = (serving().await, hanging.start().await.unwrap());
    // A breaker would open soon; this test is about the limit. One worker, because each one has its own limit.
    let document = fixed_limit(4, json!({"upstreams": by_authority(FORWARD)}));
    let stage = Stage::start(turn, forwarding(&document).concurrency(1)).await;
    let (to_alive, to_hanging) = (to("127.0.0.1", &alive), to("127.0.0.1", &hanging));
    all_served(&stage, &to_alive, 5).await;
    let mut crowd = Crowd::send(&stage.caller(), &to_hanging, 20);
    stage
        .until("all beyond the limit are shed", async || {
            crowd
                .replies()
                .iter()
                .filter(|reply| is_shed(reply))
                .count()
                == 16
        })
        .await;
    all_served(&stage, &to_alive, 50).await;
    let received = hanging.counts().received;
    ensure!(stage, received == 4, "{received} reached it");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rule_the_destinations_share_what_is_decided() {
    let turn = turn::shared().await;
    let (alive, dead) = (serving().await, dead().await);
    let stage = Stage::start(turn, forwarding(&open_for_long(json!({})))).await;
    let (to_alive, to_dead) = (to("127.0.0.1", &alive), to("localhost", &dead));
    open_breaker(&stage, &stage.caller(), &to_dead, FORWARD).await;
    let tally = in_turn(&stage.caller(), &to_alive, 20).await;
    ensure!(stage, tally.shed == 20, "{tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_none_nothing_is_shed_and_nothing_is_counted() {
    let turn = turn::shared().await;
    let (alive, dead) = (serving().await, dead().await);
    let rules = json!([{"match": {"cluster": "dynamic_*"}, "keyBy": "none"}]);
    let stage = Stage::start(turn, forwarding(&config(json!({"upstreams": rules})))).await;
    none_shed(&stage, &to("localhost", &dead), 150).await;
    all_served(&stage, &to("127.0.0.1", &alive), 20).await;
    let counted = stage.sum("requests_total", "").await;
    ensure!(stage, counted == 0, "{counted} were counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn destinations_beyond_the_cap_pass_and_are_counted() {
    let turn = turn::shared().await;
    let (alive, dead) = (serving().await, dead().await);
    let document = config(json!({"upstreams": by_authority(FORWARD), "maxDestinations": 1}));
    // With several workers, each would have a place of its own.
    let stage = Stage::start(turn, forwarding(&document).concurrency(1)).await;
    all_served(&stage, &to("127.0.0.1", &alive), 20).await;
    none_shed(&stage, &to("localhost", &dead), 150).await;
    all_served(&stage, &to("127.0.0.1", &alive), 20).await;
    stage
        .until_sum("destinations_overflow_total", "", 150)
        .await;
    stage.until_sum("requests_total", FORWARD, 40).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn istios_passthrough_clusters_pass_unless_a_rule_names_them() {
    let turn = turn::shared().await;
    let (alive, dead) = (serving().await, dead().await);
    let (to_alive, to_dead) = (redirected_to(&alive), redirected_to(&dead));
    let plugin = Plugin::tidegate(&config(json!({}))).pushed();
    let envoy = Envoy::builder()
        .cluster(Cluster::original_destination(PASSTHROUGH))
        .plugin(plugin)
        .route_timeout(Duration::ZERO);
    let mut stage = Stage::start(turn, envoy).await;
    none_shed(&stage, &to_dead, 150).await;
    all_served(&stage, &to_alive, 20).await;
    let counted = stage.sum("requests_total", "").await;
    ensure!(stage, counted == 0, "{counted} were counted");

    let rules = json!({"upstreams": by_authority(PASSTHROUGH)});
    let pushed = stage.envoy.push(&open_for_long(rules).to_string()).await;
    ensure!(
        stage,
        matches!(pushed, Ok(PushOutcome::Accepted)),
        "{pushed:?}"
    );
    until_shed(&stage, &stage.caller(), &to_dead).await;
    all_served(&stage, &to_alive, 100).await;
}
