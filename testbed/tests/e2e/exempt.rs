//! A few health checks pass while other requests are shed, and only those that the configuration names.

use serde_json::{Value, json};
use tidegate_testbed::client::Call;
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::{config, fixed_limit, open_for_long};
use crate::load::{Crowd, in_turn, open_breaker};
use crate::stage::{Stage, ensure, guarding};
use crate::turn;

/// An upstream that answers health checks, and everything else with `other`.
async fn stage(document: &Value, other: Script) -> (Upstream, Stage) {
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main")
        .script(move |head| {
            Some(match head.path.as_str() {
                "/healthz" => Script::status(200),
                _ => other.clone(),
            })
        })
        .start()
        .await
        .unwrap();
    let envoy = guarding(&upstream, document);
    let stage = Stage::start(turn, envoy).await;
    (upstream, stage)
}

/// Exempt requests of health checkers at a time in one worker, and the workers of a stage.
const EXEMPT_BUDGET: u64 = 1;
const WORKERS: u64 = 2;
/// User agents of the health checkers in these tests.
const AGENTS: [&str; 2] = ["kube-probe/", "Envoy/HC"];

fn with_agents(mut document: Value) -> Value {
    document["ignore"] = json!({"userAgents": AGENTS});
    document
}

#[tokio::test(flavor = "multi_thread")]
async fn a_health_checkers_user_agent_passes_a_full_limit_where_it_is_configured() {
    let document = with_agents(fixed_limit(1, json!({})));
    let (_upstream, stage) = stage(&document, Script::Hang).await;
    let caller = stage.caller();
    let _held = Crowd::send(&caller, &Call::get("/"), 1);
    stage.until_sum("in_flight", "main", 1).await;
    for agent in ["kube-probe/1.33", "Envoy/HC"] {
        let call = Call::get("/healthz").header("user-agent", agent);
        let tally = in_turn(&caller, &call, 3).await;
        ensure!(stage, tally.ok == 3, "{agent}: {tally:?}");
    }
    let tally = in_turn(
        &caller,
        &Call::get("/healthz").header("user-agent", "curl/8"),
        3,
    )
    .await;
    ensure!(stage, tally.shed == 3, "{tally:?}");
    stage.until_sum("requests_exempt_total", "main", 6).await;
    stage.until_sum("in_flight", "main", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_user_agent_passes_by_default() {
    let (_upstream, stage) = stage(&fixed_limit(1, json!({})), Script::Hang).await;
    let caller = stage.caller();
    let _held = Crowd::send(&caller, &Call::get("/"), 1);
    stage.until_sum("in_flight", "main", 1).await;
    let call = Call::get("/healthz").header("user-agent", "kube-probe/1.33");
    let tally = in_turn(&caller, &call, 3).await;
    ensure!(stage, tally.shed == 3, "{tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_posing_as_a_health_checker_gets_one_request_at_a_time_in_each_worker() {
    let document = with_agents(fixed_limit(1, json!({})));
    let (upstream, stage) = stage(&document, Script::Hang).await;
    let caller = stage.caller();
    let forged = Call::get("/").header("user-agent", "kube-probe/1.33");
    let held = Crowd::send(&caller, &forged, 40);
    stage.until_sum("requests_total", "main", 40).await;
    let received = upstream.counts().received;
    ensure!(
        stage,
        received <= 1 + EXEMPT_BUDGET * WORKERS,
        "{received} reached the upstream"
    );
    stage.until_sum("in_flight", "main", 1).await;
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_health_checkers_user_agent_passes_an_open_breaker_and_does_not_close_it() {
    let document = with_agents(open_for_long(json!({})));
    let (_upstream, stage) = stage(&document, Script::status(500)).await;
    let caller = stage.caller();
    open_breaker(&stage, &caller, &Call::get("/"), "main").await;
    let check = Call::get("/healthz").header("user-agent", "kube-probe/1.33");
    let tally = in_turn(&caller, &check, 20).await;
    ensure!(stage, tally.ok == 20, "{tally:?}");
    let tally = in_turn(&caller, &Call::get("/"), 20).await;
    ensure!(stage, tally.shed == 20, "{tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_paths_pass_and_do_not_count() {
    let document = config(json!({
        "limit": {"min": 1, "max": 1},
        "breaker": {"enabled": false},
        "ignore": {"paths": ["/healthz"]},
    }));
    let (_upstream, stage) = stage(&document, Script::Hang).await;
    let caller = stage.caller();
    let _held = Crowd::send(&caller, &Call::get("/"), 1);
    stage.until_sum("in_flight", "main", 1).await;
    let tally = in_turn(&caller, &Call::get("/healthz?full=1"), 20).await;
    ensure!(stage, tally.ok == 20, "{tally:?}");
    let tally = in_turn(&caller, &Call::get("/other"), 5).await;
    ensure!(stage, tally.shed == 5, "{tally:?}");
    // The held request and the five others.
    stage.until_sum("requests_total", "main", 6).await;
}
