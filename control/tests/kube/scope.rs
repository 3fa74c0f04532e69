//! Namespaced mode: a service that follows one namespace needs rights only there, and writes nowhere else.

use std::sync::Arc;

use serde_json::json;

use crate::policies::spec;
use crate::service::{Rights, account, start};
use crate::world::{TestCluster, plugin_of};

pub(crate) async fn it_writes_in_its_own_namespace_only(world: Arc<TestCluster>) {
    let (own, other) = (world.namespace("own").await, world.namespace("other").await);
    let user = account(&world, &own, "tidegate", Rights::Namespace).await;
    let replica = start(&world, &user, &own, &["--watch-namespace", &own]).await;

    world.apply(&other, "elsewhere", &spec(&json!({}))).await;
    world.apply(&own, "here", &spec(&json!({}))).await;

    world.in_force(&own, "here").await;
    assert_eq!(replica.status("/readyz").await, 200);
    assert!(plugin_of(&world, &other, "elsewhere").await.is_none());
    let writes = world.cluster.writes_of(&user);
    assert!(
        writes.iter().all(|write| write.namespace() == own),
        "the service writes in no other namespace"
    );
}
