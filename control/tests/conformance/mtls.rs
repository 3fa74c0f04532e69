//! Case 4, first half: two sidecars that speak mTLS, and the module from a registry.
//!
//! The agents get both certificates from istiod. The module comes as an image, and the plugin object names its digest.
//! The module runs where requests arrive, and identifies the callers by their certificates.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::json;
use tidegate_meshbed::{ImageRegistry, ports, until};
use tidegate_testbed::upstream::{RequestHead, Script, Upstream};

use crate::agents::App;
use crate::door::{HELD, MeshDoor, one_at_a_time};
use crate::load::SHED;
use crate::mesh::{ConformanceMesh, runs_the_filter};

const HOST: &str = "api.mtls.svc.cluster.local";
const WEB: &str = "spiffe://cluster.local/ns/mtls/sa/web";
const API: &str = "spiffe://cluster.local/ns/mtls/sa/api";

/// Answers 200 if the sidecar confirms both certificates: the request is from `web` and for `api`.
fn vouched_for(request: &RequestHead) -> Script {
    let header = request.headers.get("x-forwarded-client-cert");
    let vouched = header.and_then(|value| value.to_str().ok()).unwrap_or("");
    let is_so = vouched.contains(&format!("By={API}")) && vouched.contains(&format!("URI={WEB}"));
    match request.path.as_str() {
        HELD => Script::Hang,
        _ => Script::status(if is_so { 200 } else { 421 }),
    }
}

pub(crate) async fn a_module_from_a_registry_guards_a_service_behind_mtls(
    mesh: Arc<ConformanceMesh>,
) {
    let namespace = mesh.world.namespace("mtls").await;
    let registry = ImageRegistry::start(mesh.world.cluster.folder())
        .await
        .unwrap();
    let image = registry.push().unwrap();
    let workload = Upstream::builder("api").script(|request| Some(vouched_for(request)));
    let workload = workload.start().await.unwrap();
    let app = |name, number| App {
        namespace: &namespace,
        name,
        number,
    };
    let api = app("api", 21)
        .guard(&mesh, registry.address(), &workload)
        .await;
    require_mtls(&mesh, &namespace, api.address).await;
    let port = ports::free();
    let listeners = json!({"egress": [{
        "port": {"number": port, "name": "http", "protocol": "HTTP_PROXY"},
        "bind": "127.0.0.1", "captureMode": "NONE", "hosts": ["./*"],
    }]});
    let _web = app("web", 22)
        .start(&mesh, registry.address(), &listeners)
        .await;
    let door = MeshDoor::to(([127, 0, 0, 1], port).into(), HOST);
    door.answers(200).await;
    until("no client gets in without a certificate", async || {
        MeshDoor::at(api.address).status().await == 0
    })
    .await;

    let mut config = one_at_a_time(SHED);
    config["criticality"] = json!({"rules": [{"clientIdentity": WEB, "criticality": "sheddable"}]});
    let plugin = app("api", 21);
    plugin.plug_in(&mesh, &image, "FAIL_CLOSE", &config).await;
    runs_the_filter(api.agent.admin()).await;
    door.answers(200).await;
    let held = door.is_taken(&workload, SHED).await;

    let inbound = format!("inbound|{}||", api.address.port());
    until(
        "the caller's class is that of its certificate",
        async || {
            let metrics = api.agent.admin().tidegate().await.unwrap();
            let labels = [("criticality", "sheddable")];
            metrics.value("class_shed_total", &inbound, &labels) > Some(0)
        },
    )
    .await;
    drop(held);
    door.answers(200).await;
}

/// Makes `api` a service that accepts only connections with certificates. Only its own namespace knows of it, because
/// the proxies of other cases have no certificates and would wait for them.
async fn require_mtls(mesh: &ConformanceMesh, namespace: &str, address: SocketAddr) {
    for document in [
        json!({
            "apiVersion": "security.istio.io/v1", "kind": "PeerAuthentication",
            "metadata": {"name": "default"}, "spec": {"mtls": {"mode": "STRICT"}},
        }),
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
            "metadata": {"name": "api"},
            "spec": {
                "hosts": [HOST], "location": "MESH_INTERNAL", "resolution": "STATIC",
                "ports": [{"number": 80, "name": "http", "protocol": "HTTP", "targetPort": address.port()}],
                "endpoints": [{"address": address.ip().to_string(), "serviceAccount": "api"}],
                "subjectAltNames": [API], "exportTo": ["."],
            },
        }),
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "DestinationRule",
            "metadata": {"name": "api"},
            "spec": {
                "host": HOST, "trafficPolicy": {"tls": {"mode": "ISTIO_MUTUAL"}}, "exportTo": ["."],
            },
        }),
    ] {
        mesh.apply(namespace, &document).await;
    }
}
