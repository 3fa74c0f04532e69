//! Case 5: a policy is changed under load.
//!
//! If a module is named by `file://`, Istio starts a new VM at every push, because the version of its object is in the
//! VM's environment. So the new VM must read what the old one learned from shared data. It then knows, for example,
//! that an upstream is dead. Without that knowledge it would let requests through to find out.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_meshbed::{MeshProxy, until};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::door::MeshDoor;
use crate::load::{SHED, Steady};
use crate::mesh::{ConformanceMesh, is_guarded};

const DEAD: &str = "dead.example";

/// A breaker that opens stays open for longer than this test lasts.
fn settings(status: u16) -> Value {
    json!({"breaker": {"minOpen": "10m", "maxOpen": "10m"}, "shed": {"status": status}})
}

/// The sum of the counters and gauges of Envoy's VMs whose names end with `ending`.
async fn vms(envoy: &MeshProxy, ending: &str) -> u64 {
    let filter = format!("^wasm\\..*\\.{ending}$");
    let stats = envoy.admin().stats(&filter).await.unwrap();
    assert!(!stats.is_empty(), "{filter} matches no metric");
    stats.values().sum()
}

pub(crate) async fn a_push_under_load_loses_no_request_and_keeps_what_was_learned(
    mesh: Arc<ConformanceMesh>,
) {
    let namespace = mesh.world.namespace("push").await;
    let shop = Upstream::constant("shop", 4, Duration::from_millis(10))
        .await
        .unwrap();
    let builder = Upstream::builder("dead").script(|_| Some(Script::status(500)));
    let dead = builder.start().await.unwrap();
    mesh.register(&namespace, "pushed.example", &shop).await;
    mesh.register(&namespace, DEAD, &dead).await;
    let envoy = mesh.gateway(&namespace, "push", "pushed.example").await;
    mesh.lead_to(&namespace, "push", DEAD).await;
    mesh.apply_policy(&namespace, "push", &settings(SHED)).await;
    is_guarded(&envoy).await;

    // The filter learns that one upstream is dead. The other upstream serves requests.
    let load = Steady::start(envoy.addr(), 2);
    let door = MeshDoor::to(envoy.addr(), DEAD);
    door.answers(SHED).await;
    let dead_cluster = format!("outbound|80||{DEAD}");
    until("the proxy's breaker is open", async || {
        let metrics = envoy.admin().tidegate().await.unwrap();
        metrics.value("breaker_state", &dead_cluster, &[]) == Some(2)
    })
    .await;
    load.goes_on(50).await;
    let tried = dead.counts().received;
    let (created, active) = (vms(&envoy, "created").await, vms(&envoy, "active").await);

    mesh.apply_policy(&namespace, "push", &settings(SHED + 1))
        .await;

    // No request passes before the change is in force, nor long after it.
    door.answers(SHED + 1).await;
    until("new VMs have taken the place of the old", async || {
        assert!([SHED, SHED + 1].contains(&door.status().await));
        vms(&envoy, "created").await > created && vms(&envoy, "active").await == active
    })
    .await;
    load.goes_on(50).await;
    for _ in 0..50 {
        assert_eq!(door.status().await, SHED + 1);
    }
    assert_eq!(dead.counts().received, tried, "the dead upstream was tried");
    let tally = load.end().await;
    assert_eq!((tally.lost, tally.shed), (0, 0), "{tally:?}");
}
