//! The native module: the service configures it, as it configures the WebAssembly module, and `tidegate render` prints it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tidegate_control::xds::NativeModule;
use tidegate_testbed::client::{Call, Caller};
use tidegate_testbed::envoy::{
    Cluster, DiscoveryProtocol, Envoy, Plugin, binary, native_module, release_module, search_path,
};
use tidegate_testbed::upstream::Upstream;

use crate::default_config::{observing, passes_then_follows};
use crate::stage::{ServingStage, policy, until};

const NATIVE: &str = "tidegate-native";

fn module() -> std::path::PathBuf {
    let module = native_module();
    assert!(
        module.is_file() && binary().is_file(),
        "{} is not there: make tools native",
        module.display()
    );
    module
}

/// An Envoy that gets the native module from the service.
async fn envoy(stage: &ServingStage, upstream: &Upstream, by: DiscoveryProtocol) -> Envoy {
    let plugin = Plugin::tidegate(&Value::Null).module(module());
    asking(stage, upstream, plugin.named(NATIVE), by).await
}

async fn asking(
    stage: &ServingStage,
    upstream: &Upstream,
    plugin: Plugin,
    by: DiscoveryProtocol,
) -> Envoy {
    Envoy::builder()
        .cluster(Cluster::new("main", upstream.addr()))
        .cluster(Cluster::new("control", stage.settings.xds).http2())
        .plugin(plugin.served("control", by))
        .start()
        .await
        .unwrap()
}

/// The state of a resource of the only proxy that has it, as the service reports it; null if there is none.
async fn resource(stage: &ServingStage, name: &str) -> Value {
    let proxies = stage.json("/v1/proxies").await;
    let proxies = proxies["proxies"].as_array().unwrap().clone();
    let found = proxies
        .iter()
        .map(|proxy| proxy["resources"][name].clone())
        .find(Value::is_object);
    found.unwrap_or(Value::Null)
}

async fn until_current(stage: &ServingStage, name: &str) {
    until(&format!("{name} is current"), async || {
        let resource = resource(stage, name).await;
        resource["running"].is_string() && resource["running"] == resource["wanted"]
    })
    .await;
}

/// A limit of one request in flight. Of several requests at once, the filter sheds all but one.
fn tight(name: &str) -> String {
    policy(name, "tidegate-testbed", 1).replace("{max: 1}", "{min: 1, max: 1, initial: 1}")
}

async fn shed_of_eight(envoy: &Envoy) -> usize {
    let caller = Caller::http1(envoy.addr());
    let calls = (0..8).map(|_| {
        let caller = caller.clone();
        tokio::spawn(async move { caller.call(&Call::get("/")).await.unwrap() })
    });
    let mut shed = 0;
    for call in calls.collect::<Vec<_>>() {
        let reply = call.await.unwrap();
        shed += usize::from(reply.details() == Some("tidegate_shed_limit"));
    }
    shed
}

async fn slow() -> Upstream {
    Upstream::constant("main", 1, Duration::from_secs(2))
        .await
        .unwrap()
}

fn status(stage: &ServingStage) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["status", "--server"])
        .arg(format!("http://{}", stage.settings.http))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), text)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make test-native"]
async fn one_service_serves_both_kinds_by_the_name_that_a_proxy_asks_for() {
    let stage = ServingStage::start().await;
    let upstream = slow().await;
    let native = envoy(&stage, &upstream, DiscoveryProtocol::Ecds).await;
    let wasm = Plugin::tidegate(&Value::Null);
    let wasm = asking(&stage, &upstream, wasm, DiscoveryProtocol::Ecds).await;
    for name in [NATIVE, "tidegate"] {
        until_current(&stage, name).await;
    }

    stage.write("a.yaml", &tight("tight"));
    until("both resources have the policy", async || {
        let policies = stage.json("/v1/policies").await;
        policies["policies"][0]["current"] == 2
    })
    .await;

    for envoy in [&native, &wasm] {
        let shed = shed_of_eight(envoy).await;
        assert!(shed >= 6, "only {shed} of 8 were shed at a limit of 1");
    }
    let (code, text) = status(&stage);
    assert_eq!(code, 0, "{text}");
    for name in [" tidegate-native ", " tidegate "] {
        let line = text.lines().find(|line| line.contains(name)).unwrap();
        assert!(line.contains("current"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make test-native"]
async fn a_change_is_in_force_in_every_dialect() {
    for by in DiscoveryProtocol::ALL {
        let stage = ServingStage::start().await;
        let upstream = slow().await;
        let envoy = envoy(&stage, &upstream, by).await;
        until_current(&stage, NATIVE).await;

        stage.write("a.yaml", &tight("tight"));
        until("the policy is current", async || {
            let policies = stage.json("/v1/policies").await;
            policies["policies"][0]["current"] == 1
        })
        .await;

        let shed = shed_of_eight(&envoy).await;
        assert!(shed >= 6, "{by:?}: only {shed} of 8 were shed");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make test-native"]
async fn requests_pass_before_the_service_answers_and_its_policy_stays() {
    let plugin = Plugin::tidegate(&observing()).module(module());

    passes_then_follows(plugin.named(NATIVE), NATIVE, DiscoveryProtocol::Ecds).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make test-native"]
async fn a_rejection_is_shown_and_the_previous_module_stays_in_force() {
    let mut stage = ServingStage::start().await;
    stage.write("a.yaml", &tight("tight"));
    let upstream = slow().await;
    let envoy = envoy(&stage, &upstream, DiscoveryProtocol::Ecds).await;
    until_current(&stage, NATIVE).await;
    let running = resource(&stage, NATIVE).await["running"].clone();

    // From now on, the service names a file that the proxy does not have.
    stage.stop().await;
    stage.settings.plugin.native.module = NativeModule::parse("/nowhere/libtidegate.so");
    stage.resume().await;
    until("the rejection is shown", async || {
        resource(&stage, NATIVE).await["lastRejected"].is_object()
    })
    .await;

    let resource = resource(&stage, NATIVE).await;
    assert_eq!(resource["lastRejected"]["version"], resource["wanted"]);
    assert_eq!(resource["running"], running);
    let message = resource["lastRejected"]["message"].as_str().unwrap();
    assert!(message.contains("/nowhere/libtidegate.so"), "{message}");
    let (code, text) = status(&stage);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("rejected: "), "{text}");
    let shed = shed_of_eight(&envoy).await;
    assert!(shed >= 6, "only {shed} of 8 were shed");
}

/// What `tidegate render` prints for a policy with a limit of one, as a filter of Envoy.
fn rendered(target: &str, module: &Path) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, tight("tight")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("render")
        .arg(file)
        .args(["--policy", "tight", "--target", target, "-o", "json"])
        .arg("--module")
        .arg(module)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make test-native"]
async fn what_render_prints_is_a_filter_that_envoy_takes() {
    let native = module();
    let targets = [
        ("wasm", release_module()),
        ("native", native.clone()),
        ("native", "tidegate".into()),
    ];
    for (target, path) in targets {
        let upstream = slow().await;
        let (variable, folder) = search_path(&native);
        let envoy = Envoy::builder()
            .cluster(Cluster::new("main", upstream.addr()))
            .filter(rendered(target, &path))
            .variable(variable, folder)
            .start()
            .await
            .unwrap();

        let shed = shed_of_eight(&envoy).await;
        assert!(
            shed >= 6,
            "{target} {}: only {shed} of 8 were shed",
            path.display()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make test-native"]
async fn what_render_prints_is_what_the_service_sends() {
    let mut stage = ServingStage::start().await;
    for (name, target) in [(NATIVE, "native"), ("tidegate", "wasm")] {
        stage.stop().await;
        stage.settings.plugin.native.module = NativeModule::parse(module().to_str().unwrap());
        stage.resume().await;
        stage.write("a.yaml", &tight("tight"));
        let upstream = slow().await;
        let (plugin, path) = if target == "native" {
            let plugin = Plugin::tidegate(&Value::Null).module(module());
            (plugin.named(NATIVE), module())
        } else {
            (Plugin::tidegate(&Value::Null), release_module())
        };
        let envoy = asking(&stage, &upstream, plugin, DiscoveryProtocol::Ecds).await;
        until(&format!("{name} is current"), async || {
            let policies = stage.json("/v1/policies").await;
            policies["policies"][0]["current"] == 1
        })
        .await;

        let dump = envoy
            .admin()
            .json("/config_dump?resource=ecds_filters")
            .await
            .unwrap();

        let sent = &dump["configs"][0]["ecds_filter"]["typed_config"];
        assert_eq!(*sent, rendered(target, &path)["typed_config"], "{dump:#}");
    }
}
