//! The native module keeps learned state through a restart, and when another file of the module replaces it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_core::{BreakerState, Directive, SavedState, UpstreamKey};
use tidegate_testbed::client::Call;
use tidegate_testbed::envoy::{
    Cluster, Envoy, EnvoyBuilder, Plugin, PushOutcome, Route, release_module,
};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::config::{config, open_for_long};
use crate::load::{Crowd, in_turn, open_breaker};
use crate::stage::{Stage, ensure};
use crate::turn;

/// The limit in a process that has learned nothing. A few requests in turn need far less.
const INITIAL: u64 = 1_000;

/// A snapshot each second in this directory.
fn with_snapshot(mut document: Value, directory: &Path) -> Value {
    let snapshot = json!({"snapshot": {"directory": directory, "interval": "1s"}});
    let keys = document.as_object_mut().unwrap();
    keys.insert("native".to_owned(), snapshot);
    keys.insert("limit".to_owned(), json!({"initial": INITIAL}));
    document
}

/// The snapshot file of the filter `tidegate`.
fn file_in(directory: &Path) -> PathBuf {
    let hash = UpstreamKey::hash("tidegate", None);
    directory.join(format!("tidegate-{hash:016x}.snapshot"))
}

/// The saved state of an upstream.
fn saved(directory: &Path, upstream: &str) -> Option<Directive> {
    let state = SavedState::decode(&fs::read(file_in(directory)).ok()?).ok()?;
    let hash = UpstreamKey::hash(upstream, None);
    let mut entries = state.learned.entries();
    entries.find(|entry| entry.upstream == hash)
}

/// An upstream that works, except for `/held`, and one that fails.
struct Upstreams {
    main: Upstream,
    dead: Upstream,
}

impl Upstreams {
    async fn start() -> Self {
        let dead = Upstream::builder("dead").script(|_| Some(Script::status(500)));
        let main = Upstream::builder("main").constant(100, Duration::from_millis(2));
        let main = main.script(|head| (head.path == "/held").then_some(Script::Hang));
        Self {
            main: main.start().await.unwrap(),
            dead: dead.start().await.unwrap(),
        }
    }

    fn envoy(&self, document: &Value) -> EnvoyBuilder {
        self.envoy_with(Plugin::tidegate(document))
    }

    fn envoy_with(&self, plugin: Plugin) -> EnvoyBuilder {
        Envoy::builder()
            .cluster(Cluster::new("main", self.main.addr()))
            .cluster(Cluster::new("dead", self.dead.addr()))
            .route(Route::prefix("/dead").to("dead"))
            .route_timeout(Duration::ZERO)
            .route(Route::prefix("/").to("main"))
            .plugin(plugin)
            .log_level("info")
    }

    /// Fails if a first request reaches the failing upstream, which has received `reached` requests before.
    async fn ensure_open(&self, stage: &Stage, reached: u64) {
        let caller = stage.caller();
        let first = in_turn(&caller, &Call::get("/dead"), 20).await;
        ensure!(stage, first.shed == 20, "{first:?}");
        let now = self.dead.counts().received;
        ensure!(stage, now == reached, "{now} reached it, {reached} before");
        let first = in_turn(&caller, &Call::get("/"), 1).await;
        ensure!(stage, first.ok == 1, "{first:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn a_limit_and_an_open_breaker_outlive_a_restart() {
    let directory = TempDir::new().unwrap();
    let document = with_snapshot(open_for_long(json!({})), directory.path());
    let upstreams = Upstreams::start().await;
    let dead = Call::get("/dead");

    let stage = Stage::start(turn::shared().await, upstreams.envoy(&document)).await;
    let caller = stage.caller();
    stage
        .until("the limit is learned and saved", async || {
            in_turn(&caller, &Call::get("/"), 10).await;
            let saved = saved(directory.path(), "main");
            saved.is_some_and(|it| u64::from(it.limit) < INITIAL / 2)
        })
        .await;
    open_breaker(&stage, &caller, &dead, "dead").await;
    stage
        .until("the open breaker is saved", async || {
            let saved = saved(directory.path(), "dead");
            saved.is_some_and(|it| matches!(it.breaker, BreakerState::Open { .. }))
        })
        .await;
    let learned = saved(directory.path(), "main").unwrap().limit;
    drop(stage);
    let reached = upstreams.dead.counts().received;

    let stage = Stage::start(turn::shared().await, upstreams.envoy(&document)).await;
    upstreams.ensure_open(&stage, reached).await;
    stage
        .until("there is a limit", async || limit(&stage).await.is_some())
        .await;
    let limit = limit(&stage).await;
    ensure!(
        stage,
        limit.is_some_and(|limit| limit < u64::from(learned) * 2),
        "{limit:?}, saved was {learned}"
    );
    let log = stage.envoy.log();
    ensure!(
        stage,
        log.contains("starting from learned state of") && log.contains("upstreams=2"),
        "{log}"
    );
}

/// A new file of the module arrives by discovery in a running Envoy.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn a_file_that_replaces_another_takes_over_its_learned_state() {
    let folder = TempDir::new().unwrap();
    let [old, new] = ["libtidegate.so", "libtidegate-new.so"].map(|name| {
        let module = folder.path().join(name);
        fs::copy(release_module(), &module).unwrap();
        module
    });
    let document = with_snapshot(open_for_long(json!({})), folder.path());
    let upstreams = Upstreams::start().await;
    let plugin = Plugin::tidegate(&document).module(old).pushed();
    let mut stage = Stage::start(turn::shared().await, upstreams.envoy_with(plugin)).await;
    let (caller, dead) = (stage.caller(), Call::get("/dead"));
    stage
        .until("the limit is learned", async || {
            in_turn(&caller, &Call::get("/"), 10).await;
            limit(&stage).await.is_some_and(|limit| limit < INITIAL / 2)
        })
        .await;
    open_breaker(&stage, &caller, &dead, "dead").await;
    // Learned state is written once a second. The new file must not get that from before the trip.
    stage
        .until("the open breaker is in learned state", async || {
            let saved = saved(folder.path(), "dead");
            saved.is_some_and(|it| matches!(it.breaker, BreakerState::Open { .. }))
        })
        .await;
    let reached = upstreams.dead.counts().received;
    let crowd = Crowd::send(&caller, &Call::get("/held"), 5);
    stage.until_sum("in_flight", "main", 5).await;

    let outcome = stage.envoy.push_module(new).await.unwrap();
    assert_eq!(outcome, PushOutcome::Accepted);
    upstreams.ensure_open(&stage, reached).await;
    let taken = "starting from learned state of the module that was loaded before, upstreams=2";
    ensure!(stage, logged(&stage, taken) == 1, "{}", stage.envoy.log());
    // The old file still counts the requests that it has admitted, until they end.
    drop(crowd);
    stage
        .until("the upstream has none left", async || {
            upstreams.main.counts().concurrent == 0
        })
        .await;
    stage.until_sum("in_flight", "main", 0).await;
    let last = in_turn(&caller, &Call::get("/"), 20).await;
    ensure!(stage, last.ok == 20, "{last:?}");
}

/// The limit of the upstream that works.
async fn limit(stage: &Stage) -> Option<u64> {
    stage.metrics().await.value("limit", "main", &[])
}

/// How often Envoy has logged this.
fn logged(stage: &Stage, text: &str) -> usize {
    stage.envoy.log().matches(text).count()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn a_damaged_file_is_told_once_and_replaced_and_requests_pass() {
    let directory = TempDir::new().unwrap();
    fs::write(file_in(directory.path()), b"no snapshot").unwrap();
    let document = with_snapshot(config(json!({})), directory.path());
    let upstreams = Upstreams::start().await;
    let stage = Stage::start(turn::shared().await, upstreams.envoy(&document)).await;
    let tally = in_turn(&stage.caller(), &Call::get("/"), 20).await;
    ensure!(stage, tally.ok == 20, "{tally:?}");
    stage
        .until("the file is replaced", async || {
            saved(directory.path(), "main").is_some()
        })
        .await;
    let told = "found other content, expected learned state of Tidegate: starting from nothing";
    ensure!(stage, logged(&stage, told) == 1, "{}", stage.envoy.log());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the native module: make e2e-native"]
async fn a_missing_directory_is_told_once_and_requests_pass() {
    let parent = TempDir::new().unwrap();
    let directory = parent.path().join("later");
    let document = with_snapshot(config(json!({})), &directory);
    let upstreams = Upstreams::start().await;
    let stage = Stage::start(turn::shared().await, upstreams.envoy(&document)).await;
    let caller = stage.caller();
    let not_written = "snapshot not written to";
    stage
        .until("a write has failed", async || {
            let tally = in_turn(&caller, &Call::get("/"), 5).await;
            tally.ok == 5 && logged(&stage, not_written) > 0
        })
        .await;
    fs::create_dir(&directory).unwrap();
    stage
        .until("the next write works", async || {
            in_turn(&caller, &Call::get("/"), 1).await;
            saved(&directory, "main").is_some()
        })
        .await;
    ensure!(
        stage,
        logged(&stage, not_written) == 1,
        "{}",
        stage.envoy.log()
    );
    let missing = "found no such directory, expected one that Envoy may write to";
    ensure!(stage, logged(&stage, missing) == 1, "{}", stage.envoy.log());
}
