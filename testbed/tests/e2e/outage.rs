//! Upstreams that die, hang and come back.

use std::time::Duration;

use serde_json::json;
use tidegate_sim::number::ratio;
use tidegate_testbed::client::Call;
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::config;
use crate::load::{in_turn, slowly};
use crate::play::Play;
use crate::stage::{Stage, answering, ensure, guarding};
use crate::turn;

/// A state of the breaker as the gauge shows it.
const CLOSED: u64 = 0;

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_opens_the_breaker_and_its_end_closes_it() {
    let play = Play::new(
        turn::alone().await,
        "duration='12s'\nwarmup='1s'\n[[clients]]\nload=[{at='0s', x=0.7}]\n\
         [[upstreams]]\nname='main'\n\
         timeline=[{at='3s', mode='fail'}, {at='7s', mode='serve'}]\n\
         [[marks]]\nat='7s'\nkind='recovery'",
    )
    .await;
    let figures = play.run().await;
    let opened = play.stage.opened("main").await;
    ensure!(play.stage, opened > 0, "it never opened: {figures:#?}");
    let probes = play.stage.sum("probes_total", "main").await;
    ensure!(play.stage, (1..=60).contains(&probes), "{probes} probes");
    let reached = ratio(
        figures.reached.received_while_down,
        figures.offered_while_down,
    );
    ensure!(
        play.stage,
        reached < 0.1,
        "{reached:.2} reached the dead upstream: {figures:#?}"
    );
    // The recovery is detected within an open interval (1 s and jitter) and a ramp.
    let recovery = figures.recovery_s[0].unwrap_or(f64::INFINITY);
    ensure!(
        play.stage,
        recovery < 4.0,
        "back after {recovery} s: {figures:#?}"
    );
    play.stage.until_sum("breaker_state", "main", CLOSED).await;
    play.stage.until_sum("in_flight", "main", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a scored run: make test-scores"]
async fn an_upstream_that_hangs_opens_the_breaker_and_its_end_closes_it() {
    let play = Play::new(
        turn::alone().await,
        "duration='14s'\nwarmup='1s'\n[[clients]]\nload=[{at='0s', x=0.7}]\n\
         [[upstreams]]\nname='main'\n\
         timeline=[{at='3s', mode='hang'}, {at='8s', mode='serve'}]\n\
         [[marks]]\nat='8s'\nkind='recovery'",
    )
    .await;
    let figures = play.run().await;
    let opened = play.stage.opened("main").await;
    ensure!(play.stage, opened > 0, "it never opened: {figures:#?}");
    let reached = ratio(
        figures.reached.received_while_down,
        figures.offered_while_down,
    );
    // 0.07 was measured on a busy machine.
    ensure!(
        play.stage,
        reached < 0.2,
        "{reached:.2} reached the upstream: {figures:#?}"
    );
    let recovery = figures.recovery_s[0].unwrap_or(f64::INFINITY);
    ensure!(
        play.stage,
        recovery < 5.0,
        "back after {recovery} s: {figures:#?}"
    );
    play.stage.until_sum("in_flight", "main", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a scored run: make test-scores"]
async fn a_dead_upstream_leaves_the_other_alone() {
    let play = Play::new(
        turn::alone().await,
        "duration='7s'\nwarmup='1s'\n\
         [[upstreams]]\nname='dead'\ntimeline=[{at='2s', mode='fail'}]\n\
         [[upstreams]]\nname='healthy'\n\
         [[clients]]\nupstream='dead'\nload=[{at='0s', x=0.5}]\n\
         [[clients]]\nupstream='healthy'\nload=[{at='0s', x=0.6}]",
    )
    .await;
    let figures = play.run().await;
    let opened = play.stage.opened("dead").await;
    ensure!(
        play.stage,
        opened > 0,
        "the dead one's breaker never opened"
    );
    let metrics = play.stage.metrics().await;
    let shed = metrics.sum("requests_shed_total", "healthy");
    ensure!(
        play.stage,
        shed == 0,
        "{shed} requests to the healthy one were shed"
    );
    let score = figures.score_by_upstream["healthy"];
    ensure!(play.stage, score > 0.9, "{figures:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trickle_with_a_few_errors_never_trips() {
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main")
        .script(|head| {
            Some(Script::status(if head.number % 10 == 0 {
                500
            } else {
                200
            }))
        })
        .start()
        .await
        .unwrap();
    let envoy = guarding(&upstream, &config(json!({})));
    let stage = Stage::start(turn, envoy).await;
    let tally = in_turn(&stage.caller(), &Call::get("/"), 200).await;
    ensure!(stage, (tally.ok, tally.other) == (180, 20), "{tally:?}");
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 0, "the breaker opened");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_breaker_that_is_turned_off_never_opens() {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::status(500)).await;
    let envoy = guarding(&upstream, &config(json!({"breaker": {"enabled": false}})));
    let stage = Stage::start(turn, envoy).await;
    let tally = slowly(&stage.caller(), &Call::get("/"), 100).await;
    ensure!(stage, tally.other == 100, "{tally:?}");
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 0, "the breaker opened");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a scored run: make test-scores"]
async fn probes_are_few_however_many_workers_ask() {
    let turn = turn::alone().await;
    let upstream = answering("main", Script::status(500)).await;
    let document = config(json!({"breaker": {"minOpen": "300ms", "maxOpen": "300ms"}}));
    let envoy = guarding(&upstream, &document).concurrency(4);
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    // Everything passes in the first second; then the breaker opens.
    let call = |_| (0, Call::get("/"));
    let [_] = crate::load::pour(&caller, 400, Duration::from_secs(2), call).await;
    let received = upstream.counts().received;
    let probes = stage.sum("probes_total", "main").await;
    let [tally] = crate::load::pour(&caller, 400, Duration::from_secs(4), call).await;
    // About 13 intervals with three probes each: nothing has ever succeeded here, so that requests may usually fail.
    let received = upstream.counts().received - received;
    let probes = stage.sum("probes_total", "main").await - probes;
    ensure!(
        stage,
        received < 80,
        "{received} of {} reached the dead upstream, {probes} probes",
        tally.all()
    );
    ensure!(stage, (9..=60).contains(&probes), "{probes} probes in 4 s");
}
