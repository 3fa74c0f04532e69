//! Case 6: both of Istio's APIs.
//!
//! If the API server does not know `TrafficExtension` yet, the service writes policies as `WasmPlugin`, which istiod
//! translates by itself. When an upgrade brings the new definition, the service switches to it. It removes the old
//! object once the new one exists.

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
    // It has a mesh of its own, because its API server lacks a kind.
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
        // With this order, an object that moves between the two look-ups is seen twice. With the other order it could
        // be missed.
        let old = mesh.plugins(namespace, IstioApi::WasmPlugin).await;
        let new = mesh.plugins(namespace, IstioApi::TrafficExtension).await;
        assert!(
            !old.is_empty() || !new.is_empty(),
            "there is neither an old object nor a new one"
        );
        old.is_empty() && new == ["tidegate-old"]
    })
    .await;

    // Istio gives the translated object another name, and the filter counts by that name. So the new filter does not count
    // the request under way.
    door.answers(200).await;
    drop(held);
    let _held = place.taken(SHED).await;
    mesh.apply_policy(namespace, "old", &one_at_a_time(SHED + 1))
        .await;
    door.answers(SHED + 1).await;
}
