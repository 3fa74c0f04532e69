//! Case 9: a policy is deleted.
//!
//! The service removes the objects that it created. If no replica runs at that moment, Kubernetes removes them, because
//! of the owner reference.

use std::sync::Arc;
use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::json;
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::{Controllers, MeshProxy, until};
use tidegate_testbed::upstream::Upstream;

use crate::load::{SHED, Steady};
use crate::mesh::{ConformanceMesh, is_guarded};

const NEW: IstioApi = IstioApi::TrafficExtension;

/// Waits until the listeners of a proxy no longer contain the filter.
async fn is_unguarded(envoy: &MeshProxy) {
    until("the filter is out of the listener", async || {
        let listeners = envoy
            .admin()
            .text("/config_dump?resource=dynamic_listeners")
            .await
            .unwrap();
        assert!(listeners.contains("http_connection_manager"));
        !listeners.contains("extensions.istio.io")
    })
    .await;
}

pub(crate) async fn deleting_a_policy_takes_the_filter_out_and_nothing_else(
    mesh: Arc<ConformanceMesh>,
) {
    let namespace = mesh.world.namespace("deleted").await;
    let upstream = Upstream::constant("shop", 64, Duration::from_millis(2))
        .await
        .unwrap();
    mesh.register(&namespace, "deleted.example", &upstream)
        .await;
    let envoy = mesh.gateway(&namespace, "deleted", "deleted.example").await;
    let other = mesh.gateway(&namespace, "another", "deleted.example").await;
    let settings = json!({"shed": {"status": SHED}});
    mesh.apply_policy(&namespace, "deleted", &settings).await;
    mesh.apply_policy(&namespace, "another", &settings).await;
    is_guarded(&envoy).await;
    is_guarded(&other).await;
    let load = Steady::start(envoy.addr(), 2);
    load.goes_on(50).await;

    let policies = mesh.world.policies(&namespace);
    let params = DeleteParams::default();
    policies.delete("deleted", &params).await.unwrap();

    is_unguarded(&envoy).await;
    load.goes_on(50).await;
    let tally = load.end().await;
    assert_eq!((tally.lost, tally.shed), (0, 0), "{tally:?}");
    let left = mesh.plugins(&namespace, NEW).await;
    assert_eq!(
        left,
        ["tidegate-another"],
        "the other policy's object stays"
    );
    is_guarded(&other).await;
}

pub(crate) async fn without_the_service_kubernetes_removes_what_a_policy_owned(
    _: Arc<ConformanceMesh>,
) {
    // The case has its own mesh, because it ends the service.
    let mut mesh = ConformanceMesh::start().await.unwrap();
    let _controllers = Controllers::start(&mesh.world.cluster).await.unwrap();
    let namespace = mesh.world.namespace("owned").await;
    let upstream = Upstream::constant("shop", 64, Duration::from_millis(2))
        .await
        .unwrap();
    mesh.register(&namespace, "owned.example", &upstream).await;
    let envoy = mesh.gateway(&namespace, "owned", "owned.example").await;
    mesh.apply_policy(&namespace, "owned", &json!({})).await;
    mesh.apply_policy(&namespace, "another", &json!({})).await;
    mesh.world.in_force(&namespace, "another").await;
    is_guarded(&envoy).await;
    mesh.replica.process.kill();

    let policies = mesh.world.policies(&namespace);
    let params = DeleteParams::default();
    policies.delete("owned", &params).await.unwrap();

    is_unguarded(&envoy).await;
    let left = mesh.plugins(&namespace, NEW).await;
    assert_eq!(
        left,
        ["tidegate-another"],
        "the other policy's object stays"
    );
}
