//! Versions of the module in the chart's values: the API server takes them from the service, and no others.

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tidegate_control::kube::istio::IstioApi;
use tidegate_control::resource::BreakerPolicy;
use tidegate_meshbed::{Replica, until};

use crate::installed::NAMESPACE;
use crate::{ReleaseCluster, setting};

const CANARY: &str = "https://modules.example.com/canary.wasm";
const SHA256: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// A version that the service's settings have, but not the chart's values.
const OTHER: &str = "other=https://modules.example.com/other.wasm#sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const DENIED: &str = "and the versions of the settings only";

fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "tidegate.dev/v1alpha1", "kind": "BreakerPolicy", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "slo": {"latency": {"quantile": 0.99, "target": "250ms"}},
            "module": name,
        },
    })
}

pub(crate) async fn the_api_server_takes_the_versions_of_the_chart_only(world: &ReleaseCluster) {
    let release = &world.release;
    let chart = release.chart();
    release.helm(&[
        "upgrade",
        "tidegate",
        chart.to_str().unwrap(),
        "--set",
        &format!("module.versions.canary.url={CANARY}"),
        "--set",
        &format!("module.versions.canary.sha256={SHA256}"),
    ]);
    let container = world.container().await;
    let versions = setting(&container, "TIDEGATE_EXTENSION_VERSION");
    let options = [
        [
            "--extension-url",
            &setting(&container, "TIDEGATE_EXTENSION_URL"),
        ],
        [
            "--extension-sha256",
            &setting(&container, "TIDEGATE_EXTENSION_SHA256"),
        ],
        ["--lease-name", &setting(&container, "TIDEGATE_LEASE_NAME")],
        [
            "--field-manager",
            &setting(&container, "TIDEGATE_FIELD_MANAGER"),
        ],
        ["--extension-version", &versions],
        ["--extension-version", OTHER],
    ];
    let user = world.account().await;
    let service = Replica::of(release.program())
        .options(&options.concat())
        .start(&world.cluster, &user, NAMESPACE)
        .await
        .unwrap();
    let policies: Api<BreakerPolicy> = Api::namespaced(world.admin.clone(), NAMESPACE);
    let how = PatchParams::apply("author");
    for name in ["canary", "other"] {
        let patch = Patch::Apply(policy(name));
        policies.patch(name, &how, &patch).await.unwrap();
    }

    let plugins: Api<DynamicObject> = Api::namespaced_with(
        world.admin.clone(),
        NAMESPACE,
        &IstioApi::TrafficExtension.resource(),
    );
    until("the version of the chart is written", async || {
        let plugin = plugins.get_opt("tidegate-canary").await.unwrap();
        plugin.is_some_and(|plugin| plugin.data["spec"]["wasm"]["url"] == CANARY)
    })
    .await;
    // Before the new rule is in force, the API server denies both, but with another message.
    until("the other version is denied", async || {
        let policy = policies.get("other").await.unwrap();
        let status = policy.status.unwrap_or_default();
        let mut conditions = status.conditions.into_iter();
        conditions.any(|one| one.reason == "Rejected" && one.message.contains(DENIED))
    })
    .await;
    assert!(plugins.get_opt("tidegate-other").await.unwrap().is_none());
    service.stop();
}
