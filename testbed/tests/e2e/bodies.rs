//! Bodies of responses and requests: which part of a request's life is load, and which part the caller's own time.

use std::time::Duration;

use serde_json::json;
use tidegate_sim::arrivals::Sending;
use tidegate_sim::profile::{Behaviour, Body, ServiceTime};
use tidegate_testbed::client::Call;
use tidegate_testbed::upstream::Upstream;

use crate::config::{config, fixed_limit};
use crate::load::{Crowd, in_turn};
use crate::play::Play;
use crate::stage::{Stage, ensure, guarding};
use crate::turn;

/// Number of streams and uploads, more than the limit.
const MANY: usize = 6;

/// The limit.
const LIMIT: u32 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_hold_no_slot_shed_nothing_below_capacity() {
    let play = Play::new(
        turn::alone().await,
        "duration='2s'\nwarmup='500ms'\n[[clients]]\nload=[{at='0s', x=0.7}]\n\
         [[upstreams]]\nname='main'\n[upstreams.behaviour]\nslots=8\nservice={kind='constant', mean='40ms'}\n\
         body={duration={kind='constant', mean='700ms'}}",
    )
    .await;
    let figures = play.run().await;
    let shed = play.stage.sum("requests_shed_total", "").await;
    ensure!(
        play.stage,
        shed == 0,
        "{shed} requests were shed: {figures:#?}"
    );
    ensure!(play.stage, figures.score > 0.9, "{figures:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_in_flight_until_their_headers() {
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main").behaviour(Behaviour {
        service: ServiceTime::constant(Duration::from_millis(1)),
        body: Some(Body {
            duration: ServiceTime::constant(Duration::from_secs(600)),
            holds_slot: false,
            bytes: 0,
        }),
        ..Behaviour::default()
    });
    let upstream = upstream.start().await.unwrap();
    let envoy = guarding(&upstream, &fixed_limit(LIMIT, json!({})));
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();
    // Each is open when the next one comes: if it were still in flight, the last ones would be shed.
    let mut streams = Vec::new();
    for _ in 0..MANY {
        let mut stream = caller.start(&Call::get("/")).await.unwrap();
        ensure!(stage, stream.status() == 200, "{}", stream.status());
        let piece = stream.chunk().await.unwrap();
        ensure!(stage, piece.is_some(), "there is no body");
        streams.push(stream);
    }
    stage.until_sum("in_flight", "main", 0).await;
    let open = u64::try_from(streams.len()).unwrap();
    stage.until_sum("streams", "main", open).await;
    drop(streams);
    stage.until_sum("streams", "main", 0).await;
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 0, "the breaker opened");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_stall_are_neither_load_nor_a_hang() {
    let turn = turn::shared().await;
    let upstream = Upstream::constant("main", 4, Duration::from_millis(1))
        .await
        .unwrap();
    // The breaker may open, and the limit is fixed.
    let document = config(json!({"limit": {"min": LIMIT, "max": LIMIT}}));
    let stage = Stage::start(turn, guarding(&upstream, &document)).await;
    let caller = stage.caller();
    let stalled = Call::upload("/", Sending::Stalls);
    let mut crowd = Crowd::send(&caller, &stalled, 1);
    for count in 1..=MANY {
        let count = u64::try_from(count).unwrap();
        stage
            .until("the upload has left the gauge", async || {
                let metrics = stage.metrics().await;
                metrics.sum("streams", "main") == count && metrics.sum("in_flight", "main") == 0
            })
            .await;
        if count < u64::try_from(MANY).unwrap() {
            crowd.join(&caller, &stalled, 1);
        }
    }
    ensure!(
        stage,
        crowd.waiting() == MANY,
        "some uploads were answered: {:?}",
        crowd.replies()
    );
    let tally = in_turn(&caller, &Call::get("/"), 40).await;
    ensure!(stage, tally.ok == 40, "{tally:?}");
    // An upload that ends is answered like any other request.
    let takes = Call::upload("/", Sending::Takes(Duration::from_millis(400)));
    let tally = in_turn(&caller, &takes, 1).await;
    ensure!(stage, tally.ok == 1, "{tally:?}");
    drop(crowd);
    stage.until_sum("streams", "main", 0).await;
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 0, "the breaker opened");
}
