//! The commands of the incident page. The tests read them from docs/incident.md, run those of `tidegate`, and send the others as kubectl does.

use std::fs;
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::until_equal;

use crate::follower::Follower;
use crate::incident_page::{PageCommand, SWITCH, annotations, switches};
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

/// The command writes through REST to the Lease, which the replicas follow.
pub(crate) async fn all_policies_go_off_and_on_by_the_page_s_commands(world: Arc<TestCluster>) {
    let api = IstioApi::TrafficExtension;
    // The page names the file `token`.
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, "a-token-for-the-test").unwrap();
    let options = ["--token-file", token.to_str().unwrap()];
    let service = Follower::with(&world, "incident-all", api, &options).await;
    service.put(POLICY, &spec(&json!({}))).await;
    service.until(POLICY, "Programmed", "True Programmed").await;
    let [off, on] = switches().try_into().unwrap();
    let run = async |arguments: Vec<String>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(arguments).current_dir(folder.path());
        command.env("TIDEGATE_SERVER", service.server());
        let output = tokio::task::spawn_blocking(move || command.output().unwrap());
        let output = output.await.unwrap();
        assert!(output.status.success(), "{output:?}");
    };

    run(off).await;
    let note = service.lease_annotation(SWITCH).await.unwrap_or_default();
    assert!(note.starts_with("incident 4711 (REST, "), "{note}");
    service.until(POLICY, "Programmed", "True Disabled").await;
    assert_eq!(
        loaded(&service, api).await["pluginConfig"]["enabled"],
        false
    );
    run(on).await;
    assert_eq!(service.lease_annotation(SWITCH).await, None);
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
