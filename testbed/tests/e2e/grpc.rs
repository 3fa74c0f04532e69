//! gRPC: the status is in the trailers, or in the headers of a reply without a message.

use serde_json::{Value, json};
use tidegate_testbed::client::{Call, Caller};
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin};
use tidegate_testbed::upstream::{Script, Upstream};
use tokio::time::Duration;

use crate::config::{config, fixed_limit, open_for_long};
use crate::load::{Crowd, slowly, until_shed};
use crate::stage::{Stage, ensure};
use crate::turn;

const NOT_FOUND: u32 = 5;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNAVAILABLE: u32 = 14;

fn call() -> Call {
    Call::grpc("/shop.Cart/Get")
}

/// A gRPC upstream with this script, an Envoy with this document, and a caller.
async fn stage(
    document: &Value,
    script: impl Fn(u64) -> Script + Send + Sync + 'static,
) -> (Upstream, Stage, Caller) {
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main")
        .script(move |head| Some(script(head.number)))
        .start()
        .await
        .unwrap();
    let envoy = Envoy::builder()
        .route_timeout(Duration::ZERO)
        .cluster(Cluster::new("main", upstream.addr()).http2())
        .plugin(Plugin::tidegate(document));
    let stage = Stage::start(turn, envoy).await;
    let caller = Caller::http2(stage.envoy.addr());
    (upstream, stage, caller)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_the_trailers_opens_the_breaker() {
    let (upstream, stage, caller) =
        stage(&open_for_long(json!({})), |_| Script::grpc(UNAVAILABLE)).await;
    until_shed(&stage, &caller, &call()).await;
    let received = upstream.counts().received;
    ensure!(
        stage,
        received < 60,
        "{received} calls reached the dead upstream"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_the_headers_opens_the_breaker() {
    let script = |_| Script::GrpcTrailersOnly {
        status: UNAVAILABLE,
        after: Duration::ZERO,
    };
    let (upstream, stage, caller) = stage(&open_for_long(json!({})), script).await;
    until_shed(&stage, &caller, &call()).await;
    let received = upstream.counts().received;
    ensure!(
        stage,
        received < 60,
        "{received} calls reached the dead upstream"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_that_blame_the_caller_do_not_open_the_breaker() {
    let script = |number| match number % 2 {
        0 => Script::grpc(NOT_FOUND),
        _ => Script::GrpcTrailersOnly {
            status: NOT_FOUND,
            after: Duration::ZERO,
        },
    };
    let (upstream, stage, caller) = stage(&config(json!({})), script).await;
    let tally = slowly(&caller, &call(), 100).await;
    ensure!(
        stage,
        tally.shed == 0 && upstream.counts().received == 100,
        "{tally:?}"
    );
    let ignored = [("outcome", "ignored")];
    stage
        .until("all outcomes are ignored", async || {
            stage
                .metrics()
                .await
                .value("outcomes_total", "main", &ignored)
                == Some(100)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn resource_exhausted_is_overload_and_no_failure() {
    let (upstream, stage, caller) =
        stage(&config(json!({})), |_| Script::grpc(RESOURCE_EXHAUSTED)).await;
    let tally = slowly(&caller, &call(), 100).await;
    let received = upstream.counts().received;
    ensure!(
        stage,
        received > 50,
        "{received} calls got through: {tally:?}"
    );
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 0, "the breaker opened");
    let metrics = stage.metrics().await;
    let overload = metrics.value("outcomes_total", "main", &[("outcome", "overload")]);
    ensure!(
        stage,
        overload.is_some_and(|count| count > 0),
        "{overload:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shed_call_is_resource_exhausted_and_told_when_to_come_back() {
    let (_upstream, stage, caller) = stage(&fixed_limit(1, json!({})), |_| Script::Hang).await;
    let _held = Crowd::send(&caller, &call(), 1);
    stage.until_sum("in_flight", "main", 1).await;
    let reply = caller.call(&call()).await.unwrap();
    ensure!(stage, reply.status == 200, "{reply:?}");
    ensure!(
        stage,
        reply.grpc_status() == Some(RESOURCE_EXHAUSTED),
        "{reply:?}"
    );
    ensure!(
        stage,
        reply.header("content-type") == Some("application/grpc"),
        "{reply:?}"
    );
    let pushback = reply
        .header("grpc-retry-pushback-ms")
        .and_then(|ms| ms.parse::<u64>().ok());
    ensure!(
        stage,
        pushback.is_some_and(|ms| (1..60_000).contains(&ms)),
        "{reply:?}"
    );
    ensure!(
        stage,
        reply.details() == Some("tidegate_shed_limit"),
        "{reply:?}"
    );
    // A local reply without a message, not a failure of the upstream.
    ensure!(
        stage,
        reply.body.is_empty() && reply.trailers.is_empty(),
        "{reply:?}"
    );
}
