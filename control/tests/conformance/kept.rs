//! Case 5, with an agent: a policy is changed under load, and the VM stays.
//!
//! For each push, Istio changes a variable in the VM's environment, so that Envoy starts a new VM. The agent removes
//! that variable, so the filter takes the new configuration in the running VM. Envoy still makes one VM, to try the
//! configuration first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tidegate_meshbed::{ImageRegistry, until};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::agents::App;
use crate::load::{SHED, Steady};
use crate::mesh::{ConformanceMesh, runs_the_filter};

/// The service time of the workload at first.
const QUICK: Duration = Duration::from_millis(10);

/// The service time of the workload later. A filter that learned the first one sees a queue. A new filter takes the
/// later one as normal.
const SLOW: Duration = Duration::from_millis(120);

pub(crate) async fn a_push_through_an_agent_keeps_the_vm_and_loses_no_request(
    mesh: Arc<ConformanceMesh>,
) {
    let namespace = mesh.world.namespace("kept").await;
    let registry = ImageRegistry::start(mesh.world.cluster.folder())
        .await
        .unwrap();
    let image = registry.push().unwrap();
    let is_slow = Arc::<AtomicBool>::default();
    let workload = Upstream::builder("shop").script({
        let is_slow = Arc::clone(&is_slow);
        move |_| {
            let is_slow = is_slow.load(Ordering::Relaxed);
            Some(Script::after(if is_slow { SLOW } else { QUICK }))
        }
    });
    let workload = workload.start().await.unwrap();
    let app = App {
        namespace: &namespace,
        name: "shop",
        number: 51,
    };
    let shop = app.guard(&mesh, registry.address(), &workload).await;
    let admin = shop.agent.admin();
    let settings = |share: f64| json!({"shed": {"status": SHED, "maxShare": share}});
    app.plug_in(&mesh, &image, "FAIL_CLOSE", &settings(1.0))
        .await;
    runs_the_filter(admin).await;
    let baseline = async || {
        let metrics = admin.tidegate().await.unwrap();
        metrics.sum("baseline_rtt_us", "")
    };
    let created = async || {
        let stats = admin.stats("^wasm\\..*\\.created$").await.unwrap();
        stats.values().sum::<u64>()
    };
    let load = Steady::start(shop.address, 2);
    until(
        "the filter has learned the workload's latency",
        async || baseline().await > 0,
    )
    .await;
    load.goes_on(50).await;
    let (learned, before) = (baseline().await, created().await);

    is_slow.store(true, Ordering::Relaxed);
    app.plug_in(&mesh, &image, "FAIL_CLOSE", &settings(0.9))
        .await;
    until("the push has arrived", async || {
        let found = admin.text("/config_dump?resource=ecds_filters").await;
        found.is_ok_and(|text| text.contains("0.9"))
    })
    .await;
    load.goes_on(20).await;
    let (after, made) = (baseline().await, created().await - before);

    let tally = load.end().await;
    println!("baseline {learned} us, {after} us after the push; VMs made: {made}; {tally:?}");
    assert_eq!(
        (tally.lost, tally.shed),
        (0, 0),
        "two requests at a time are no overload: {tally:?}"
    );
    let slow = u64::try_from(SLOW.as_micros()).unwrap();
    assert!(
        (1..slow / 2).contains(&learned) && (1..slow / 2).contains(&after),
        "learned {learned} us, {after} us after the push"
    );
    assert!(
        made <= 1,
        "{made} VMs were made, but the workers keep their VMs"
    );
}
