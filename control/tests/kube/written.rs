//! What replicas have written, from the API server's own record.

use tidegate_meshbed::{KubeCluster, User};

/// The writes of a user except those of the lease, such as `patch trafficextensions`.
pub(crate) fn writes(cluster: &KubeCluster, user: &User) -> Vec<String> {
    let writes = cluster.writes_of(user);
    let all = writes
        .iter()
        .map(|write| format!("{} {}", write.verb, write.what()));
    all.filter(|what| !what.ends_with(" leases")).collect()
}

/// The writes that Istio or the author of a policy can see.
pub(crate) fn visible_writes(cluster: &KubeCluster, user: &User) -> Vec<String> {
    let mut writes = writes(cluster, user);
    writes.retain(|what| !what.ends_with(" events"));
    writes
}

/// How many of these writes were of Istio's objects.
pub(crate) fn of_plugins(writes: &[String]) -> usize {
    let is_of_one = |what: &&String| what.ends_with(" trafficextensions");
    writes.iter().filter(is_of_one).count()
}

/// How often a user has written the lease.
pub(crate) fn renewals(cluster: &KubeCluster, user: &User) -> usize {
    let writes = cluster.writes_of(user);
    writes
        .iter()
        .filter(|write| write.what() == "leases")
        .count()
}
