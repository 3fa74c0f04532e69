//! No busy loop: what is as it ought to be is not written again, whatever happens around it.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tidegate_control::kube::istio::IstioApi;
use tidegate_meshbed::{KubeCluster, User, until};

use crate::policies::{for_others, spec};
use crate::service::{Rights, account, start};
use crate::world::TestCluster;
use crate::written::{of_plugins, renewals, writes};

/// Policies in a namespace of this case.
const POLICIES: usize = 20;

/// Renewals of the lease for which is watched: many times what a controller that cannot stop needs to show it.
const RENEWALS: usize = 12;

/// Lets some time pass, counted in renewals of the lease instead of seconds.
async fn some_renewals(cluster: &KubeCluster, user: &User) {
    let before = renewals(cluster, user);
    until("the lease is renewed", async || {
        renewals(cluster, user) >= before + RENEWALS
    })
    .await;
}

/// Some policies, each with another target, and a wait until all are in force.
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

    // Events without effect: a label on a policy, another client's annotation on a plugin.
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
        "the metric counts what the API server saw"
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
    // It stops its API server, so that it has one of its own.
    let world = TestCluster::start().await.unwrap();
    let namespace = world.namespace("restart").await;
    let user = account(&world, &namespace, "tidegate", Rights::Cluster).await;
    let replica = start(&world, &user, &namespace, &[]).await;
    world.apply(&namespace, "before", &spec(&json!({}))).await;
    world.in_force(&namespace, "before").await;

    world.cluster.stop_api_server();
    until("it no longer leads", async || !replica.leads().await).await;
    assert_eq!(replica.status("/healthz").await, 200, "it lives");
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
