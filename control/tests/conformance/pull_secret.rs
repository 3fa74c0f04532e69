//! Case 4, third part: a registry that asks for a password.
//!
//! The plugin names a Secret of its namespace. istiod reads it and sends it along to the agents of the proxies that the
//! plugin is for, over TLS; the agent shows it to the registry and does not hand it on to Envoy. A Secret that is missing
//! or wrong is as good as a missing image, but for one thing: the agent is told when it changes, and tries again.

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

/// The realm of a challenge that agents of this version of Istio answer: an address that is not of the machine itself.
const REALM: &str = "https://registry.example.com/";

/// One that they do not, and that registries with a file of passwords give.
const PLAIN_REALM: &str = "Registry";

/// Another that they do not, and that Envoy's own filter for passwords gives.
const LOCAL_REALM: &str = "http://127.0.0.1/v2/";

/// Makes the Secret that `kubectl create secret docker-registry` makes, or changes it.
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

/// The plugin, with the Secret that is shown to the registry.
fn shown(secret: &str, mut plugin: Value) -> Value {
    plugin["spec"]["wasm"]["imagePullSecret"] = json!(secret);
    plugin
}

pub(crate) async fn a_registry_that_asks_for_a_password_is_shown_the_pull_secret(
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

    // Without the Secret, and with one that is wrong.
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

    // The right secret is enough; the plugin does not change.
    keep(&mesh, &namespace, "pull", RIGHT, &gate).await;
    runs_the_filter(api.agent.admin()).await;
    door.answers(200).await;
    let held = door.is_taken(&workload, SHED).await;
    let seen = api.agent.admin().text("/config_dump").await.unwrap();
    for kept_back in ["WASM_IMAGE_PULL_SECRET", RIGHT.password] {
        assert!(!seen.contains(kept_back), "Envoy was told {kept_back:?}");
    }

    // An agent that has the image does not ask for it again.
    keep(&mesh, &namespace, "pull", WRONG, &gate).await;
    let config = one_at_a_time(SHED + 1);
    let plugin = app.plugin(&image, "FAIL_CLOSE", &config);
    mesh.apply(&namespace, &shown("pull", plugin)).await;
    door.answers(SHED + 1).await;
    drop(held);

    // With the right Secret as well, a challenge can be one that the agent does not answer.
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
