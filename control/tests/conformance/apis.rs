//! Case 6: both of Istio's APIs.
//!
//! Where the API server does not know `TrafficExtension` yet, policies travel as `WasmPlugin`, which istiod translates by
//! itself. When an upgrade brings the new definition, the service moves over to it; the old object goes when the new one
//! is there.

use std::sync::Arc;

use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::definitions::{Kinds, install};
use tidegate_meshbed::until;

use crate::door::one_at_a_time;
use crate::load::SHED;
use crate::mesh::ConformanceMesh;
use crate::place::TestNamespace;

const NEW_KIND: &str = "trafficextensions.extensions.istio.io";

pub(crate) async fn without_traffic_extensions_wasm_plugins_carry_policies_and_an_upgrade_is_followed(
    _: Arc<ConformanceMesh>,
) {
    // Its API server lacks a kind, so that it has a mesh of its own.
    let mesh = ConformanceMesh::with_istio_kinds(|name| name != NEW_KIND)
        .await
        .unwrap();
    let place = TestNamespace::start(&mesh, "old").await;
    let (namespace, door) = ("old", &place.door);

    mesh.apply_policy(namespace, "old", &one_at_a_time(SHED))
        .await;
    let held = place.guarded(SHED).await;
    let old = mesh.plugins(namespace, IstioApi::WasmPlugin).await;
    assert_eq!(old, ["tidegate-old"]);

    let admin = &mesh.world.admin;
    install(admin, Kinds::Istio, |name| name == NEW_KIND)
        .await
        .unwrap();
    until("the new object has taken the old one's place", async || {
        // In this order: what moves between the two looks is seen twice, not missed.
        let old = mesh.plugins(namespace, IstioApi::WasmPlugin).await;
        let new = mesh.plugins(namespace, IstioApi::TrafficExtension).await;
        assert!(!old.is_empty() || !new.is_empty(), "neither is there");
        old.is_empty() && new == ["tidegate-old"]
    })
    .await;

    // Istio gives the translated object another name, by which the filter counts: the request under way is none of the
    // new filter's.
    door.answers(200).await;
    drop(held);
    let _held = place.taken(SHED).await;
    mesh.apply_policy(namespace, "old", &one_at_a_time(SHED + 1))
        .await;
    door.answers(SHED + 1).await;
}
