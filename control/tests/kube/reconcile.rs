//! How policies become Istio's objects on a real API server, with its schemas and field managers.

use std::sync::Arc;

use kube::api::DeleteParams;
use serde_json::json;
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::until;

use crate::follower::Follower;
use crate::policies::spec;
use crate::service::MODULE;
use crate::world::TestCluster;

const NEW: IstioApi = IstioApi::TrafficExtension;
const OLD: IstioApi = IstioApi::WasmPlugin;

async fn follows(world: Arc<TestCluster>, namespace: &str, api: IstioApi) {
    let service = Follower::start(&world, namespace, api).await;
    let gateway =
        json!([{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "waypoint"}]);

    service.put("web", &spec(&json!({}))).await;
    let at_gateway = spec(&json!({"selector": null, "targetRefs": gateway}));
    service.put("gateway", &at_gateway).await;
    service.until("web", "Programmed", "True Programmed").await;
    service
        .until("gateway", "Programmed", "True Programmed")
        .await;

    let plugin = |spec: &serde_json::Value| match api {
        IstioApi::TrafficExtension => spec["wasm"].clone(),
        IstioApi::WasmPlugin => spec.clone(),
    };
    let written = service.spec("tidegate-web").await;
    assert_eq!(written["selector"]["matchLabels"]["app"], "web");
    assert_eq!(written["phase"], "STATS");
    assert_eq!(written["priority"], 11);
    assert_eq!(plugin(&written)["imagePullSecret"], "pull");
    assert_eq!(plugin(&written)["failStrategy"], "FAIL_RELOAD");
    let slo = json!({"slo": {"latency": {"quantile": 0.99, "target": "250ms"}}});
    assert_eq!(plugin(&written)["pluginConfig"], slo);
    assert_eq!(
        service.spec("tidegate-gateway").await["targetRefs"],
        gateway
    );
    assert_eq!(service.writes(), (2, 2), "one write each");

    service.put("web", &spec(&json!({"mode": "observe"}))).await;
    until("the change follows", async || {
        plugin(&service.spec("tidegate-web").await)["pluginConfig"]["mode"] == "observe"
    })
    .await;
    service.put("web", &spec(&json!({}))).await;
    until("the removed field is gone", async || {
        plugin(&service.spec("tidegate-web").await)["pluginConfig"] == slo
    })
    .await;

    service.remove("web").await;
    until("the object is deleted with its policy", async || {
        service.spec("tidegate-web").await.is_null()
    })
    .await;
    assert!(!service.spec("tidegate-gateway").await.is_null());
    service.stop();
}

pub(crate) async fn traffic_extensions_follow_policies(world: Arc<TestCluster>) {
    follows(world, "follow-new", NEW).await;
}

pub(crate) async fn wasm_plugins_follow_policies(world: Arc<TestCluster>) {
    follows(world, "follow-old", OLD).await;
}

pub(crate) async fn a_plugin_that_is_deleted_by_hand_comes_back(world: Arc<TestCluster>) {
    let service = Follower::start(&world, "by-hand", NEW).await;
    service.put("web", &spec(&json!({}))).await;
    service.until("web", "Programmed", "True Programmed").await;
    let before = service.objects().get("tidegate-web").await.unwrap();

    let params = DeleteParams::default();
    service
        .objects()
        .delete("tidegate-web", &params)
        .await
        .unwrap();

    until("the object is back", async || {
        let now = service.objects().get_opt("tidegate-web").await.unwrap();
        now.is_some_and(|now| now.metadata.uid != before.metadata.uid && now.data == before.data)
    })
    .await;
    service.stop();
}

pub(crate) async fn fields_that_another_owner_takes_stay_and_are_reported(world: Arc<TestCluster>) {
    let service = Follower::start(&world, "seized", NEW).await;
    service.put("web", &spec(&json!({}))).await;
    service.until("web", "Programmed", "True Programmed").await;

    let theirs = json!({"priority": 99, "match": [{"mode": "SERVER"}], "wasm": {"url": MODULE}});
    service.seize("tidegate-web", &theirs).await;
    service.until("web", "Conflicted", "True FieldsTaken").await;

    let message = service.message("web", "Conflicted").await;
    assert!(
        message.contains("somebody") && message.contains("priority"),
        "{message}"
    );
    assert_eq!(
        service.condition("web", "Programmed").await,
        "False Conflicted"
    );
    let object = service.spec("tidegate-web").await;
    assert_eq!(
        (&object["priority"], &object["match"][0]["mode"]),
        (&json!(99), &json!("SERVER"))
    );

    // The other owner writes the value that the service wants, so the conflict ends. The field that it added stays.
    let theirs = json!({"match": [{"mode": "SERVER"}], "priority": 11, "wasm": {"url": MODULE}});
    service.seize("tidegate-web", &theirs).await;
    service.until("web", "Conflicted", "False NoConflict").await;
    let object = service.spec("tidegate-web").await;
    assert_eq!(
        (&object["priority"], &object["match"][0]["mode"]),
        (&json!(11), &json!("SERVER"))
    );
    service.stop();
}

pub(crate) async fn an_object_of_another_owner_is_not_changed(world: Arc<TestCluster>) {
    let service = Follower::start(&world, "foreign", NEW).await;
    let theirs = json!({"lua": {"inlineCode": "function envoy_on_request(h) end"}});
    let before = service.make("tidegate-web", &theirs).await;
    let other = service.make("other", &theirs).await;

    service.put("web", &spec(&json!({}))).await;
    service.until("web", "Conflicted", "True NameTaken").await;
    let params = DeleteParams::default();
    let after = service.objects().get("tidegate-web").await.unwrap();
    assert_eq!(
        after.metadata.resource_version,
        before.metadata.resource_version
    );
    service
        .objects()
        .delete("tidegate-web", &params)
        .await
        .unwrap();

    service.until("web", "Programmed", "True Programmed").await;
    assert_eq!(
        service.condition("web", "Conflicted").await,
        "False NoConflict"
    );
    service.remove("web").await;
    until("the service's object is gone", async || {
        service.spec("tidegate-web").await.is_null()
    })
    .await;
    let after = service.objects().get("other").await.unwrap();
    assert_eq!(
        after.metadata.resource_version,
        other.metadata.resource_version
    );
    service.stop();
}

pub(crate) async fn an_overruled_policy_reports_it_and_takes_over_later(world: Arc<TestCluster>) {
    let service = Follower::start(&world, "contest", NEW).await;
    service.put("elder", &spec(&json!({}))).await;
    service
        .until("elder", "Programmed", "True Programmed")
        .await;
    // Creation times are whole seconds. If two are equal, the name decides.
    service.put("younger", &spec(&json!({}))).await;

    service
        .until("younger", "Conflicted", "True Overruled")
        .await;
    let status = service
        .policies()
        .get("younger")
        .await
        .unwrap()
        .status
        .unwrap();
    assert_eq!(status.overruled[0].by, "contest/elder");
    assert!(service.spec("tidegate-younger").await.is_null());

    service.remove("elder").await;
    service
        .until("younger", "Programmed", "True Programmed")
        .await;
    service.stop();
}

pub(crate) async fn an_error_that_only_the_service_finds_keeps_the_valid_version(
    world: Arc<TestCluster>,
) {
    let service = Follower::start(&world, "unsound", NEW).await;
    service
        .put("web", &spec(&json!({"limit": {"max": 50}})))
        .await;
    service.until("web", "Programmed", "True Programmed").await;
    let before = service.spec("tidegate-web").await;

    // The rule under `upstreams` contradicts an inherited value. CEL cannot see that.
    let wrong = json!({"limit": {"max": 50}, "upstreams": [{"match": {"service": "a"}, "limit": {"min": 60}}]});
    service.put("web", &spec(&wrong)).await;

    service.until("web", "Accepted", "False Invalid").await;
    let message = service.message("web", "Accepted").await;
    assert!(message.contains("upstreams[0].limit"), "{message}");
    assert_eq!(service.spec("tidegate-web").await, before);
    service.stop();
}

pub(crate) async fn an_annotation_of_the_lease_turns_all_policies_off(world: Arc<TestCluster>) {
    const SWITCH: &str = "tidegate.dev/disabled";
    let service = Follower::start(&world, "switched-off", NEW).await;
    service
        .put("web", &spec(&json!({"module": "canary"})))
        .await;
    service.until("web", "Programmed", "True Programmed").await;
    let wasm = async || service.spec("tidegate-web").await["wasm"].clone();
    assert_eq!(wasm().await["url"], "file:///canary.wasm");
    assert_eq!(wasm().await["pluginConfig"]["enabled"], json!(null));

    service.annotate_lease(SWITCH, Some("incident 4711")).await;
    service.until("web", "Programmed", "True Disabled").await;
    assert_eq!(wasm().await["pluginConfig"]["enabled"], false);
    let message = service.message("web", "Programmed").await;
    assert!(message.contains("lease: incident 4711"), "{message}");
    // A new policy is off as well. Writing its status takes some renewals of the Lease.
    let elsewhere = json!({"selector": {"matchLabels": {"app": "other"}}});
    service.put("other", &spec(&elsewhere)).await;
    service.until("other", "Programmed", "True Disabled").await;

    service.annotate_lease(SWITCH, None).await;
    service.until("web", "Programmed", "True Programmed").await;
    assert_eq!(wasm().await["pluginConfig"]["enabled"], json!(null));

    service
        .put("web", &spec(&json!({"module": "nightly"})))
        .await;
    service
        .until("web", "Accepted", "False ModuleNotAllowed")
        .await;
    assert_eq!(
        wasm().await["url"],
        "file:///canary.wasm",
        "the module stays"
    );
    service.stop();
}
