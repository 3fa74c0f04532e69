//! The commands of the incident page. The test reads them from docs/incident.md and sends them as kubectl does.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::until_equal;

use crate::follower::Follower;
use crate::incident_page::{PageCommand, SWITCH, annotations};
use crate::policies::spec;
use crate::world::TestCluster;

/// The policy that the page's commands name.
const POLICY: &str = "checkout";

/// The part of the policy's object that names the module and holds the filter's configuration.
async fn loaded(service: &Follower, api: IstioApi) -> Value {
    let spec = service.spec(&format!("tidegate-{POLICY}")).await;
    match api {
        IstioApi::TrafficExtension => spec["wasm"].clone(),
        IstioApi::WasmPlugin => spec,
    }
}

pub(crate) async fn a_policy_goes_off_and_on_by_the_page_s_commands(world: Arc<TestCluster>) {
    let namespace = "incident-policy";
    let api = IstioApi::TrafficExtension;
    let service = Follower::start(&world, namespace, api).await;
    service.put(POLICY, &spec(&json!({}))).await;
    service.until(POLICY, "Programmed", "True Programmed").await;
    let commands = PageCommand::all_for("breakerpolicy");
    let [off, on, tenth, all] = commands.as_slice() else {
        panic!("{} patches of policies on the page", commands.len());
    };

    off.send(&world.admin, namespace).await;
    service.until(POLICY, "Programmed", "True Disabled").await;
    assert_eq!(
        loaded(&service, api).await["pluginConfig"]["enabled"],
        false
    );
    on.send(&world.admin, namespace).await;
    service.until(POLICY, "Programmed", "True Programmed").await;
    assert_eq!(
        loaded(&service, api).await["pluginConfig"]["mode"],
        "observe"
    );
    for (command, share) in [(tenth, "0.1"), (all, "null")] {
        command.send(&world.admin, namespace).await;
        until_equal("the share to enforce", share, async || {
            loaded(&service, api).await["pluginConfig"]["enforcement"].to_string()
        })
        .await;
        assert_eq!(
            loaded(&service, api).await["pluginConfig"]["mode"],
            "enforce"
        );
    }

    let [set, removed] = annotations().try_into().unwrap();
    service.annotate_lease(SWITCH, set.as_deref()).await;
    service.until(POLICY, "Programmed", "True Disabled").await;
    assert_eq!(removed, None);
    service.annotate_lease(SWITCH, None).await;
    service.until(POLICY, "Programmed", "True Programmed").await;
    service.stop();
}

async fn objects_by_hand(world: Arc<TestCluster>, namespace: &str, api: IstioApi, resource: &str) {
    let service = Follower::start(&world, namespace, api).await;
    service.put(POLICY, &spec(&json!({}))).await;
    service.until(POLICY, "Programmed", "True Programmed").await;
    let commands = PageCommand::all_for(resource);
    let [off, in_the_end, open] = commands.as_slice() else {
        panic!("{} patches of {resource} on the page", commands.len());
    };

    off.send(&world.admin, namespace).await;
    service
        .until(POLICY, "Conflicted", "True FieldsAdded")
        .await;
    assert_eq!(
        loaded(&service, api).await["pluginConfig"]["enabled"],
        false
    );
    in_the_end.send(&world.admin, namespace).await;
    service
        .until(POLICY, "Conflicted", "False NoConflict")
        .await;
    assert_eq!(
        loaded(&service, api).await["pluginConfig"]["enabled"],
        Value::Null
    );

    // Without this command, the field has the value FAIL_RELOAD, which the service writes.
    open.send(&world.admin, namespace).await;
    service
        .until(POLICY, "Conflicted", "True FieldsTaken")
        .await;
    until_equal("the strategy", "FAIL_OPEN", async || {
        let found = loaded(&service, api).await["failStrategy"].clone();
        found.as_str().unwrap_or_default().to_owned()
    })
    .await;
    service.stop();
}

pub(crate) async fn traffic_extensions_are_switched_by_the_page_s_commands(
    world: Arc<TestCluster>,
) {
    let api = IstioApi::TrafficExtension;
    objects_by_hand(world, "incident-new", api, "trafficextension").await;
}

pub(crate) async fn wasm_plugins_are_switched_by_the_page_s_commands(world: Arc<TestCluster>) {
    objects_by_hand(world, "incident-old", IstioApi::WasmPlugin, "wasmplugin").await;
}
