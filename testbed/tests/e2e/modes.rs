//! Careful modes: observe, partial enforcement, a cap on the share shed, the kill switch.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::number::ratio;
use tidegate_testbed::client::Call;
use tidegate_testbed::client::headers::CRITICALITY_HEADER;
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin, PushOutcome};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::{config, fixed_limit, open_for_long};
use crate::load::{Crowd, in_turn, open_breaker, pour, slowly};
use crate::stage::{Stage, answering, ensure, exact, guarding};
use crate::turn;

/// An upstream that holds all requests, and an Envoy with this document in front of it.
async fn held(document: &Value) -> (Upstream, Stage) {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::Hang).await;
    let envoy = guarding(&upstream, document);
    let stage = Stage::start(turn, envoy).await;
    (upstream, stage)
}

#[tokio::test(flavor = "multi_thread")]
async fn observe_sheds_nothing_and_counts_what_it_would_have_shed() {
    let (upstream, stage) = held(&fixed_limit(10, json!({"mode": "observe"}))).await;
    let mut crowd = Crowd::send(&stage.caller(), &Call::get("/"), 40);
    stage
        .until("all requests arrive", async || {
            upstream.counts().received == 40
        })
        .await;
    stage
        .until_sum("requests_would_shed_total", "main", 30)
        .await;
    stage.until_sum("requests_admitted_total", "main", 40).await;
    let shed = stage.sum("requests_shed_total", "main").await;
    ensure!(
        stage,
        shed == 0 && crowd.waiting() == 40,
        "{shed} requests were shed"
    );
    drop(crowd);
    stage.until_sum("in_flight", "main", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn observe_counts_the_classes_of_a_sample_without_pressure() {
    const SENT: u64 = 300;
    let turn = turn::shared().await;
    let upstream = answering("main", Script::status(200)).await;
    let document = config(json!({
        "mode": "observe",
        "criticality": {"header": CRITICALITY_HEADER},
    }));
    let envoy = exact()
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(Plugin::tidegate(&document));
    let stage = Stage::start(turn, envoy).await;
    let call = Call::get("/").header(CRITICALITY_HEADER, "sheddable");

    let tally = in_turn(&stage.caller(), &call, SENT).await;

    ensure!(stage, tally.ok == SENT, "{tally:?}");
    stage
        .until_sum("requests_admitted_total", "main", SENT)
        .await;
    let metrics = stage.metrics().await;
    let class = [("criticality", "sheddable")];
    let sampled = metrics.value("class_sampled_total", "main", &class);
    let all = metrics.sum("class_sampled_total", "main");
    // The first request, and then one in 64.
    ensure!(
        stage,
        sampled == Some(5) && all == 5,
        "sampled: {sampled:?} of {all}"
    );
    let ranked = metrics.sum("requests_ranked_total", "main");
    ensure!(stage, ranked == 0, "{ranked} were near the limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn observe_lets_an_open_breaker_pass_everything() {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::status(500)).await;
    let envoy = guarding(&upstream, &open_for_long(json!({"mode": "observe"})));
    let stage = Stage::start(turn, envoy).await;
    let tally = slowly(&stage.caller(), &Call::get("/"), 100).await;
    ensure!(
        stage,
        tally.other == 100 && upstream.counts().received == 100,
        "{tally:?}"
    );
    stage
        .until("the breaker is open", async || {
            stage.opened("main").await == 1
        })
        .await;
    // Counts are published at a tick: the last of them come after the leader's directive.
    stage
        .until("most would have been shed", async || {
            stage.sum("requests_would_shed_total", "main").await > 50
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn enforcement_is_a_share_of_the_decisions() {
    let (upstream, stage) = held(&fixed_limit(1, json!({"enforcement": 0.5}))).await;
    let caller = stage.caller();
    // If two workers each count a request at the same moment, both find the limit of one exceeded.
    let _first = Crowd::send(&caller, &Call::get("/"), 1);
    stage.until_sum("in_flight", "main", 1).await;
    let mut crowd = Crowd::send(&caller, &Call::get("/"), 200);
    stage
        .until("all are shed or arrive", async || {
            let received = usize::try_from(upstream.counts().received).unwrap();
            crowd.replies().len() + received == 201
        })
        .await;
    let shed = crowd.replies().len();
    // 200 tosses of a coin: the standard deviation is 7.
    ensure!(stage, (60..=140).contains(&shed), "{shed} of 200 were shed");
    let would = u64::try_from(200 - shed).unwrap();
    stage
        .until_sum("requests_would_shed_total", "main", would)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kill_switch_passes_everything() {
    let (upstream, stage) = held(&fixed_limit(10, json!({"enabled": false}))).await;
    let _crowd = Crowd::send(&stage.caller(), &Call::get("/"), 40);
    stage
        .until("all requests arrive", async || {
            upstream.counts().received == 40
        })
        .await;
    let metrics = stage.metrics().await;
    let counted =
        metrics.sum("requests_shed_total", "") + metrics.sum("requests_would_shed_total", "");
    ensure!(stage, counted == 0, "{counted} requests were counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kill_switch_opens_the_way_past_an_open_breaker() {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::status(500)).await;
    let envoy = Envoy::builder()
        .route_timeout(Duration::ZERO)
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(Plugin::tidegate(&open_for_long(json!({}))).pushed());
    let mut stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    open_breaker(&stage, &caller, &Call::get("/"), "main").await;
    let off = open_for_long(json!({"enabled": false})).to_string();
    let outcome = stage.envoy.push(&off).await.unwrap();
    ensure!(stage, outcome == PushOutcome::Accepted, "{outcome:?}");
    stage
        .until("requests pass", async || {
            in_turn(&caller, &Call::get("/"), 1).await.shed == 0
        })
        .await;
    let tally = in_turn(&caller, &Call::get("/"), 30).await;
    ensure!(stage, tally.other == 30, "{tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_share_shed_is_capped() {
    let turn = turn::alone().await;
    let upstream = answering("main", Script::status(500)).await;
    let document = open_for_long(json!({"shed": {"maxShare": 0.3}}));
    let envoy = guarding(&upstream, &document).concurrency(1);
    let stage = Stage::start(turn, envoy).await;
    let [tally] = pour(&stage.caller(), 400, Duration::from_secs(4), |_| {
        (0, Call::get("/"))
    })
    .await;
    let share = ratio(tally.shed, tally.all());
    ensure!(
        stage,
        (0.1..=0.33).contains(&share),
        "{share:.2} were shed: {tally:?}"
    );
    let spared = stage.sum("requests_spared_total", "main").await;
    ensure!(stage, spared > 0, "no request was spared: {tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_for_one_upstream_leaves_the_others_alone() {
    let turn = turn::shared().await;
    let held = || {
        Upstream::builder("held")
            .script(|_| Some(Script::Hang))
            .start()
    };
    let (watched, guarded) = (held().await.unwrap(), held().await.unwrap());
    let document = config(json!({
        "limit": {"min": 2, "max": 2},
        "breaker": {"enabled": false},
        "upstreams": [{"match": {"cluster": "watched"}, "mode": "observe"}],
    }));
    let route = |name: &str| tidegate_testbed::envoy::Route::host(name).to(name);
    let envoy = exact()
        .cluster(Cluster::new("watched", watched.addr()))
        .cluster(Cluster::new("guarded", guarded.addr()))
        .route(route("watched"))
        .route(route("guarded"))
        .plugin(Plugin::tidegate(&document));
    let stage = Stage::start(turn, envoy).await;
    let call = |name| Call::get("/").authority(name);
    let mut to_watched = Crowd::send(&stage.caller(), &call("watched"), 10);
    let mut to_guarded = Crowd::send(&stage.caller(), &call("guarded"), 10);
    to_guarded.settle(&stage, 2).await;
    stage
        .until("all reach the watched one", async || {
            watched.counts().received == 10
        })
        .await;
    ensure!(stage, to_watched.waiting() == 10, "some were shed");
}
