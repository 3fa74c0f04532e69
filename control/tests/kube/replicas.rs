//! Two replicas: one writes, and when it is gone the other does.

use std::sync::Arc;

use serde_json::json;
use tidegate_meshbed::until;

use crate::policies::{for_others, spec};
use crate::service::{Rights, account, start};
use crate::world::TestCluster;
use crate::written::visible_writes;

pub(crate) async fn a_killed_leader_is_followed_by_the_other_replica(world: Arc<TestCluster>) {
    let namespace = world.namespace("replicas").await;
    let users = [
        account(&world, &namespace, "first", Rights::Namespace).await,
        account(&world, &namespace, "second", Rights::Namespace).await,
    ];
    let scope = ["--watch-namespace", namespace.as_str()];
    let mut first = start(&world, &users[0], &namespace, &scope).await;
    until("the first leads", async || first.leads().await).await;
    let second = start(&world, &users[1], &namespace, &scope).await;
    until("both serve", async || second.status("/readyz").await == 200).await;

    world.apply(&namespace, "before", &spec(&json!({}))).await;
    world.in_force(&namespace, "before").await;
    assert!(!second.leads().await);
    let written = visible_writes(&world.cluster, &users[1]);
    assert_eq!(written, [""; 0], "the second replica writes nothing");

    first.process.kill();
    world.apply(&namespace, "after", &for_others()).await;

    world.in_force(&namespace, "after").await;
    assert!(second.leads().await);
    assert_eq!(
        world.lease_holder(&namespace).await,
        Some(users[1].name.clone())
    );
}

pub(crate) async fn a_leader_that_is_asked_to_end_gives_the_lease_back(world: Arc<TestCluster>) {
    let namespace = world.namespace("handover").await;
    let user = account(&world, &namespace, "only", Rights::Namespace).await;
    let replica = start(
        &world,
        &user,
        &namespace,
        &["--watch-namespace", &namespace],
    )
    .await;
    until("it leads", async || replica.leads().await).await;

    replica.stop();

    let holder = world.lease_holder(&namespace).await;
    assert_eq!(
        holder.unwrap_or_default(),
        "",
        "no replica has to wait until the lease expires"
    );
}
