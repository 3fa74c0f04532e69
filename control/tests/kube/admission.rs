//! The admission policy that is installed with the service. With it, the account of the service cannot put any module
//! into proxies except the installed one, even if its token is stolen.
//!
//! The tests apply the objects that ship: those of the base for kustomize, which is rendered from the chart.

use std::sync::Arc;

use kube::Error;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::{User, until};

use crate::policies::spec;
use crate::service::{Rights, account, run};
use crate::world::TestCluster;

/// The objects of the base, and the namespace in which they expect the service.
const BASE: &str = "../manifests/kustomize/base/control.yaml";
const NAMESPACE: &str = "tidegate-system";
const ACCOUNT: &str = "tidegate";

/// The module that the base names.
const URL: &str = "oci://registry.example.com/tidegate/filter:0.1.0";
const SHA256: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A module that was not installed.
fn theirs() -> Value {
    json!({"url": "https://evil.example/x.wasm", "sha256": "e".repeat(64)})
}

/// An API server on which the admission policy is in force for the service's account.
async fn guarded() -> (TestCluster, User) {
    let world = TestCluster::start().await.unwrap();
    world.namespace(NAMESPACE).await;
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(BASE);
    let text = std::fs::read_to_string(path).unwrap();
    for document in text.split("\n---\n") {
        let object: Value = serde_saphyr::from_str(document).unwrap();
        // The text before the first object is a comment, so it has no kind.
        let kind = object["kind"].as_str().unwrap_or_default();
        if !kind.starts_with("ValidatingAdmissionPolicy") {
            continue;
        }
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        let api: Api<DynamicObject> =
            Api::all_with(world.admin.clone(), &ApiResource::from_gvk(&kind));
        let how = PatchParams::apply("installer");
        api.patch(ACCOUNT, &how, &Patch::Apply(&object))
            .await
            .unwrap();
    }
    let user = account(&world, NAMESPACE, ACCOUNT, Rights::Cluster).await;
    let client = world.cluster.client(&user).await.unwrap();
    // The API server takes a moment to put a new admission policy in force. A dry run writes nothing.
    let how = PatchParams::apply("nobody").force().dry_run();
    for api in IstioApi::ALL {
        let spec = module(api, theirs());
        until(&format!("{} is guarded", api.kind()), async || {
            is_denied(&write(&client, api, "probe", &spec, &how).await)
        })
        .await;
    }
    (world, user)
}

/// Applies an object of Istio with this content in its spec.
async fn write(
    client: &kube::Client,
    api: IstioApi,
    name: &str,
    spec: &Value,
    how: &PatchParams,
) -> Result<DynamicObject, Error> {
    let objects: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), NAMESPACE, &api.resource());
    let object = object(api, name, spec);
    objects.patch(name, how, &Patch::Apply(&object)).await
}

/// Whether the admission policy rejected the write.
fn is_denied(written: &Result<DynamicObject, Error>) -> bool {
    match written {
        Err(Error::Api(status)) => status.message.contains("ValidatingAdmissionPolicy"),
        _ => false,
    }
}

/// An object of Istio with this content in its spec.
fn object(api: IstioApi, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "extensions.istio.io/v1alpha1", "kind": api.kind(),
        "metadata": {"name": name}, "spec": spec,
    })
}

/// The spec of such an object, with this module.
fn module(api: IstioApi, module: Value) -> Value {
    match api {
        IstioApi::WasmPlugin => module,
        IstioApi::TrafficExtension => json!({"wasm": module}),
    }
}

pub(crate) async fn a_stolen_token_puts_no_other_code_into_proxies(_: Arc<TestCluster>) {
    let (world, user) = guarded().await;
    let thief = world.cluster.client(&user).await.unwrap();
    let how = PatchParams::apply("thief").force();
    for api in IstioApi::ALL {
        let ours = module(api, json!({"url": URL, "sha256": SHA256}));
        write(&thief, api, "second", &ours, &how).await.unwrap();
        for wrong in [
            json!({"url": URL, "sha256": "e".repeat(64)}),
            json!({"url": URL}),
            json!({"url": "oci://evil.example/x:1", "sha256": SHA256}),
        ] {
            let spec = module(api, wrong.clone());
            for name in ["first", "second"] {
                let written = write(&thief, api, name, &spec, &how).await;
                assert!(is_denied(&written), "{} {name}: {wrong}", api.kind());
            }
        }
        // The admission policy applies only to the service's account.
        let spec = module(api, theirs());
        write(&world.admin, api, "third", &spec, &how)
            .await
            .unwrap();
    }
    let lua = json!({"lua": {"inlineCode": "function envoy_on_request() end"}});
    let written = write(&thief, IstioApi::TrafficExtension, "fourth", &lua, &how).await;
    assert!(is_denied(&written), "Lua is code as well");
}

pub(crate) async fn the_service_writes_the_module_that_is_installed_and_no_other(
    _: Arc<TestCluster>,
) {
    let (world, user) = guarded().await;
    let options = ["--extension-url", URL, "--extension-sha256", SHA256];
    let replica = run(&world, &user, NAMESPACE, &options).await;
    world.apply(NAMESPACE, "shop", &spec(&json!({}))).await;
    world.in_force(NAMESPACE, "shop").await;
    drop(replica);

    let other = [
        "--extension-url",
        "oci://registry.example.com/tidegate/filter:0.2.0",
        "--extension-sha256",
        SHA256,
    ];
    let _replica = run(&world, &user, NAMESPACE, &other).await;

    world
        .until_condition(NAMESPACE, "shop", "Programmed", "False Rejected")
        .await;
    let (_, message) = world.condition(NAMESPACE, "shop", "Programmed").await;
    assert!(
        message.contains(&format!("the module {URL} only")),
        "{message}"
    );
}

pub(crate) async fn proxies_are_named_from_the_namespaces_of_the_service_only(
    world: Arc<TestCluster>,
) {
    let (own, tenant) = (
        world.namespace("edge").await,
        world.namespace("tenant").await,
    );
    let user = account(&world, &own, "edge", Rights::Cluster).await;
    let options = ["--proxy-namespace", &own];
    let _replica = crate::service::start(&world, &user, &own, &options).await;
    let edge = spec(&json!({"selector": null, "proxies": [{"id": "edge-1"}]}));

    world.apply(&own, "edge", &edge).await;
    world.apply(&tenant, "seize", &edge).await;

    world
        .until_condition(&own, "edge", "Programmed", "True Served")
        .await;
    for kind in ["Accepted", "Programmed"] {
        world
            .until_condition(&tenant, "seize", kind, "False ProxiesNotAllowed")
            .await;
    }
    let (_, message) = world.condition(&tenant, "seize", "Accepted").await;
    assert!(
        message.contains("a policy of the namespace tenant"),
        "{message}"
    );
}
