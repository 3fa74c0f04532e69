//! An Envoy that drains: requests under way end normally, and none stays counted.

use std::time::Duration;

use serde_json::json;
use tidegate_testbed::client::{Call, Caller};
use tidegate_testbed::upstream::Script;

use crate::config::fixed_limit;
use crate::load::Crowd;
use crate::stage::{Stage, answering, ensure, guarding};
use crate::turn;

/// Requests under way when Envoy begins to drain: as many as the limit allows.
const MANY: u32 = 8;

#[tokio::test(flavor = "multi_thread")]
async fn requests_under_way_during_a_drain_are_answered_and_leave_the_count() {
    let turn = turn::shared().await;
    let upstream = answering("main", Script::after(Duration::from_secs(2))).await;
    let envoy = guarding(&upstream, &fixed_limit(MANY, json!({})));
    let stage = Stage::start(turn, envoy).await;
    let count = usize::try_from(MANY).unwrap();
    let mut crowd = Crowd::send(&stage.caller(), &Call::get("/"), count);
    stage.until_sum("in_flight", "main", MANY.into()).await;
    let drain = Call::post("/drain_listeners?graceful", "");
    let admin = Caller::http1(stage.envoy.admin().addr());
    let reply = admin.call(&drain).await.unwrap();
    ensure!(stage, reply.status == 200, "{reply:?}");
    crowd.settle(&stage, 0).await;
    let ok = crowd.replies().iter().filter(|one| one.status == 200);
    let ok = ok.count();
    ensure!(stage, ok == count, "{ok} of {count} were answered");
    stage.until_sum("in_flight", "main", 0).await;
    let shed = stage.sum("requests_shed_total", "main").await;
    ensure!(stage, shed == 0, "{shed} were shed");
}
