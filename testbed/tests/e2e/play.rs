//! Scored runs: a scenario played on a stage.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_sim::arrivals;
use tidegate_sim::record::Record;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::score::{Figures, Reached};
use tidegate_testbed::client::open_loop;
use tidegate_testbed::envoy::{Cluster, Envoy, EnvoyBuilder, Plugin, Route};
use tidegate_testbed::run::raise_file_limit;
use tidegate_testbed::upstream::{Quotas, Upstream};
use tidegate_testbed::variant::tidegate_config;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::stage::{Stage, require_parts};
use crate::turn::Turn;

/// Time before the first arrival in which connections are opened.
const HEAD_START: Duration = Duration::from_millis(200);

/// A story, its upstreams, and the Envoy in front of them.
pub(crate) struct Play {
    pub(crate) stage: Stage,
    pub(crate) upstreams: Arc<Vec<Upstream>>,
    scenario: Arc<Scenario>,
}

impl Play {
    /// Starts a stage for `scenario` (TOML without name, title, prose and seed), with the configuration that a user would
    /// write for it.
    pub(crate) async fn new(turn: Turn, scenario: &str) -> Self {
        let scenario = parse(scenario);
        let plugin = Plugin::tidegate(&tidegate_config(&scenario));
        Self::with(turn, scenario, plugin, |envoy| envoy).await
    }

    /// The same with this configuration, by extension discovery.
    pub(crate) async fn pushed(turn: Turn, scenario: &str, config: &Value) -> Self {
        let plugin = Plugin::tidegate(config).pushed();
        Self::with(turn, parse(scenario), plugin, |envoy| envoy).await
    }

    /// The same with the test's own plugin and Envoy.
    pub(crate) async fn with(
        turn: Turn,
        scenario: Scenario,
        plugin: Plugin,
        edit: impl FnOnce(EnvoyBuilder) -> EnvoyBuilder,
    ) -> Self {
        require_parts();
        raise_file_limit();
        let mut envoy = Envoy::builder()
            .concurrency(scenario.workers)
            .plugin(plugin);
        let mut upstreams = Vec::new();
        for profile in &scenario.upstreams {
            let upstream = Upstream::builder(&profile.name)
                .behaviour(profile.behaviour.clone())
                .quotas(Arc::new(Quotas::of(&scenario, &profile.name)))
                .start()
                .await
                .unwrap();
            envoy = envoy
                .cluster(Cluster::new(&profile.name, upstream.addr()))
                .route(Route::host(&profile.name).to(&profile.name));
            upstreams.push(upstream);
        }
        Self {
            stage: Stage::start(turn, edit(envoy)).await,
            upstreams: Arc::new(upstreams),
            scenario: Arc::new(scenario),
        }
    }

    /// Plays it to the end and scores it. Borrows nothing, so that the test can act meanwhile.
    pub(crate) fn run(&self) -> impl Future<Output = Figures> + 'static {
        let played = self.run_recorded();
        async move { played.await.0 }
    }

    /// The same, with the record of each request.
    pub(crate) fn run_recorded(&self) -> impl Future<Output = (Figures, Vec<Record>)> + 'static {
        let (scenario, upstreams) = (Arc::clone(&self.scenario), Arc::clone(&self.upstreams));
        let target = self.stage.envoy.addr();
        async move {
            let start = Instant::now() + HEAD_START;
            for (index, profile) in scenario.upstreams.iter().enumerate() {
                let (upstreams, timeline) = (Arc::clone(&upstreams), profile.timeline.clone());
                tokio::spawn(async move { upstreams[index].follow(&timeline, start).await });
            }
            let (sender, mut receiver) = mpsc::unbounded_channel();
            let arrivals = Arc::new(arrivals::schedule(&scenario));
            open_loop::replay(Arc::clone(&scenario), arrivals, target, start, sender).await;
            let mut records = Vec::new();
            while let Ok(record) = receiver.try_recv() {
                records.push(record);
            }
            let counts = upstreams.iter().map(Upstream::counts);
            let reached = counts.fold(Reached::default(), |sum, counts| Reached {
                received: sum.received + counts.received,
                received_while_down: sum.received_while_down + counts.received_while_down,
            });
            (Figures::of(&scenario, &records, reached), records)
        }
    }

    /// Whether a request was for `upstream`.
    pub(crate) fn is_of(&self, record: &Record, upstream: &str) -> bool {
        self.scenario.clients[record.arrival.client].upstream == upstream
    }

    /// Whether a request was the adversary's at `upstream`.
    pub(crate) fn is_adversary(&self, record: &Record, upstream: &str) -> bool {
        let client = record.arrival.client;
        self.is_of(record, upstream) && self.scenario.adversary(client).is_some()
    }
}

/// A scenario from the parts that matter to a test.
pub(crate) fn parse(scenario: &str) -> Scenario {
    let head = "name='e2e'\ntitle='end to end'\nprose='a test'\nseed=7\n";
    Scenario::parse(&format!("{head}{scenario}"), "test").unwrap()
}
