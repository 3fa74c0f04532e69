//! Configuration pushes under load, good and bad.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_testbed::client::Call;
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin, PushOutcome};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::{config, fixed_limit, open_for_long};
use crate::load::{Crowd, in_turn, open_breaker};
use crate::play::Play;
use crate::stage::{Stage, chain, ensure, require_parts};
use crate::turn;

/// An upstream that answers with `script`, behind a plugin whose configuration can be pushed.
async fn pushable(
    document: &Value,
    script: impl Fn(&str) -> Script + Send + Sync + 'static,
) -> (Upstream, Stage) {
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main")
        .script(move |head| Some(script(&head.path)))
        .start()
        .await
        .unwrap();
    let envoy = Envoy::builder()
        .route_timeout(Duration::ZERO)
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(Plugin::tidegate(document).pushed());
    let stage = Stage::start(turn, envoy).await;
    (upstream, stage)
}

async fn accepted(stage: &mut Stage, document: &Value) {
    let outcome = stage.envoy.push(&document.to_string()).await;
    match outcome {
        Ok(PushOutcome::Accepted) => {}
        Ok(PushOutcome::Rejected) => stage.fail(&format!("rejected: {document}")).await,
        Err(error) => stage.fail(&chain(&error)).await,
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a scored run: make test-scores"]
async fn a_push_under_load_loses_no_request_and_forgets_nothing() {
    let scenario = "duration='8s'\nwarmup='1s'\n[[clients]]\nload=[{at='0s', x=0.6}]";
    let mut play = Play::pushed(turn::alone().await, scenario, &config(json!({}))).await;
    let run = tokio::spawn(play.run());
    let stage = &mut play.stage;
    stage
        .until("the baseline is learned", async || {
            stage.sum("baseline_rtt_us", "main").await > 0
        })
        .await;
    // 40 ms on average.
    let plausible = 10_000..=160_000;
    let mut pushes = 0;
    while !run.is_finished() && pushes < 8 {
        pushes += 1;
        let document = config(json!({"limit": {"max": 900 + pushes}}));
        accepted(stage, &document).await;
        let requests = stage.sum("requests_total", "main").await;
        stage
            .until("a hundred requests later", async || {
                run.is_finished() || stage.sum("requests_total", "main").await > requests + 100
            })
            .await;
        let baseline = stage.sum("baseline_rtt_us", "main").await;
        ensure!(
            stage,
            plausible.contains(&baseline),
            "baseline {baseline} us after push {pushes}"
        );
    }
    let figures = run.await.unwrap();
    ensure!(
        stage,
        pushes >= 3,
        "only {pushes} pushes fitted into the run"
    );
    let lost = figures.shed + figures.failed;
    ensure!(
        stage,
        lost == 0,
        "{lost} requests failed in {pushes} pushes: {figures:#?}"
    );
    ensure!(stage, figures.score > 0.85, "{figures:#?}");
    stage.until_sum("in_flight", "main", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_under_way_count_across_a_push() {
    let (_upstream, mut stage) = pushable(&fixed_limit(10, json!({})), |_| Script::Hang).await;
    let caller = stage.caller();
    let mut crowd = Crowd::send(&caller, &Call::get("/"), 10);
    stage.until_sum("in_flight", "main", 10).await;
    accepted(&mut stage, &fixed_limit(12, json!({}))).await;
    stage.until_sum("limit", "main", 12).await;
    crowd.join(&caller, &Call::get("/"), 8);
    crowd.settle(&stage, 12).await;
    stage.until_sum("in_flight", "main", 12).await;
    drop(crowd);
    stage.until_sum("in_flight", "main", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_breaker_stays_open_across_a_push() {
    let (upstream, mut stage) = pushable(&open_for_long(json!({})), |_| Script::status(500)).await;
    let caller = stage.caller();
    open_breaker(&stage, &caller, &Call::get("/"), "main").await;
    accepted(&mut stage, &open_for_long(json!({"shed": {"status": 529}}))).await;
    stage
        .until("the new status is in force", async || {
            caller.get("/").await.is_ok_and(|reply| reply.status == 529)
        })
        .await;
    let before = upstream.counts().received;
    let tally = in_turn(&caller, &Call::get("/"), 50).await;
    let after = upstream.counts().received;
    ensure!(stage, tally.shed == 50 && before == after, "{tally:?}");
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 1, "it opened {opened} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_push_is_rejected_and_the_old_configuration_stays() {
    let good = fixed_limit(1, json!({"shed": {"status": 529}}));
    let (_upstream, mut stage) = pushable(&good, |_| Script::Hang).await;
    let caller = stage.caller();
    let _held = Crowd::send(&caller, &Call::get("/"), 1);
    stage.until_sum("in_flight", "main", 1).await;
    let bad = [
        ("", "document"),
        ("{", "document"),
        ("{}", "slo"),
        (
            r#"{"slo":{"latency":{"quantile":1.5,"target":"300ms"}}}"#,
            "slo.latency.quantile",
        ),
        (
            r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"limit":{"min":20,"max":10},"shed":{"status":530}}"#,
            "limit.max",
        ),
        (
            r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"shed":{"status":530},"mood":"bad"}"#,
            "mood",
        ),
    ];
    for (document, path) in bad {
        let outcome = stage.envoy.push(document).await;
        match outcome {
            Ok(PushOutcome::Rejected) => {}
            Ok(PushOutcome::Accepted) => stage.fail(&format!("accepted: {document}")).await,
            Err(error) => stage.fail(&chain(&error)).await,
        }
        let log = stage.envoy.log();
        let said = log
            .lines()
            .any(|line| line.contains("tidegate") && line.contains(path));
        ensure!(stage, said, "the log does not say {path:?} for {document}");
        let reply = caller.get("/").await.unwrap();
        ensure!(
            stage,
            reply.status == 529,
            "{} after {document}",
            reply.status
        );
    }
    // A good one is still accepted.
    accepted(
        &mut stage,
        &fixed_limit(1, json!({"shed": {"status": 531}})),
    )
    .await;
    stage
        .until("the new status is in force", async || {
            caller.get("/").await.is_ok_and(|reply| reply.status == 531)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_first_configuration_fails_clearly() {
    let _turn = turn::shared().await;
    require_parts();
    let upstream = Upstream::constant("main", 1, Duration::from_millis(1))
        .await
        .unwrap();
    let envoy = Envoy::builder()
        .route_timeout(Duration::ZERO)
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(Plugin::with_text(
            r#"{"slo":{"latency":{"quantile":0.99,"target":"-3s"}},"modus":"x"}"#,
        ))
        .ready_within(Duration::from_secs(10))
        .start()
        .await;
    let Err(error) = envoy else {
        panic!("Envoy started");
    };
    let text = chain(&error);
    for path in ["slo.latency.target", "modus"] {
        assert!(text.contains(path), "{path:?} is missing in: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metric_says_which_configuration_runs() {
    let documents = [
        config(json!({})),
        config(json!({"mode": "observe"})),
        config(json!({"enabled": false})),
    ];
    let (_upstream, mut stage) = pushable(&documents[0], |_| Script::status(200)).await;
    let caller = stage.caller();
    let _ = in_turn(&caller, &Call::get("/"), 1).await;
    let mut digests = Vec::new();
    // Envoy starts with the first document, and ignores a push that changes nothing. The last push returns to it: the gauges
    // of the others fall to 0.
    for (pushed, mode) in [
        (None, "enforce"),
        (Some(1), "observe"),
        (Some(2), "disabled"),
        (Some(0), "enforce"),
    ] {
        if let Some(place) = pushed {
            accepted(&mut stage, &documents[place]).await;
        }
        let mut digest = None;
        stage
            .until(&format!("{mode} is what runs"), async || {
                let metrics = stage.metrics().await;
                let infos = metrics.iter().filter(|metric| metric.name == "info");
                let runs: Vec<_> = infos.filter(|metric| metric.value == 1).collect();
                let [info] = runs.as_slice() else {
                    return false;
                };
                digest = info.labels.get("config").cloned();
                info.labels.get("mode").is_some_and(|found| found == mode)
            })
            .await;
        digests.extend(digest);
    }
    let [first, second, third, again] = digests.as_slice() else {
        stage.fail(&format!("without a digest: {digests:?}")).await
    };
    ensure!(
        stage,
        first == again && first != second && second != third && first != third,
        "{digests:?}"
    );
}
