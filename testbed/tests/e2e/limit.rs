//! The limit applies to the whole proxy, regardless of the number of workers.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testbed::client::Call;
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::fixed_limit;
use crate::load::{Crowd, Tally, pour};
use crate::stage::{Stage, answering, ensure, guarding};
use crate::turn::{self, Turn};

const LIMIT: u32 = 20;

/// Offers five times what the limit admits: 20 places of 50 ms each serve 400 a second.
async fn overload_with(turn: Turn, workers: u32) -> Tally {
    let upstream = Upstream::constant("main", 1_000, Duration::from_millis(50))
        .await
        .unwrap();
    let envoy = guarding(&upstream, &fixed_limit(LIMIT, json!({}))).concurrency(workers);
    let stage = Stage::start(turn, envoy).await;
    let [tally] = pour(&stage.caller(), 2_000, Duration::from_secs(3), |_| {
        (0, Call::get("/"))
    })
    .await;
    let most = upstream.counts().max_concurrent;
    ensure!(
        stage,
        most <= u64::from(LIMIT + workers),
        "{most} in flight at {workers} workers, the limit is {LIMIT}: {tally:?}"
    );
    ensure!(
        stage,
        most >= u64::from(LIMIT / 2),
        "at most {most} in flight: {tally:?}"
    );
    stage.until_sum("in_flight", "main", 0).await;
    let metrics = stage.metrics().await;
    let reported = metrics.value("limit", "main", &[]);
    ensure!(
        stage,
        reported == Some(u64::from(LIMIT)),
        "limit is {reported:?}"
    );
    tally
}

#[tokio::test(flavor = "multi_thread")]
async fn in_flight_stays_within_the_limit_at_one_worker_and_at_four() {
    let one = overload_with(turn::alone().await, 1).await;
    let four = overload_with(turn::alone().await, 4).await;
    for tally in [one, four] {
        assert!(tally.shed > tally.all() / 3, "{tally:?}");
        assert_eq!((tally.other, tally.none), (0, 0), "{tally:?}");
    }
    let (least, most) = (one.ok.min(four.ok), one.ok.max(four.ok));
    assert!(
        2 * most < 3 * least,
        "served: {} at one worker, {} at four",
        one.ok,
        four.ok
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gauge_counts_held_requests_of_all_workers() {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::Hang).await;
    let envoy = guarding(&upstream, &fixed_limit(LIMIT, json!({}))).concurrency(4);
    let stage = Stage::start(turn, envoy).await;
    let mut crowd = Crowd::send(&stage.caller(), &Call::get("/"), 60);
    crowd.settle(&stage, 20).await;
    let counts = upstream.counts();
    ensure!(stage, counts.received == 20, "{counts:?}");
    stage.until_sum("in_flight", "main", 20).await;
    stage.until_sum("requests_shed_total", "main", 40).await;
    stage.until_sum("requests_total", "main", 60).await;
    drop(crowd);
    stage.until_sum("in_flight", "main", 0).await;
    let mut crowd = Crowd::send(&stage.caller(), &Call::get("/"), 60);
    crowd.settle(&stage, 20).await;
}

/// Rejects the plugin's stats in Envoy.
fn reject_stats(bootstrap: &mut Value) {
    let plugin = json!({"patterns": [{"prefix": "wasmcustom."}]});
    bootstrap["stats_config"] = json!({"stats_matcher": {"exclusion_list": plugin}});
}

#[tokio::test(flavor = "multi_thread")]
async fn where_envoy_keeps_no_gauge_each_worker_takes_its_share() {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::Hang).await;
    let envoy = guarding(&upstream, &fixed_limit(LIMIT, json!({}))).edit(reject_stats);
    let stage = Stage::start(turn, envoy).await;
    // Each worker learns at its own tick how many workers there are. Until then its share is the whole limit.
    let caller = stage.caller();
    stage
        .until("a crowd is held to about the limit", async || {
            let before = upstream.counts().received;
            let got_through = || upstream.counts().received - before;
            let mut crowd = Crowd::send(&caller, &Call::get("/"), 60);
            stage
                .until("each call is shed or upstream", async || {
                    crowd.replies().len() as u64 + got_through() == 60
                })
                .await;
            let held = got_through();
            drop(crowd);
            let is_empty = async || upstream.counts().concurrent == 0;
            stage.until("the upstream is rid of them", is_empty).await;
            (u64::from(LIMIT / 2)..=u64::from(LIMIT + 2)).contains(&held)
        })
        .await;
    ensure!(
        stage,
        stage.envoy.log().contains("stats matcher"),
        "the log does not tell why"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_grows_with_the_endpoints() {
    let turn = turn::shared().await;
    let held = || {
        Upstream::builder("main")
            .script(|_| Some(Script::Hang))
            .start()
    };
    let (one, other) = (held().await.unwrap(), held().await.unwrap());
    let envoy = Envoy::builder()
        .route_timeout(Duration::ZERO)
        .cluster(Cluster::new("main", one.addr()).endpoint(other.addr()))
        .plugin(Plugin::tidegate(&fixed_limit(10, json!({}))));
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    let received = || one.counts().received + other.counts().received;
    let mut crowd = Crowd::send(&caller, &Call::get("/"), 1);
    // The first request makes the number of endpoints known, and each worker acts on it a tick later.
    stage
        .until("twenty requests get through", async || {
            crowd.join(&caller, &Call::get("/"), 2);
            received() >= 20
        })
        .await;
    crowd.join(&caller, &Call::get("/"), 20);
    crowd.settle(&stage, 20).await;
    ensure!(stage, received() == 20, "{} got through", received());
    stage.until_sum("limit", "main", 20).await;
}
