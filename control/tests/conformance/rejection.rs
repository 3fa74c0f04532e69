//! Case 8: a policy that is not valid.
//!
//! The API server rejects nearly every such policy when it is applied. The rules of the API server cannot express some
//! errors. The service rejects those with the filter's own message. Proxies then keep their configuration.

use std::sync::Arc;

use serde_json::json;
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::MeshProxy;

use crate::door::one_at_a_time;
use crate::load::SHED;
use crate::mesh::{ConformanceMesh, is_guarded};
use crate::place::TestNamespace;
use crate::policies::{spec, try_create};

pub(crate) async fn an_error_that_the_definition_finds_is_rejected_on_apply(
    mesh: Arc<ConformanceMesh>,
) {
    for (wrong, field, expected) in [
        (
            json!({"slo": {"latency": {"quantile": 99}}}),
            "spec.slo.latency.quantile",
            "a number from 0.5 to 0.999",
        ),
        (
            json!({"slo": {"latency": {"target": "soon"}}}),
            "spec.slo.latency.target",
            "a duration from 1ms to 10m such as \"250ms\"",
        ),
        (
            json!({"mode": "enforced"}),
            "spec.mode",
            "supported values: \"observe\", \"enforce\"",
        ),
        (
            json!({"limit": {"min": 10, "max": 9}}),
            "spec.limit",
            "limit.max must be at least limit.min",
        ),
        (
            json!({"slo": {"latency": {"until": "body"}}}),
            "spec.slo.latency.until",
            "supported values: \"headers\", \"firstByte\", \"end\"",
        ),
        (
            json!({"limit": {"maxOpen": 0}}),
            "spec.limit.maxOpen",
            "greater than or equal to 1",
        ),
        (
            json!({"limit": {"min": 10, "maxOpen": 9}}),
            "spec.limit",
            "limit.maxOpen must be at least limit.min",
        ),
        (json!({"slo": null}), "spec.slo", "Required value"),
    ] {
        let rejected = try_create(&mesh.world.admin, &spec(&wrong)).await;

        let causes = rejected.err().unwrap_or_default();
        let is_told = causes
            .iter()
            .any(|cause| cause.field == field && cause.message.contains(expected));
        assert!(is_told, "{wrong}: {causes:?}");
    }
}

/// What was pushed to a proxy so far: the version of the object, and whether Envoy accepted it.
async fn pushed(mesh: &ConformanceMesh, envoy: &MeshProxy) -> (Option<String>, Vec<u64>) {
    let plugins = mesh.world.plugins("unsound", IstioApi::TrafficExtension);
    let object = plugins.get("tidegate-unsound").await.unwrap();
    let stats = envoy
        .admin()
        .stats("extension_config_discovery.*(config_reload|config_fail|update_rejected)$")
        .await
        .unwrap();
    assert_eq!(
        stats.len(),
        3,
        "one of three metric names is unknown: {stats:?}"
    );
    (
        object.metadata.resource_version,
        stats.into_values().collect(),
    )
}

pub(crate) async fn what_only_the_filter_could_reject_is_not_pushed_to_it(
    mesh: Arc<ConformanceMesh>,
) {
    let place = TestNamespace::start(&mesh, "unsound").await;
    let (namespace, door) = ("unsound", &place.door);
    mesh.apply_policy(namespace, "unsound", &one_at_a_time(SHED))
        .await;
    let _held = place.guarded(SHED).await;
    let before = pushed(&mesh, &place.envoy).await;

    // The rule contradicts a value that it inherits. The API server's rules cannot see that.
    let mut wrong = one_at_a_time(SHED + 1);
    wrong["upstreams"] = json!([{"match": {"service": "a"}, "limit": {"min": 60}}]);
    mesh.apply_policy(namespace, "unsound", &wrong).await;
    mesh.world
        .until_condition(namespace, "unsound", "Accepted", "False Invalid")
        .await;

    let (_, message) = mesh.world.condition(namespace, "unsound", "Accepted").await;
    assert!(
        message.contains("upstreams[0].limit") && message.contains("expected"),
        "{message}"
    );
    // If the policy were pushed, this would happen before the next push.
    let other = mesh.gateway(namespace, "sound", "unsound.example").await;
    mesh.apply_policy(namespace, "sound", &one_at_a_time(SHED))
        .await;
    is_guarded(&other).await;
    assert_eq!(
        pushed(&mesh, &place.envoy).await,
        before,
        "nothing was pushed to this proxy"
    );
    assert_eq!(
        door.status().await,
        SHED,
        "the last valid configuration is in force"
    );
}
