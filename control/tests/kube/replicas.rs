//! Two replicas: one writes, and when it is gone the other does.

use std::sync::Arc;

use serde_json::json;
use tidegate_meshbed::{User, until};

use crate::policies::spec;
use crate::service::{Rights, account, start};
use crate::world::World;

/// What a user has written that Istio or a policy's author can see.
fn visible_writes(world: &World, user: &User) -> usize {
    let writes = world.cluster.writes_of(user);
    let is_visible = |what: &str| {
        matches!(
            what,
            "trafficextensions" | "wasmplugins" | "breakerpolicies/status"
        )
    };
    writes
        .iter()
        .filter(|write| is_visible(&write.what()))
        .count()
}

pub(crate) async fn a_killed_leader_is_followed_by_the_other_replica(world: Arc<World>) {
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
    assert_eq!(
        visible_writes(&world, &users[1]),
        0,
        "the second only follows"
    );

    first.process.kill();
    world
        .apply(
            &namespace,
            "after",
            &spec(&json!({"selector": {"matchLabels": {"app": "other"}}})),
        )
        .await;

    world.in_force(&namespace, "after").await;
    assert!(second.leads().await);
    assert_eq!(
        world.lease_holder(&namespace).await,
        Some(users[1].name.clone())
    );
}

pub(crate) async fn a_leader_that_is_asked_to_end_gives_the_lease_back(world: Arc<World>) {
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

    replica.process.stop();

    let holder = world.lease_holder(&namespace).await;
    assert_eq!(
        holder.unwrap_or_default(),
        "",
        "nobody has to wait for the lease to run out"
    );
}
