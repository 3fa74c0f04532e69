//! Proxies that follow the discovery protocol.

use std::collections::HashMap;

use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use serde_json::{Value, json};

use crate::proxy::{DeltaProxy, TYPE, TestProxy, config, limit, node};
use crate::stage::{ServingStage, policy, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_no_policy_matches_observes() {
    let stage = ServingStage::start().await;
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge-1", "").await;

    let push = proxy.pushed().await;

    assert_eq!(push.type_url, TYPE);
    assert_eq!(config(&push.resources[0].value)["mode"], "observe");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_policy_is_pushed_to_affected_proxies_and_shown() {
    let stage = ServingStage::start().await;
    stage.write("a.yaml", &policy("a", "edge-*", 100));
    stage.write("b.yaml", &policy("b", "other-*", 100));
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge-1", "").await;
    let mut first = proxy.pushed().await;
    if limit(&first).is_null() {
        // The proxy connected before the service first read the directory.
        proxy.accept(&first).await;
        first = proxy.pushed().await;
    }
    assert_eq!(limit(&first), 100);
    proxy.accept(&first).await;

    // Only the second of these two policies affects the proxy. The proxy must not see the other one.
    stage.write("b.yaml", &policy("b", "other-*", 200));
    stage.write("a.yaml", &policy("a", "edge-*", 300));
    let second = proxy.pushed().await;
    assert_eq!(limit(&second), 300);
    let before = stage.resource().await;
    assert_eq!(before["running"], json!(first.version_info));
    assert_eq!(before["wanted"], json!(second.version_info));
    assert_eq!(before["isUnderWay"], json!(true));

    proxy.accept(&second).await;
    until("the acceptance is shown", async || {
        stage.resource().await["running"] == json!(second.version_info)
    })
    .await;
    let proxies = stage.json("/v1/proxies").await;
    assert_eq!(proxies["proxies"][0]["policy"], "a");
    assert_eq!(proxies["proxies"][0]["id"], "edge-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_reconnect_only_a_change_is_pushed() {
    let mut stage = ServingStage::start().await;
    stage.write("a.yaml", &policy("a", "*", 100));
    stage.stop().await;
    stage.resume().await;
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge-1", "").await;
    let first = proxy.pushed().await;
    assert_eq!(limit(&first), 100);
    proxy.accept(&first).await;
    stage.stop().await;
    assert_eq!(proxy.ended().await.code(), tonic::Code::Unavailable);

    stage.resume().await;
    let mut again = TestProxy::connect(stage.settings.xds, "edge-1", &first.version_info).await;
    until("it is known to be current", async || {
        stage.resource().await["running"] == json!(first.version_info)
    })
    .await;
    stage.write("a.yaml", &policy("a", "*", 200));

    // The first push on this stream must be the change.
    assert_eq!(limit(&again.pushed().await), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_is_shown_and_outlives_the_stream() {
    let stage = ServingStage::start().await;
    let mut proxy = TestProxy::connect(stage.settings.xds, "edge-1", "").await;
    let push = proxy.pushed().await;

    let rejection = TestProxy::rejection(&push, "no such module");
    proxy.requests.send(rejection).await.unwrap();
    until("the rejection is shown", async || {
        stage.resource().await["lastRejected"]["message"] == "no such module"
    })
    .await;
    let shown = stage.resource().await["lastRejected"].clone();
    assert_eq!(shown["version"], json!(push.version_info));
    drop(proxy);
    until("it is gone", async || stage.proxies().await == 0).await;

    let mut again = TestProxy::connect(stage.settings.xds, "edge-1", "").await;
    again.pushed().await;
    assert_eq!(stage.resource().await["lastRejected"], shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn incremental_streams_get_changes_and_resume() {
    let mut stage = ServingStage::start().await;
    let first = DeltaDiscoveryRequest {
        node: node("edge-1"),
        type_url: TYPE.to_owned(),
        resource_names_subscribe: vec!["tidegate".to_owned(), "ghost".to_owned()],
        ..DeltaDiscoveryRequest::default()
    };
    let mut proxy = DeltaProxy::connect(stage.settings.xds, first.clone()).await;
    let push = proxy.pushed().await;
    assert_eq!(push.removed_resources, ["ghost"]);
    let resource = &push.resources[0];
    let accept = DeltaDiscoveryRequest {
        type_url: TYPE.to_owned(),
        response_nonce: push.nonce.clone(),
        ..DeltaDiscoveryRequest::default()
    };
    proxy.requests.send(accept).await.unwrap();
    stage.stop().await;
    stage.resume().await;

    let versions = HashMap::from([("tidegate".to_owned(), resource.version.clone())]);
    let resumed = DeltaDiscoveryRequest {
        resource_names_subscribe: vec!["tidegate".to_owned()],
        initial_resource_versions: versions,
        ..first
    };
    let mut again = DeltaProxy::connect(stage.settings.xds, resumed).await;
    until("it is known to be current", async || {
        stage.resource().await["running"] == json!(resource.version)
    })
    .await;
    stage.write("a.yaml", &policy("a", "*", 200));
    let push = again.pushed().await;
    let body = &push.resources[0].resource.as_ref().unwrap().value;
    assert_eq!(config(body)["limit"]["max"], 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregated_discovery_answers_only_for_its_type() {
    let stage = ServingStage::start().await;
    let mut proxy = TestProxy::aggregated(stage.settings.xds, "edge-1").await;
    let clusters = DiscoveryRequest {
        type_url: "type.googleapis.com/envoy.config.cluster.v3.Cluster".to_owned(),
        ..proxy.first("")
    };

    proxy.requests.send(clusters).await.unwrap();
    proxy.ask("").await;

    let push = proxy.pushed().await;
    assert_eq!(push.type_url, TYPE);
    let proxies = stage.json("/v1/proxies").await;
    assert_eq!(proxies["proxies"][0]["api"], "ads");
    assert_ne!(proxies["proxies"][0]["resources"]["tidegate"], Value::Null);
}
