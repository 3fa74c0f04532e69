//! Case 4, third part: a registry that asks for a password.
//!
//! The plugin object names a Secret of its namespace. istiod reads it and sends it over TLS to the agents of the
//! proxies that the plugin object is for. The agent shows it to the registry and does not pass it on to Envoy. A Secret
//! that is missing or wrong has the same effect as a missing image, with one difference: the agent learns when the
//! Secret changes, and tries again.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tidegate_meshbed::{ImageRegistry, Login, LoginGate};
use tidegate_testbed::client::Caller;

use crate::agents::{ALLOWS, App, DENIES, REFUSED};
use crate::door::{self, MeshDoor, one_at_a_time};
use crate::load::SHED;
use crate::mesh::{ConformanceMesh, runs_the_filter};

const RIGHT: Login<'_> = Login {
    name: "puller",
    password: "right",
};
const WRONG: Login<'_> = Login {
    name: "puller",
    password: "wrong",
};

/// The realm of a challenge that agents of this version of Istio answer. It names another machine.
const REALM: &str = "https://registry.example.com/";

/// A realm that agents do not answer. Registries with a password file send it.
const PLAIN_REALM: &str = "Registry";

/// Another realm that agents do not answer. Envoy's own filter for passwords sends it.
const LOCAL_REALM: &str = "http://127.0.0.1/v2/";

/// Creates or changes the Secret that `kubectl create secret docker-registry` creates.
async fn keep(
    mesh: &ConformanceMesh,
    namespace: &str,
    name: &str,
    login: Login<'_>,
    gate: &LoginGate,
) {
    let secrets: Api<Secret> = Api::namespaced(mesh.world.admin.clone(), namespace);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": login.docker_config(gate.address()).to_string()},
    });
    let how = PatchParams::apply("operator").force();
    secrets
        .patch(name, &how, &Patch::Apply(&secret))
        .await
        .unwrap();
}

/// The plugin object, with the Secret for the registry.
fn shown(secret: &str, mut plugin: Value) -> Value {
    plugin["spec"]["wasm"]["imagePullSecret"] = json!(secret);
    plugin
}

pub(crate) async fn a_registry_that_asks_for_a_password_gets_the_pull_secret(
    mesh: Arc<ConformanceMesh>,
) {
    let namespace = mesh.world.namespace("secret").await;
    let folder = mesh.world.cluster.folder();
    let registry = ImageRegistry::start(folder).await.unwrap();
    let gate = LoginGate::start(&registry, RIGHT, REALM, folder)
        .await
        .unwrap();
    let image = gate.push(RIGHT, folder).unwrap();
    let anonymous = Caller::http1(gate.address()).get("/v2/").await.unwrap();
    assert_eq!(anonymous.status, 401);
    let workload = door::upstream("api").await;
    let app = App {
        namespace: &namespace,
        name: "api",
        number: 51,
    };
    let api = app.guard(&mesh, gate.address(), &workload).await;
    let door = MeshDoor::at(api.address);
    door.answers(200).await;

    // Without the Secret, and with a wrong Secret.
    for login in [None, Some(WRONG)] {
        if let Some(login) = login {
            keep(&mesh, &namespace, "pull", login, &gate).await;
        }
        for (strategy, status, name) in
            [("FAIL_OPEN", 200, ALLOWS), ("FAIL_CLOSE", REFUSED, DENIES)]
        {
            let config = one_at_a_time(SHED);
            let plugin = app.plugin(&image, strategy, &config);
            mesh.apply(&namespace, &shown("pull", plugin)).await;
            api.stands_in(name).await;
            door.answers(status).await;
        }
    }

    // The right Secret is enough. The plugin object does not change.
    keep(&mesh, &namespace, "pull", RIGHT, &gate).await;
    runs_the_filter(api.agent.admin()).await;
    door.answers(200).await;
    let held = door.is_taken(&workload, SHED).await;
    let seen = api.agent.admin().text("/config_dump").await.unwrap();
    for kept_back in ["WASM_IMAGE_PULL_SECRET", RIGHT.password] {
        assert!(!seen.contains(kept_back), "Envoy got {kept_back:?}");
    }

    // An agent that has the image does not ask for it again.
    keep(&mesh, &namespace, "pull", WRONG, &gate).await;
    let config = one_at_a_time(SHED + 1);
    let plugin = app.plugin(&image, "FAIL_CLOSE", &config);
    mesh.apply(&namespace, &shown("pull", plugin)).await;
    door.answers(SHED + 1).await;
    drop(held);

    // The agent does not answer some challenges, even with the right Secret.
    for (realm, strategy, status, name) in [
        (PLAIN_REALM, "FAIL_CLOSE", REFUSED, DENIES),
        (LOCAL_REALM, "FAIL_OPEN", 200, ALLOWS),
    ] {
        let other = LoginGate::start(&registry, RIGHT, realm, folder)
            .await
            .unwrap();
        let image = other.push(RIGHT, folder).unwrap();
        keep(&mesh, &namespace, "other", RIGHT, &other).await;
        let plugin = app.plugin(&image, strategy, &config);
        mesh.apply(&namespace, &shown("other", plugin)).await;
        api.stands_in(name).await;
        door.answers(status).await;
    }

    let log = api.agent.log();
    for why in [
        "missing image pulling secret",
        "401 Unauthorized",
        "realm scheme \"\" not allowed",
        "realm targets private/loopback/link-local IP",
    ] {
        assert!(log.contains(why), "the agent's log does not say {why:?}");
    }
}
