//! Case 7: the servers that configure the proxies are unavailable.
//!
//! A proxy decides by itself. It needs the replicas of the service, istiod and the API server only to change what it
//! runs. Changes that were made while they were unavailable arrive when they are back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_meshbed::{KubeCluster, Replica, User, until};

use crate::door::{HeldRequests, one_at_a_time};
use crate::load::SHED;
use crate::mesh::ConformanceMesh;
use crate::place::TestNamespace;

/// A guarded service with one place, which a request holds.
struct Guarded {
    place: TestNamespace,
    held: HeldRequests,
}

impl Guarded {
    async fn start(mesh: &ConformanceMesh, name: &str) -> Self {
        let place = TestNamespace::start(mesh, name).await;
        mesh.apply_policy(name, name, &one_at_a_time(SHED)).await;
        let held = place.guarded(SHED).await;
        Self { place, held }
    }

    /// Checks that requests pass as soon as the place is free, and are shed as soon as it is occupied again.
    async fn works(&mut self, status: u16) {
        let TestNamespace {
            envoy,
            door,
            upstream,
        } = &mut self.place;
        let before = upstream.counts().served;
        assert_eq!(door.status().await, status);
        self.held = HeldRequests::none();
        door.answers(200).await;
        assert!(upstream.counts().served > before);
        assert!(envoy.is_running());
        self.held = self.place.taken(status).await;
    }
}

pub(crate) async fn protection_outlives_everything_that_configures_it(_: Arc<ConformanceMesh>) {
    // The case has its own mesh, because it kills servers.
    let mut mesh = ConformanceMesh::start().await.unwrap();
    until("the first replica leads", async || {
        mesh.replica.leads().await
    })
    .await;
    let mut second = mesh.another_replica("second").await;
    let mut guarded = Guarded::start(&mesh, "outage").await;
    assert!(!second.leads().await, "only one replica writes");

    // The leader is killed, and another replica writes.
    mesh.replica.process.kill();
    let killed = Instant::now();
    mesh.apply_policy("outage", "outage", &one_at_a_time(SHED + 1))
        .await;
    guarded.place.door.answers(SHED + 1).await;
    println!(
        "leader killed -> a change by its successor in traffic: {} ms, with a lease of 3 s",
        killed.elapsed().as_millis()
    );
    assert!(second.leads().await);

    // All replicas are killed, and the configuration in force stays.
    second.process.kill();
    guarded.works(SHED + 1).await;

    // It stays without istiod, too.
    mesh.istiod.kill();
    until("the proxy has no connection to istiod", async || {
        let connected = guarded
            .place
            .envoy
            .admin()
            .stats("^control_plane.connected_state$")
            .await;
        connected.unwrap().values().all(|&value| value == 0)
    })
    .await;
    guarded.works(SHED + 1).await;

    // When they are back, changes that were made meanwhile arrive.
    mesh.apply_policy("outage", "outage", &one_at_a_time(SHED + 2))
        .await;
    mesh.restart_istiod().await;
    let _third = mesh.another_replica("third").await;
    guarded.place.door.answers(SHED + 2).await;
}

/// The largest number of lines that the log may have for an outage of the API server. They say that the server is
/// unavailable and available again, that the replica loses and regains the lead, and what it then writes about the
/// policy. Up to eight are for the 403 of a server that has not loaded its roles yet.
const MAX_LINES: usize = 16;

/// The API server is back after this many failed watches of policies. A service that doubled its pause without a bound
/// would be a minute late by then.
const ERRORS: u64 = 6;

/// The first pause after a failed watch, which is the shortest.
const FIRST_PAUSE: Duration = Duration::from_millis(800);

/// The service must write a change within this time after the API server is back. This is the longest pause of a watch
/// plus the longest pause of the lease, with half as much added for a busy machine.
const BACK_WITHIN: Duration = Duration::from_secs(15);

async fn watch_errors(replica: &Replica) -> u64 {
    let series = "kube_watch_errors_total{resource=\"breakerpolicies\"}";
    replica.metric(series).await.unwrap()
}

/// What the service has written, without the lease.
fn writes(cluster: &KubeCluster, user: &User) -> Vec<String> {
    let writes = cluster.writes_of(user);
    let others = writes.iter().filter(|write| write.what() != "leases");
    others
        .map(|write| format!("{} {}", write.verb, write.what()))
        .collect()
}

/// How many of these writes were to Istio's objects.
fn extensions(writes: &[String]) -> usize {
    let is_one = |what: &&String| what.ends_with(" trafficextensions");
    writes.iter().filter(is_one).count()
}

pub(crate) async fn the_service_converges_when_the_api_server_is_back_and_does_not_hammer_it(
    _: Arc<ConformanceMesh>,
) {
    // The case has its own mesh, because it stops the API server.
    let mesh = ConformanceMesh::start().await.unwrap();
    let mut guarded = Guarded::start(&mesh, "away").await;
    mesh.world.in_force("away", "away").await;
    let before = extensions(&writes(&mesh.world.cluster, &mesh.user));
    let said = mesh.replica.process.log().lines().count();

    mesh.world.cluster.stop_api_server();
    let (errors, stopped) = (watch_errors(&mesh.replica).await, Instant::now());
    until("the service has retried often enough", async || {
        watch_errors(&mesh.replica).await >= errors + ERRORS
    })
    .await;
    let waited = stopped.elapsed();
    println!(
        "{ERRORS} looks at an API server that is away took {} ms",
        waited.as_millis()
    );
    // There is one pause fewer than failures, and every pause after the first is far longer.
    let least = FIRST_PAUSE * u32::try_from(ERRORS).unwrap();
    assert!(
        waited > least,
        "the service sends too many requests: {ERRORS} looks in {waited:?}"
    );
    guarded.works(SHED).await;
    assert_eq!(
        mesh.replica.status("/healthz").await,
        200,
        "the service is alive"
    );

    mesh.world.cluster.start_api_server().await.unwrap();
    let back = Instant::now();
    mesh.apply_policy("away", "away", &one_at_a_time(SHED + 1))
        .await;
    until("the service has written the change", async || {
        extensions(&writes(&mesh.world.cluster, &mesh.user)) > before
    })
    .await;
    let written = back.elapsed();
    guarded.place.door.answers(SHED + 1).await;
    println!(
        "API server back -> a change written by the service: {} ms, and in traffic, when istiod has noticed too: {} ms",
        written.as_millis(),
        back.elapsed().as_millis()
    );
    assert!(
        written < BACK_WITHIN,
        "the service wrote the change after {written:?}"
    );
    guarded.works(SHED + 1).await;
    mesh.world.in_force("away", "away").await;
    let all = writes(&mesh.world.cluster, &mesh.user);
    assert_eq!(
        extensions(&all),
        before + 1,
        "one write for one change: {all:?}"
    );
    reads_well(&mesh.replica, said);
}

/// Prints the lines of the service's log after the first `before` lines, and checks them.
fn reads_well(replica: &Replica, before: usize) {
    let log = replica.process.log();
    let lines: Vec<&str> = log.lines().skip(before).collect();
    println!("{}", lines.join("\n"));
    let with = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
    assert_eq!(with("the API server is unreachable"), 1);
    assert_eq!(with("the API server answers again"), 1);
    assert_eq!(with(r#""level":"ERROR""#), 0);
    assert!(lines.len() <= MAX_LINES, "{} lines", lines.len());
}
