//! What counts against an upstream, and what does not.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::profile::{Behaviour, Change, QueueBound, ServiceTime, UpstreamMode};
use tidegate_testbed::client::{Call, Caller};
use tidegate_testbed::envoy::{CircuitBreakerThresholds, Cluster, Envoy, Plugin};
use tidegate_testbed::upstream::{Script, Upstream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::config::{config, fixed_limit, open_for_long};
use crate::load::{Crowd, ENOUGH, in_turn, slowly, until_shed};
use crate::raw::BreaksOff;
use crate::stage::{Stage, ensure, guarding};
use crate::turn;

async fn in_front_of(cluster: Cluster, document: &Value) -> Stage {
    let turn = turn::shared().await;
    let envoy = Envoy::builder()
        .cluster(cluster)
        .plugin(Plugin::tidegate(document))
        .route_timeout(Duration::from_millis(200));
    Stage::start(turn, envoy).await
}

async fn scripted(script: fn(u64) -> Script) -> Upstream {
    let upstream = Upstream::builder("main").script(move |head| Some(script(head.number)));
    upstream.start().await.unwrap()
}

fn outcome(metrics: &tidegate_testbed::envoy::Metrics, outcome: &str) -> u64 {
    let label = [("outcome", outcome)];
    metrics.value("outcomes_total", "main", &label).unwrap_or(0)
}

/// Calls until the breaker is open, and checks that failures opened it.
async fn opens(addr: SocketAddr) {
    opens_for(addr, Caller::http1).await;
}

async fn opens_for(addr: SocketAddr, caller: fn(SocketAddr) -> Caller) {
    let stage = in_front_of(Cluster::new("main", addr), &open_for_long(json!({}))).await;
    let caller = caller(stage.envoy.addr());
    let (failed, reply) = until_shed(&stage, &caller, &Call::get("/")).await;
    ensure!(
        stage,
        reply.details() == Some("tidegate_shed_breaker_open"),
        "{reply:?}"
    );
    ensure!(stage, failed >= 3, "it opened after {failed} failures");
    stage
        .until("failures are counted", async || {
            outcome(&stage.metrics().await, "failure") >= 3
        })
        .await;
}

/// Sends `count` calls and checks that none was shed and the breaker stayed closed.
async fn stays_closed(stage: &Stage, caller: &Caller, call: &Call, count: u64) {
    let tally = slowly(caller, call, count).await;
    ensure!(stage, tally.shed == 0, "{tally:?}");
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 0, "the breaker opened");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_with_5xx_open_the_breaker() {
    let upstream =
        scripted(|number| Script::status(500 + u16::try_from(number % 5).unwrap())).await;
    opens(upstream.addr()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_connections_open_the_breaker() {
    let upstream = scripted(|_| Script::status(200)).await;
    upstream.change(&Change::mode(UpstreamMode::Refuse));
    opens(upstream.addr()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_before_the_headers_open_the_breaker() {
    let upstream = scripted(|_| Script::Reset).await;
    opens(upstream.addr()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resets_in_the_body_open_the_breaker() {
    let upstream = BreaksOff::start().await;
    // With HTTP/1.1 Envoy ends each of these calls a second later, when it closes the connection.
    opens_for(upstream.addr(), Caller::http2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn route_timeouts_open_the_breaker() {
    let upstream = scripted(|_| Script::Hang).await;
    opens(upstream.addr()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn client_errors_do_not_open_the_breaker() {
    let upstream = scripted(|number| Script::status(if number % 2 == 0 { 404 } else { 400 })).await;
    let stage = in_front_of(Cluster::new("main", upstream.addr()), &config(json!({}))).await;
    stays_closed(&stage, &stage.caller(), &Call::get("/"), 100).await;
    stage
        .until("they are ignored", async || {
            outcome(&stage.metrics().await, "ignored") == 100
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_leave_do_not_open_the_breaker() {
    let upstream = scripted(|_| Script::Hang).await;
    let turn = turn::shared().await;
    let envoy = guarding(&upstream, &config(json!({})));
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    for number in 1..=ENOUGH {
        let call = caller.get("/");
        let is_there = async || upstream.counts().received == number;
        // The call is dropped as soon as it has arrived.
        tokio::select! {
            reply = call => stage.fail(&format!("{reply:?}")).await,
            () = stage.until("the request arrives", is_there) => {}
        }
    }
    stage
        .until("they are cancelled", async || {
            outcome(&stage.metrics().await, "cancelled") == ENOUGH
        })
        .await;
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 0, "the breaker opened");
    stage.until_sum("in_flight", "main", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn envoys_own_503_without_endpoints_does_not_open_the_breaker() {
    let stage = in_front_of(Cluster::without_endpoints("main"), &config(json!({}))).await;
    let caller = stage.caller();
    let reply = caller.get("/").await.unwrap();
    ensure!(
        stage,
        reply.details() == Some("no_healthy_upstream"),
        "{reply:?}"
    );
    stays_closed(&stage, &caller, &Call::get("/"), 100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn envoys_own_static_breaker_does_not_open_ours() {
    let upstream = scripted(|number| {
        if number == 1 {
            Script::Hang
        } else {
            Script::status(200)
        }
    })
    .await;
    let thresholds = CircuitBreakerThresholds {
        max_connections: 1,
        max_pending_requests: 1,
        ..CircuitBreakerThresholds::unlimited()
    };
    let turn = turn::shared().await;
    let document = config(json!({"slo": {"latency": {"quantile": 0.99, "target": "60s"}}}));
    // One worker: Envoy gives every worker a connection, regardless of the threshold.
    let envoy = Envoy::builder()
        .concurrency(1)
        .cluster(Cluster::new("main", upstream.addr()).thresholds(thresholds))
        .plugin(Plugin::tidegate(&document))
        .route_timeout(Duration::ZERO);
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    let mut held = Crowd::send(&caller, &Call::get("/"), 1);
    stage
        .until("a request holds the connection", async || {
            upstream.counts().received == 1
        })
        .await;
    held.join(&caller, &Call::get("/"), 1);
    stage
        .until("a request waits for it", async || {
            let pending = stage.envoy.admin().stats("rq_pending_active$").await;
            pending.is_ok_and(|stats| stats.values().sum::<u64>() == 1)
        })
        .await;
    let tally = in_turn(&caller, &Call::get("/"), 100).await;
    ensure!(stage, tally.other == 100, "{tally:?}");
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 0, "the breaker opened");
}

/// Callers that try again at once, and an upstream whose line is full.
async fn refusals_lower_the_limit(status: u16, retry_after: Option<u32>) {
    let turn = turn::alone().await;
    let behaviour = Behaviour {
        slots: 4,
        service: ServiceTime::constant(Duration::from_millis(20)),
        queue: Some(QueueBound {
            max: 0,
            status,
            retry_after,
        }),
        ..Behaviour::default()
    };
    let upstream = Upstream::builder("main")
        .behaviour(behaviour)
        .start()
        .await
        .unwrap();
    let envoy = guarding(&upstream, &config(json!({})));
    let stage = Stage::start(turn, envoy).await;
    let mut callers = JoinSet::new();
    for _ in 0..24 {
        let caller = stage.caller();
        callers.spawn(async move {
            loop {
                // Any answer will do. The pause is the caller's time between two requests.
                let _ = caller.get("/").await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
    }
    stage
        .until("the limit is below the number of callers", async || {
            let limit = stage.metrics().await.value("limit", "main", &[]);
            limit.is_some_and(|limit| limit < 12)
        })
        .await;
    let metrics = stage.metrics().await;
    ensure!(
        stage,
        outcome(&metrics, "overload") > 0,
        "no overload was counted"
    );
    ensure!(
        stage,
        outcome(&metrics, "failure") == 0,
        "a failure was counted"
    );
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 0, "the breaker opened");
    stage
        .until("there are sheds", async || {
            stage.sum("requests_shed_total", "main").await > 0
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_lower_the_limit_and_do_not_open_the_breaker() {
    refusals_lower_the_limit(429, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unavailable_with_retry_after_lowers_the_limit_and_does_not_open_the_breaker() {
    refusals_lower_the_limit(503, Some(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn overload_signals_are_configurable() {
    let upstream = scripted(|number| match number % 3 {
        0 => Script::status(429),
        1 => Script::status(404),
        _ => Script::status(503).header("retry-after", "1"),
    })
    .await;
    let document = config(json!({
        "breaker": {"enabled": false},
        "overload": {"statuses": [404], "statusesWithRetryAfter": []},
    }));
    let stage = in_front_of(Cluster::new("main", upstream.addr()), &document).await;
    in_turn(&stage.caller(), &Call::get("/"), 60).await;
    stage.until_sum("outcomes_total", "main", 60).await;
    let metrics = stage.metrics().await;
    for kind in ["overload", "ignored", "failure"] {
        let found = outcome(&metrics, kind);
        ensure!(stage, found == 20, "{kind}: {found} of 60");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_in_flight_however_requests_end() {
    let upstream = scripted(|number| match number % 5 {
        0 => Script::status(500),
        1 => Script::Hang,
        2 => Script::Reset,
        3 => Script::status(429),
        _ => Script::after(Duration::from_millis(30)),
    })
    .await;
    let stage = in_front_of(
        Cluster::new("main", upstream.addr()),
        &fixed_limit(50, json!({})),
    )
    .await;
    let caller = stage.caller();
    let mut calls = JoinSet::new();
    for number in 0..200_u64 {
        let caller = caller.clone();
        // Some give up before the route's timeout, some after, some never.
        let patience = Duration::from_millis(50 + 10 * (number % 30));
        calls.spawn(async move { timeout(patience, caller.get("/")).await.is_ok() });
    }
    let answered = calls.join_all().await.into_iter().filter(|is| *is).count();
    ensure!(stage, answered > 0, "no request was answered");
    stage.until_sum("in_flight", "main", 0).await;
    // A caller may give up before its request reaches Envoy.
    let counted = "each request that arrived is counted";
    let arrived = r"^http\.ingress\.downstream_rq_total$";
    stage
        .until(counted, async || {
            let stats = stage.envoy.admin().stats(arrived).await.unwrap_or_default();
            let arrived: u64 = stats.into_values().sum();
            stage.sum("requests_total", "main").await == arrived
        })
        .await;
}
