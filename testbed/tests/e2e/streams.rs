//! Exchanges that last: websockets, server-sent events, gRPC streams.

use std::time::Duration;

use serde_json::json;
use tidegate_testbed::client::Call;
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::fixed_limit;
use crate::load::{Crowd, in_turn};
use crate::stage::{Stage, ensure, guarding};
use crate::turn;

#[tokio::test(flavor = "multi_thread")]
async fn websockets_and_streams_are_neither_slow_nor_in_flight() {
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main")
        .script(|head| match head.path.as_str() {
            "/events" => Some(Script::Stream {
                chunks: 10_000,
                every: Duration::from_millis(200),
            }),
            "/ws" => None,
            _ => Some(Script::status(200)),
        })
        .start()
        .await
        .unwrap();
    let envoy = Envoy::builder()
        .cluster(Cluster::new("main", upstream.addr()))
        .plugin(Plugin::tidegate(&fixed_limit(4, json!({}))))
        .route_timeout(Duration::ZERO);
    let stage = Stage::start(turn, envoy).await;
    let caller = stage.caller();

    let mut events = Vec::new();
    let mut tunnels = Vec::new();
    for _ in 0..2 {
        let mut stream = caller.start(&Call::get("/events")).await.unwrap();
        ensure!(stage, stream.status() == 200, "{}", stream.status());
        stream.chunk().await.unwrap();
        events.push(stream);
        let upgrade = caller.start(&Call::websocket("/ws")).await.unwrap();
        ensure!(stage, upgrade.status() == 101, "{}", upgrade.status());
        tunnels.push(upgrade.tunnel().await.unwrap());
    }
    for tunnel in &mut tunnels {
        assert_eq!(tunnel.echo(b"there").await.unwrap(), b"there");
    }
    // The objective ends with the headers, and those have come: there is room for requests.
    stage.until_sum("streams", "main", 4).await;
    stage.until_sum("in_flight", "main", 0).await;
    let tally = in_turn(&caller, &Call::get("/"), 40).await;
    ensure!(stage, tally.ok == 40, "{tally:?}");
    let mut crowd = Crowd::send(&caller, &Call::get("/"), 4);
    crowd.settle(&stage, 0).await;
    ensure!(
        stage,
        crowd.replies().iter().all(|reply| reply.status == 200),
        "some were shed"
    );

    // They are alive, and no gauge becomes negative when they end.
    for tunnel in &mut tunnels {
        assert_eq!(tunnel.echo(b"still").await.unwrap(), b"still");
    }
    drop(events);
    drop(tunnels);
    stage.until_sum("streams", "main", 0).await;
    stage.until_sum("in_flight", "main", 0).await;
    let metrics = stage.metrics().await;
    let slow = metrics.sum("requests_slow_total", "main");
    ensure!(stage, slow == 0, "{slow} were taken for slow");
    let ignored = metrics.value("outcomes_total", "main", &[("outcome", "ignored")]);
    let ignored = ignored.unwrap_or(0);
    ensure!(stage, ignored == 0, "{ignored} handshakes say nothing");
    let opened = stage.opened("main").await;
    ensure!(stage, opened == 0, "the breaker opened");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_that_takes_long_is_not_slow() {
    let turn = turn::shared().await;
    let upstream = Upstream::builder("main")
        .script(|_| {
            Some(Script::Stream {
                chunks: 10,
                every: Duration::from_millis(60),
            })
        })
        .start()
        .await
        .unwrap();
    let envoy = guarding(&upstream, &fixed_limit(50, json!({})));
    let stage = Stage::start(turn, envoy).await;
    // The objective is 300 ms, the headers come at once, the last piece after 600 ms.
    let mut crowd = Crowd::send(&stage.caller(), &Call::get("/"), 20);
    crowd.settle(&stage, 0).await;
    let success = [("outcome", "success")];
    stage
        .until("all are successes", async || {
            stage
                .metrics()
                .await
                .value("outcomes_total", "main", &success)
                == Some(20)
        })
        .await;
    let slow = stage.sum("requests_slow_total", "main").await;
    ensure!(stage, slow == 0, "{slow} were taken for slow");
}
