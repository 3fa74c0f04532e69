//! Case 1: a policy at an ingress gateway.
//!
//! `BreakerPolicy` -> the service -> `TrafficExtension` -> istiod -> ECDS -> Envoy.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tidegate_meshbed::until;
use tidegate_testbed::upstream::Upstream;

use crate::door::one_at_a_time;
use crate::load::{SHED, pour};
use crate::mesh::{ConformanceMesh, is_guarded};
use crate::place::TestNamespace;

/// An upstream with 4 slots of 20 ms answers 200 requests a second.
const SLOTS: u32 = 4;
const SERVICE: Duration = Duration::from_millis(20);
const TWICE_ITS_CAPACITY: u32 = 400;

pub(crate) async fn a_policy_sheds_what_is_beyond_the_capacity_behind_a_gateway(
    mesh: Arc<ConformanceMesh>,
) {
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
    tally.is_that_of_twice_the_capacity();
    let reached = upstream.counts().received - before;
    assert_eq!(reached, tally.sum() - tally.shed, "{tally:?}");
    let shop = "outbound|80||shop.example";
    until("the filter counts what callers saw", async || {
        let metrics = envoy.admin().tidegate().await.unwrap();
        metrics.sum("requests_shed_total", shop) == tally.shed
    })
    .await;
}

pub(crate) async fn a_changed_policy_is_soon_in_traffic(mesh: Arc<ConformanceMesh>) {
    let place = TestNamespace::start(&mesh, "timed").await;
    let (namespace, door) = ("timed", &place.door);
    let _held = door.hold(&place.upstream).await;

    let applied = Instant::now();
    mesh.apply_policy(namespace, "timed", &one_at_a_time(SHED))
        .await;
    is_guarded(&place.envoy).await;
    let first = applied.elapsed();
    let _counted = place.taken(SHED).await;

    let applied = Instant::now();
    mesh.apply_policy(namespace, "timed", &one_at_a_time(SHED + 1))
        .await;
    door.answers(SHED + 1).await;

    println!(
        "policy applied -> in traffic: the first {} ms (with the VM), a change {} ms",
        first.as_millis(),
        applied.elapsed().as_millis()
    );
}
