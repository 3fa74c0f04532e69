//! No busy loop: the service does not write an object that is already correct, whatever else happens.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::{KubeCluster, User, until};

use crate::policies::{for_others, spec};
use crate::service::{Rights, account, start};
use crate::world::TestCluster;
use crate::written::{of_plugins, renewals, writes};

/// The number of policies in the namespace of a case.
const POLICIES: usize = 20;

/// How many renewals of the lease a case waits for. A controller with a busy loop writes within a few of them.
const RENEWALS: usize = 12;

/// Waits for some renewals of the lease, instead of for a time in seconds.
async fn some_renewals(cluster: &KubeCluster, user: &User) {
    let before = renewals(cluster, user);
    until("the lease is renewed", async || {
        renewals(cluster, user) >= before + RENEWALS
    })
    .await;
}

/// Applies some policies, each with its own target, and waits until all are in force.
async fn apply_some(world: &TestCluster, namespace: &str) {
    for n in 0..POLICIES {
        let labels = json!({"selector": {"matchLabels": {"app": format!("app-{n}")}}});
        world
            .apply(namespace, &format!("policy-{n}"), &spec(&labels))
            .await;
    }
    for n in 0..POLICIES {
        let name = format!("policy-{n}");
        world.in_force(namespace, &name).await;
    }
}

pub(crate) async fn what_is_in_force_is_not_written_again(world: Arc<TestCluster>) {
    let namespace = world.namespace("steady").await;
    let user = account(&world, &namespace, "tidegate", Rights::Namespace).await;
    let scope = ["--watch-namespace", namespace.as_str()];
    let replica = start(&world, &user, &namespace, &scope).await;
    apply_some(&world, &namespace).await;
    some_renewals(&world.cluster, &user).await;
    let before = writes(&world.cluster, &user);
    assert_eq!(
        of_plugins(&before),
        POLICIES,
        "one write for each: {before:?}"
    );

    // Two changes without effect: a label on a policy, and another client's annotation on an object of Istio.
    let label = json!({"metadata": {"labels": {"team": "shop"}}});
    world
        .policies(&namespace)
        .patch("policy-0", &PatchParams::default(), &Patch::Merge(&label))
        .await
        .unwrap();
    let note = json!({"metadata": {"annotations": {"example.com/seen": "yes"}}});
    world
        .plugins(&namespace, IstioApi::TrafficExtension)
        .patch(
            "tidegate-policy-1",
            &PatchParams::default(),
            &Patch::Merge(&note),
        )
        .await
        .unwrap();
    some_renewals(&world.cluster, &user).await;

    assert_eq!(writes(&world.cluster, &user), before);
    let counted = replica
        .metric("kube_writes_total{object=\"extension\",result=\"done\"}")
        .await
        .unwrap();
    assert_eq!(
        counted, POLICIES as u64,
        "the metric counts the writes that the API server recorded"
    );
}

pub(crate) async fn a_new_replica_finds_nothing_to_do(world: Arc<TestCluster>) {
    let namespace = world.namespace("restarted").await;
    let scope = ["--watch-namespace", namespace.as_str()];
    let first = account(&world, &namespace, "first", Rights::Namespace).await;
    let replica = start(&world, &first, &namespace, &scope).await;
    apply_some(&world, &namespace).await;
    some_renewals(&world.cluster, &first).await;
    replica.stop();

    let second = account(&world, &namespace, "second", Rights::Namespace).await;
    let replica = start(&world, &second, &namespace, &scope).await;
    until("it leads", async || replica.leads().await).await;
    some_renewals(&world.cluster, &second).await;

    assert_eq!(writes(&world.cluster, &second), [""; 0]);
}

pub(crate) async fn it_converges_when_the_api_server_is_back(_: Arc<TestCluster>) {
    // The case has its own API server, because it stops it.
    let world = TestCluster::start().await.unwrap();
    let namespace = world.namespace("restart").await;
    let user = account(&world, &namespace, "tidegate", Rights::Cluster).await;
    let replica = start(&world, &user, &namespace, &[]).await;
    world.apply(&namespace, "before", &spec(&json!({}))).await;
    world.in_force(&namespace, "before").await;

    world.cluster.stop_api_server();
    until("it no longer leads", async || !replica.leads().await).await;
    assert_eq!(replica.status("/healthz").await, 200, "it is alive");
    world.cluster.start_api_server().await.unwrap();
    world.apply(&namespace, "after", &for_others()).await;

    world.in_force(&namespace, "after").await;
    some_renewals(&world.cluster, &user).await;
    let written = writes(&world.cluster, &user);
    assert_eq!(
        of_plugins(&written),
        2,
        "the first was not written again: {written:?}"
    );
}
