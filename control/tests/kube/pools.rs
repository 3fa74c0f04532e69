//! Istio's static pools on a real API server: the condition of a policy if a pool is tighter than its limit.

use std::sync::Arc;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::definitions::{Kinds, install};

use crate::follower::Follower;
use crate::policies::spec;
use crate::world::TestCluster;

const DEFINITION: &str = "destinationrules.networking.istio.io";
const CONDITION: &str = "Constrained";

fn rules(world: &TestCluster, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("networking.istio.io", "v1", "DestinationRule");
    let resource = ApiResource::from_gvk_with_plural(&kind, "destinationrules");
    Api::namespaced_with(world.admin.clone(), namespace, &resource)
}

/// Applies a rule for `cart` with `connections` as its maximum, as an operator.
async fn bound(world: &TestCluster, namespace: &str, connections: u32) {
    let document = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "DestinationRule",
        "metadata": {"name": "cart"},
        "spec": {
            "host": "cart",
            "trafficPolicy": {"connectionPool": {"tcp": {"maxConnections": connections}}},
        },
    });
    let params = PatchParams::apply("operator").force();
    rules(world, namespace)
        .patch("cart", &params, &Patch::Apply(&document))
        .await
        .unwrap();
}

pub(crate) async fn a_pool_that_is_tighter_than_the_policy_is_a_condition(_: Arc<TestCluster>) {
    // The case has its own API server, because it adds a definition.
    let world = Arc::new(TestCluster::start().await.unwrap());
    let service = Follower::start(&world, "pools", IstioApi::TrafficExtension).await;
    let limits = spec(&json!({"limit": {"min": 10, "max": 200}}));
    service.put("web", &limits).await;
    service.until("web", "Programmed", "True Programmed").await;
    assert_eq!(service.condition("web", CONDITION).await, "");

    install(&world.admin, Kinds::Istio, |name| name == DEFINITION)
        .await
        .unwrap();
    service
        .until("web", CONDITION, "False NotConstrained")
        .await;

    bound(&world, "pools", 5).await;
    service
        .until("web", CONDITION, "True PoolBelowMinimum")
        .await;
    assert_eq!(
        service.message("web", CONDITION).await,
        "DestinationRule pools/cart: tcp.maxConnections: 5 (one request each in HTTP/1.1) bounds a proxy to 5 requests in flight to cart.pools, below limit.min 10 of a proxy"
    );
    bound(&world, "pools", 100).await;
    service
        .until("web", CONDITION, "True PoolBelowMaximum")
        .await;
    let (_, statuses) = service.writes();

    // A change that leaves the bounds as they are changes no status.
    let label = json!({"metadata": {"labels": {"team": "shop"}}});
    rules(&world, "pools")
        .patch("cart", &PatchParams::default(), &Patch::Merge(&label))
        .await
        .unwrap();
    service.put("other", &crate::policies::for_others()).await;
    service
        .until("other", CONDITION, "True PoolBelowMaximum")
        .await;
    let of_web = service.writes().1 - statuses;
    assert!(of_web <= 2, "only the new policy has writes: {of_web}");

    rules(&world, "pools")
        .delete("cart", &DeleteParams::default())
        .await
        .unwrap();
    for name in ["web", "other"] {
        service.until(name, CONDITION, "False NotConstrained").await;
    }
    service.stop();
}
