//! Case 10: competing owners.
//!
//! There are three contests: two policies for one target, a plugin object of another owner with the same name, and a
//! field that another owner took. In each, traffic behaves as documented, and conditions and Events name the conflict.

use std::sync::Arc;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::until;
use tidegate_testbed::client::Caller;
use tidegate_testbed::envoy::release_module;

use crate::door::one_at_a_time;
use crate::load::SHED;
use crate::mesh::ConformanceMesh;
use crate::place::TestNamespace;
use crate::policies::spec;

const NEW: IstioApi = IstioApi::TrafficExtension;

/// Applies an object of Istio by force, as another client.
async fn somebody_applies(mesh: &ConformanceMesh, namespace: &str, name: &str, spec: &Value) {
    let document = json!({
        "apiVersion": "extensions.istio.io/v1alpha1", "kind": NEW.kind(),
        "metadata": {"name": name}, "spec": spec,
    });
    let how = PatchParams::apply("somebody").force();
    let plugins = mesh.world.plugins(namespace, NEW);
    plugins
        .patch(name, &how, &Patch::Apply(&document))
        .await
        .unwrap();
}

/// Waits until an Event about a policy gives this reason.
async fn event(mesh: &ConformanceMesh, namespace: &str, policy: &str, reason: &str) {
    until(
        &format!("an Event about {policy} says {reason}"),
        async || {
            let events = mesh
                .world
                .events(namespace)
                .list(&ListParams::default())
                .await
                .unwrap();
            events.items.iter().any(|event| {
                let about = event
                    .regarding
                    .as_ref()
                    .and_then(|object| object.name.as_deref());
                about == Some(policy) && event.reason.as_deref() == Some(reason)
            })
        },
    )
    .await;
}

pub(crate) async fn the_older_of_two_policies_for_one_target_is_in_traffic(
    mesh: Arc<ConformanceMesh>,
) {
    let place = TestNamespace::start(&mesh, "contest").await;
    let (namespace, door) = ("contest", &place.door);
    let policy = |status: u16| {
        let mut spec = spec(&one_at_a_time(status));
        spec["selector"] = json!({"matchLabels": {"app": "contest"}});
        spec
    };
    mesh.world.apply(namespace, "elder", &policy(SHED)).await;
    let _held = place.guarded(SHED).await;

    mesh.world
        .apply(namespace, "younger", &policy(SHED + 1))
        .await;
    mesh.world
        .until_condition(namespace, "younger", "Conflicted", "True Overruled")
        .await;
    let (_, message) = mesh
        .world
        .condition(namespace, "younger", "Conflicted")
        .await;
    assert!(message.contains("elder"), "{message}");
    event(&mesh, namespace, "younger", "Overruled").await;
    assert_eq!(mesh.plugins(namespace, NEW).await, ["tidegate-elder"]);
    assert_eq!(door.status().await, SHED);

    let policies = mesh.world.policies(namespace);
    policies
        .delete("elder", &DeleteParams::default())
        .await
        .unwrap();
    // The filter of the younger policy has its own name, and so its own counts. It does not count the request under way.
    door.answers(200).await;
    let _held = place.taken(SHED + 1).await;
    mesh.world
        .until_condition(namespace, "younger", "Conflicted", "False NoConflict")
        .await;
}

pub(crate) async fn an_object_of_another_owner_with_the_same_name_stays(
    mesh: Arc<ConformanceMesh>,
) {
    let place = TestNamespace::start(&mesh, "foreign").await;
    let namespace = "foreign";
    let code = "function envoy_on_response(h) h:headers():add('x-theirs', 'yes') end";
    let theirs = json!({
        "selector": {"matchLabels": {"app": "foreign"}}, "lua": {"inlineCode": code},
    });
    somebody_applies(&mesh, namespace, "tidegate-foreign", &theirs).await;
    let caller = Caller::http1(place.envoy.addr());
    let is_theirs = async || {
        let reply = caller.get("/").await;
        reply.is_ok_and(|reply| reply.header("x-theirs") == Some("yes"))
    };
    until("the other owner's object is in traffic", is_theirs).await;

    mesh.apply_policy(namespace, "foreign", &one_at_a_time(SHED))
        .await;
    mesh.world
        .until_condition(namespace, "foreign", "Conflicted", "True NameTaken")
        .await;
    event(&mesh, namespace, "foreign", "NameTaken").await;
    assert!(is_theirs().await);

    let plugins = mesh.world.plugins(namespace, NEW);
    let params = DeleteParams::default();
    plugins.delete("tidegate-foreign", &params).await.unwrap();
    let _held = place.guarded(SHED).await;
}

pub(crate) async fn a_field_that_another_owner_takes_stays_theirs_until_they_release_it(
    mesh: Arc<ConformanceMesh>,
) {
    let place = TestNamespace::start(&mesh, "taken").await;
    let (namespace, door) = ("taken", &place.door);
    mesh.apply_policy(namespace, "taken", &one_at_a_time(SHED))
        .await;
    let _held = place.guarded(SHED).await;

    let url = format!("file://{}", release_module().display());
    let with_status =
        |status: u16| json!({"wasm": {"url": url, "pluginConfig": {"shed": {"status": status}}}});
    somebody_applies(&mesh, namespace, "tidegate-taken", &with_status(SHED + 1)).await;
    mesh.world
        .until_condition(namespace, "taken", "Conflicted", "True FieldsTaken")
        .await;
    let (_, message) = mesh.world.condition(namespace, "taken", "Conflicted").await;
    assert!(
        message.contains("somebody") && message.contains("shed.status"),
        "{message}"
    );
    event(&mesh, namespace, "taken", "FieldsTaken").await;
    // The service does not take a field back that another owner took by force.
    door.answers(SHED + 1).await;

    somebody_applies(&mesh, namespace, "tidegate-taken", &with_status(SHED)).await;
    mesh.world
        .until_condition(namespace, "taken", "Conflicted", "False NoConflict")
        .await;
    door.answers(SHED).await;
}
