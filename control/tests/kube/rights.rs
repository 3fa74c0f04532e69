//! Least privilege: the rights that the service lists are enough, and it tries nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use tidegate_meshbed::audit::Write;
use tidegate_meshbed::until;

use crate::policies::spec;
use crate::service::{Rights, account, start};
use crate::world::{TestCluster, plugin_of};

pub(crate) async fn what_the_service_names_as_its_rights_is_enough(_: Arc<TestCluster>) {
    // The case has its own API server, because the service follows all namespaces.
    let world = TestCluster::start().await.unwrap();
    let namespace = world.namespace("rights").await;
    let user = account(&world, &namespace, "tidegate", Rights::Cluster).await;
    let _replica = start(&world, &user, &namespace, &[]).await;

    // The policy is created, changed and deleted.
    world.apply(&namespace, "shop", &spec(&json!({}))).await;
    world.in_force(&namespace, "shop").await;
    world
        .apply(&namespace, "shop", &spec(&json!({"mode": "observe"})))
        .await;
    until("the change has arrived", async || {
        let plugin = plugin_of(&world, &namespace, "shop").await.unwrap();
        plugin.data["spec"]["wasm"]["pluginConfig"]["mode"] == "observe"
    })
    .await;
    world.in_force(&namespace, "shop").await;
    let events = world.events(&namespace);
    until("there is an Event", async || {
        !events
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    })
    .await;

    world
        .policies(&namespace)
        .delete("shop", &DeleteParams::default())
        .await
        .unwrap();
    until("the object is gone", async || {
        plugin_of(&world, &namespace, "shop").await.is_none()
    })
    .await;

    let writes = world.cluster.writes_of(&user);
    let is_refusal = |write: &&Write| {
        let answer = write.response_status.as_ref();
        answer.is_some_and(|answer| answer.code == 403)
    };
    let refused: Vec<_> = writes.iter().filter(is_refusal).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let kinds: BTreeSet<String> = writes.iter().map(Write::what).collect();
    let expected = [
        "breakerpolicies/status",
        "events",
        "leases",
        "trafficextensions",
    ];
    assert_eq!(kinds, expected.map(str::to_owned).into());
}

pub(crate) async fn without_rights_it_logs_the_missing_right_and_stays_alive(
    world: Arc<TestCluster>,
) {
    let namespace = world.namespace("no-rights").await;
    let user = account(&world, &namespace, "tidegate", Rights::None).await;
    let replica = start(&world, &user, &namespace, &[]).await;

    until("the log names the missing right", async || {
        let log = replica.process.log();
        log.contains("breakerpolicies") && log.contains("forbidden")
    })
    .await;
    assert_eq!(replica.status("/healthz").await, 200);
    assert_eq!(
        replica.status("/readyz").await,
        503,
        "it has no policies yet"
    );
}
