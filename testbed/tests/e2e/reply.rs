//! The answer to a shed request, and its line in the access log.

use serde_json::{Value, json};
use tidegate_testbed::client::headers::{ATTEMPT_HEADER, CRITICALITY_HEADER};
use tidegate_testbed::client::{Call, CallReply};
use tidegate_testbed::upstream::Script;

use crate::config::{fixed_limit, open_for_long};
use crate::load::{Crowd, until_shed};
use crate::stage::{Stage, answering, ensure, guarding};
use crate::turn;

/// The reply to the second request at a limit of one, and the stage.
async fn second_at_a_limit_of_one(members: Value, call: &Call) -> (Stage, CallReply) {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::Hang).await;
    let envoy = guarding(&upstream, &fixed_limit(1, members));
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    let held = Crowd::send(&caller, &Call::get("/held"), 1);
    stage.until_sum("in_flight", "main", 1).await;
    let reply = caller.call(call).await.unwrap();
    drop(held);
    (stage, reply)
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_tells_callers_not_to_retry() {
    let (stage, reply) = second_at_a_limit_of_one(json!({}), &Call::get("/second")).await;
    ensure!(
        stage,
        (reply.status, reply.body.len()) == (503, 0),
        "{reply:?}"
    );
    ensure!(
        stage,
        reply.details() == Some("tidegate_shed_limit"),
        "{reply:?}"
    );
    ensure!(
        stage,
        reply.header("x-envoy-ratelimited").is_some(),
        "{reply:?}"
    );
    let wait = reply
        .header("retry-after")
        .and_then(|seconds| seconds.parse::<u64>().ok());
    ensure!(
        stage,
        wait.is_some_and(|seconds| (1..=10).contains(&seconds)),
        "{reply:?}"
    );
    let lines = stage.access_lines(2).await;
    let line = lines.iter().find(|line| line.path == "/second").unwrap();
    ensure!(
        stage,
        line.details == "tidegate_shed_limit" && line.status == 503,
        "{line:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_elsewhere_lets_callers_retry_and_says_what_the_policy_says() {
    let shed =
        json!({"shed": {"reply": "retryElsewhere", "status": 429, "body": "come back later"}});
    let (stage, reply) = second_at_a_limit_of_one(shed, &Call::get("/second")).await;
    ensure!(
        stage,
        reply.status == 429 && reply.body == "come back later",
        "{reply:?}"
    );
    ensure!(
        stage,
        reply.header("x-envoy-ratelimited").is_none(),
        "{reply:?}"
    );
    ensure!(stage, reply.header("retry-after").is_some(), "{reply:?}");
    ensure!(
        stage,
        reply.header("x-tidegate-reason").is_none(),
        "{reply:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_says_the_reason_where_the_policy_asks_for_it() {
    let shed = json!({"shed": {"reasonHeader": "x-tidegate-reason"}});
    let (stage, reply) = second_at_a_limit_of_one(shed, &Call::get("/second")).await;
    ensure!(
        stage,
        reply.header("x-tidegate-reason") == Some("limit"),
        "{reply:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_is_told_in_reply_log_and_metric() {
    let header = json!({"criticality": {"header": CRITICALITY_HEADER}});
    let sheddable = Call::get("/second")
        .header(CRITICALITY_HEADER, "sheddable")
        .header(ATTEMPT_HEADER, "1");
    let (stage, reply) = second_at_a_limit_of_one(header, &sheddable).await;
    let details = reply.details().unwrap_or_default().to_owned();
    let reason = details
        .strip_prefix("tidegate_shed_")
        .unwrap_or_default()
        .to_owned();
    // The demand known so far decides which of the two it is.
    ensure!(
        stage,
        ["limit", "criticality"].contains(&reason.as_str()),
        "{reply:?}"
    );
    stage
        .until("the metric tells the same", async || {
            let metrics = stage.metrics().await;
            metrics.value("requests_shed_total", "main", &[("reason", &reason)]) == Some(1)
        })
        .await;
    let lines = stage.access_lines(2).await;
    ensure!(
        stage,
        lines.iter().any(|line| line.details == details),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_breaker_says_so_and_when_it_will_be_worth_trying() {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::status(500)).await;
    let envoy = guarding(&upstream, &open_for_long(json!({})));
    let stage = Stage::start(turn, envoy).await;
    let (_, reply) = until_shed(&stage, &stage.caller(), &Call::get("/")).await;
    ensure!(
        stage,
        reply.details() == Some("tidegate_shed_breaker_open"),
        "{reply:?}"
    );
    // At least five minutes, plus jitter.
    let wait = reply
        .header("retry-after")
        .and_then(|seconds| seconds.parse::<u64>().ok());
    ensure!(
        stage,
        wait.is_some_and(|seconds| (290..=900).contains(&seconds)),
        "{reply:?}"
    );
}
