//! Crashes of the VM, by a hook that the release module does not have.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testbed::client::Call;
use tidegate_testbed::envoy::{Cluster, Envoy, FailurePolicy, Plugin, test_module};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::{config, fixed_limit, open_for_long};
use crate::load::{Crowd, in_turn, open_breaker, pour};
use crate::stage::{Stage, ensure, guarding, require};
use crate::turn::{self, Turn};

/// Crashes the VM of the worker that handles it.
fn panic_call() -> Call {
    Call::get("/").header("x-tidegate-test", "panic")
}

/// The module with the hook, and a short back-off. With one worker, the crash always hits its VM.
async fn stage(turn: Turn, document: &Value, upstream: &Upstream, workers: u32) -> Stage {
    require(&test_module());
    let plugin = Plugin::tidegate(document)
        .module(test_module())
        .failure_policy(FailurePolicy::Reload, Duration::from_millis(100));
    let envoy = Envoy::builder()
        .concurrency(workers)
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(plugin);
    Stage::start(turn, envoy).await
}

/// Crashes the VM and waits until another one serves.
async fn crash(stage: &Stage) {
    let workers = vms_created(stage).await;
    // The crashing call gets an error or nothing.
    let _ = stage.caller().call(&panic_call()).await;
    stage
        .until("a fresh VM serves", async || {
            // A new connection, so that it sometimes reaches the crashed worker.
            let reply = stage.caller().get("/alive").await;
            let details = reply.as_ref().ok().and_then(|reply| reply.details());
            let is_ours = details.is_none_or(|details| details.starts_with("tidegate_"));
            reply.is_ok() && is_ours && vms_created(stage).await > workers
        })
        .await;
}

async fn vms_created(stage: &Stage) -> u64 {
    let stats = stage
        .envoy
        .admin()
        .stats("^wasm\\..*\\.created$")
        .await
        .unwrap();
    stats.values().sum::<u64>() + reloads(stage).await
}

async fn reloads(stage: &Stage) -> u64 {
    let stats = stage.envoy.admin().stats("vm_reload").await.unwrap();
    stats
        .iter()
        .filter(|(name, _)| name.ends_with("success"))
        .map(|(_, value)| value)
        .sum()
}

async fn answers(script: impl Fn(&str) -> Script + Send + Sync + 'static) -> Upstream {
    let upstream = Upstream::builder("main").script(move |head| Some(script(&head.path)));
    upstream.start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_breaker_stays_open_across_a_crash() {
    let upstream = answers(|_| Script::status(500)).await;
    let stage = stage(
        turn::shared().await,
        &open_for_long(json!({})),
        &upstream,
        1,
    )
    .await;
    let caller = stage.caller();
    open_breaker(&stage, &caller, &Call::get("/"), "main").await;
    crash(&stage).await;
    let before = upstream.counts().received;
    let tally = in_turn(&caller, &Call::get("/"), 50).await;
    let after = upstream.counts().received;
    ensure!(
        stage,
        tally.shed == 50 && before == after,
        "{tally:?}, {} got through",
        after - before
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_does_not_leak_requests_in_flight() {
    let upstream = answers(|path| match path {
        "/alive" => Script::status(200),
        _ => Script::Hang,
    })
    .await;
    let stage = stage(
        turn::shared().await,
        &fixed_limit(20, json!({})),
        &upstream,
        1,
    )
    .await;
    let caller = stage.caller();
    let crowd = Crowd::send(&caller, &Call::get("/"), 10);
    stage.until_sum("in_flight", "main", 10).await;
    crash(&stage).await;
    drop(crowd);
    stage.until_sum("in_flight", "main", 0).await;
    // The new VM counts correctly.
    let mut crowd = Crowd::send(&caller, &Call::get("/"), 30);
    crowd.settle(&stage, 20).await;
    stage.until_sum("in_flight", "main", 20).await;
    drop(crowd);
    stage.until_sum("in_flight", "main", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_of_one_worker_leaves_the_others_requests_counted() {
    let upstream = answers(|path| match path {
        "/alive" => Script::status(200),
        _ => Script::Hang,
    })
    .await;
    let turn = turn::shared().await;
    let stage = stage(turn, &fixed_limit(40, json!({})), &upstream, 2).await;
    let caller = stage.caller();
    let crowd = Crowd::send(&caller, &Call::get("/"), 20);
    stage.until_sum("in_flight", "main", 20).await;
    crash(&stage).await;
    stage
        .until("the gauge shows what the upstream has", async || {
            let held = upstream.counts().concurrent;
            stage.sum("in_flight", "main").await == held
        })
        .await;
    drop(crowd);
    stage.until_sum("in_flight", "main", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a scored run: make test-scores"]
async fn what_was_learned_outlives_a_crash_under_load() {
    let turn = turn::alone().await;
    let upstream = Upstream::constant("main", 16, Duration::from_millis(40))
        .await
        .unwrap();
    let stage = stage(turn, &config(json!({})), &upstream, 1).await;
    let caller = stage.caller();
    let second = Duration::from_secs(1);
    let [tally] = pour(&caller, 200, second * 3, |_| (0, Call::get("/"))).await;
    ensure!(stage, tally.ok == 600, "{tally:?}");
    let baseline = stage.sum("baseline_rtt_us", "main").await;
    ensure!(stage, baseline > 20_000, "baseline {baseline} us");
    let [tally] = pour(&caller, 200, second * 4, |number| {
        let call = if number % 400 == 200 {
            panic_call()
        } else {
            Call::get("/")
        };
        (0, call)
    })
    .await;
    // Each of the two crashes loses the requests under way and those that come within the back-off.
    ensure!(stage, tally.ok > 500, "{tally:?}");
    ensure!(
        stage,
        tally.other + tally.none > 0,
        "no crash was to be seen: {tally:?}"
    );
    let after = stage.sum("baseline_rtt_us", "main").await;
    ensure!(
        stage,
        (baseline / 2..=baseline * 2).contains(&after),
        "baseline {baseline} us before the crashes, {after} us after them"
    );
    stage.until_sum("in_flight", "main", 0).await;
    let [tally] = pour(&caller, 200, second, |_| (0, Call::get("/"))).await;
    ensure!(stage, tally.ok == 200, "{tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_release_module_knows_no_hook() {
    let upstream = answers(|_| Script::status(200)).await;
    let turn = turn::shared().await;
    let envoy = guarding(&upstream, &config(json!({})));
    let stage = Stage::start(turn, envoy).await;
    let tally = in_turn(&stage.caller(), &panic_call(), 20).await;
    ensure!(stage, tally.ok == 20, "{tally:?}");
}

/// The hook's panic is caught: the request passes, and nothing else is lost.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn a_panic_in_the_native_module_lets_the_request_pass() {
    let upstream = answers(|path| match path {
        "/held" => Script::Hang,
        _ => Script::status(200),
    })
    .await;
    let stage = stage(
        turn::shared().await,
        &fixed_limit(20, json!({})),
        &upstream,
        1,
    )
    .await;
    let caller = stage.caller();
    let crowd = Crowd::send(&caller, &Call::get("/held"), 10);
    stage.until_sum("in_flight", "main", 10).await;
    let reply = caller.call(&panic_call()).await.unwrap();
    ensure!(stage, reply.status == 200, "{reply:?}");
    stage.until_sum("faults_total", "", 1).await;
    stage.until_sum("in_flight", "main", 10).await;
    drop(crowd);
    stage.until_sum("in_flight", "main", 0).await;
}
