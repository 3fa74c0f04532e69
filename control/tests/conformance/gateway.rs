//! Case 1: a policy at an ingress gateway.
//!
//! `BreakerPolicy` -> the service -> `TrafficExtension` -> istiod -> ECDS -> Envoy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate_meshbed::until;
use tidegate_testbed::client::Caller;
use tidegate_testbed::upstream::{Script, Upstream};

use crate::load::{SHED, pour};
use crate::mesh::{Mesh, is_guarded};

/// An upstream with 4 slots of 20 ms answers 200 requests a second.
const SLOTS: u32 = 4;
const SERVICE: Duration = Duration::from_millis(20);
const TWICE_ITS_CAPACITY: u32 = 400;

pub(crate) async fn a_policy_sheds_what_is_beyond_the_capacity_behind_a_gateway(mesh: Arc<Mesh>) {
    let namespace = mesh.world.namespace("edge").await;
    let upstream = Upstream::constant("shop", SLOTS, SERVICE).await.unwrap();
    mesh.register(&namespace, "shop.example", &upstream).await;
    let envoy = mesh.gateway(&namespace, "edge", "shop.example").await;

    let settings = json!({"shed": {"status": SHED}});
    mesh.apply_policy(&namespace, "edge", &settings).await;
    is_guarded(&envoy).await;
    let before = upstream.counts().received;
    let tally = pour(envoy.addr(), TWICE_ITS_CAPACITY, Duration::from_secs(8)).await;

    println!("2 x capacity: {tally:?}");
    // Half is too much. On a machine that is busy with other things it is less, but never nothing.
    assert!(tally.shed > tally.ok / 4, "{tally:?}");
    assert!(tally.ok > tally.sum() / 4, "{tally:?}");
    assert!(
        tally.lost < tally.ok / 20,
        "who is let in is answered: {tally:?}"
    );
    let reached = upstream.counts().received - before;
    assert_eq!(reached, tally.sum() - tally.shed, "{tally:?}");
    let shop = "outbound|80||shop.example";
    until("the filter counts what callers saw", async || {
        let metrics = envoy.admin().tidegate().await.unwrap();
        metrics.sum("requests_shed_total", shop) == tally.shed
    })
    .await;
}

pub(crate) async fn a_changed_policy_is_soon_in_traffic(mesh: Arc<Mesh>) {
    let namespace = mesh.world.namespace("timed").await;
    // One request is enough to fill it, and the limit is one: every other request is shed.
    let upstream = Upstream::builder("slow")
        .script(|request| (request.path == "/held").then_some(Script::Hang))
        .start()
        .await
        .unwrap();
    mesh.register(&namespace, "slow.example", &upstream).await;
    let envoy = mesh.gateway(&namespace, "timed", "slow.example").await;
    let caller = Caller::http1(envoy.addr());
    let closed = |status: u16| json!({"limit": {"min": 1, "initial": 1, "max": 1}, "shed": {"status": status}});
    mesh.apply_policy(&namespace, "timed", &closed(SHED)).await;
    is_guarded(&envoy).await;
    let held = {
        let caller = caller.clone();
        tokio::spawn(async move { caller.get("/held").await })
    };
    until("one is under way", async || {
        upstream.received_for("/held") > 0
    })
    .await;
    let status = async || caller.get("/").await.map_or(0, |reply| reply.status);
    until("the others are shed", async || status().await == SHED).await;

    let applied = Instant::now();
    mesh.apply_policy(&namespace, "timed", &closed(SHED + 1))
        .await;
    until("they are shed as the changed policy says", async || {
        status().await == SHED + 1
    })
    .await;

    println!(
        "policy applied -> in traffic: {} ms",
        applied.elapsed().as_millis()
    );
    held.abort();
}
