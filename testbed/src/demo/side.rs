//! One side of the demo: its own upstream behind its own Envoy.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::SideRecord;
use super::dashboard::Half;
use super::live::Live;
use super::story::Story;
use crate::client::open_loop;
use crate::envoy::{Cluster, Envoy, EnvoyError, Plugin, PushOutcome};
use crate::run::{self, RunError};
use crate::upstream::Upstream;
use crate::variant::{Variant, tidegate_config};
use tidegate_sim::arrivals::Arrival;
use tidegate_sim::number;
use tidegate_sim::record::Record;
use tidegate_sim::series::SeriesSample;

/// A side that is ready for load.
#[derive(Debug)]
pub(super) struct Side {
    envoy: Envoy,
    upstream: Arc<Upstream>,
    is_filtered: bool,
    ended: Arc<Mutex<Ended>>,
    samples: Vec<SeriesSample>,
}

/// The requests that have ended so far.
#[derive(Debug, Default)]
struct Ended {
    records: Vec<Record>,
    live: Live,
}

impl Side {
    /// Starts the upstream and Envoy; the filter's configuration has the objective of this time of the story.
    pub(super) async fn start(
        story: &Story,
        is_filtered: bool,
        at: Duration,
    ) -> Result<Self, RunError> {
        let variant = if is_filtered {
            Variant::Tidegate
        } else {
            Variant::None
        };
        let profile = story.scenario.upstreams.first();
        let behaviour = profile
            .map(|profile| profile.behaviour.clone())
            .unwrap_or_default();
        let builder = Upstream::builder("main")
            .behaviour(behaviour)
            .seed(story.scenario.seed);
        let started = builder.start().await;
        let upstream = started.map_err(|source| RunError::Upstream {
            name: "main".to_owned(),
            source,
        })?;
        let mut envoy = Envoy::builder()
            .concurrency(story.scenario.workers)
            .cluster(Cluster::new("main", upstream.addr()));
        if is_filtered {
            let config = configuration(story, story.objective_at(at));
            envoy = envoy.plugin(Plugin::tidegate(&config).pushed());
        }
        let envoy = envoy
            .start()
            .await
            .map_err(|source| RunError::Envoy { variant, source })?;
        let upstream = Arc::new(upstream);
        Ok(Self {
            envoy,
            upstream,
            is_filtered,
            ended: Arc::default(),
            samples: Vec::new(),
        })
    }

    /// Begins to send the arrivals and to play the upstream's timeline.
    pub(super) fn drive(
        &self,
        story: &Arc<Story>,
        arrivals: &Arc<Vec<Arrival>>,
        start: Instant,
    ) -> Drive {
        let (sender, mut receiver) = mpsc::unbounded_channel::<Record>();
        let (ended, told) = (Arc::clone(&self.ended), Arc::clone(story));
        let collect = tokio::spawn(async move {
            while let Some(record) = receiver.recv().await {
                let mut ended = lock(&ended);
                ended
                    .live
                    .note(&record, told.objective_at(record.arrival.at));
                ended.records.push(record);
            }
        });
        let scenario = Arc::new(story.scenario.clone());
        let replay = tokio::spawn(open_loop::replay(
            scenario,
            Arc::clone(arrivals),
            self.envoy.addr(),
            start,
            sender,
        ));
        let (upstream, story) = (Arc::clone(&self.upstream), Arc::clone(story));
        let acting = tokio::spawn(async move {
            for profile in &story.scenario.upstreams {
                upstream.follow(&profile.timeline, start).await;
            }
        });
        Drive {
            replay,
            collect,
            acting,
        }
    }

    /// Samples upstream and filter, keeps the sample, and returns the figures of the last second.
    pub(super) async fn look(&mut self, passed: Duration) -> Half {
        // A failed sample leaves a gap in a chart.
        let plugin = if self.is_filtered {
            self.envoy.admin().tidegate().await.ok()
        } else {
            None
        };
        let sample = run::sample(
            std::iter::once(self.upstream.counts()),
            plugin.as_ref(),
            passed,
        );
        self.samples.push(sample);
        Half {
            view: lock(&self.ended).live.view(passed),
            in_upstream: self.upstream.counts().concurrent,
            limit: sample.limit,
            in_flight: sample.in_flight,
            breaker: sample.breaker,
        }
    }

    /// Pushes a new objective to the filter of the running Envoy; does nothing on the side without it.
    pub(super) async fn push(
        &mut self,
        story: &Story,
        latency: Duration,
    ) -> Result<Option<PushOutcome>, EnvoyError> {
        if !self.is_filtered {
            return Ok(None);
        }
        self.envoy
            .push(&configuration(story, latency).to_string())
            .await
            .map(Some)
    }

    /// Stops, and returns what was recorded.
    pub(super) fn finish(self) -> SideRecord {
        let envoy_cpu_s = self
            .envoy
            .cpu_time()
            .map_or(0.0, |time| number::millis(time) / 1_000.0);
        let records = std::mem::take(&mut lock(&self.ended).records);
        SideRecord {
            records,
            samples: self.samples,
            envoy_cpu_s,
        }
    }
}

/// The filter's configuration with this latency target.
fn configuration(story: &Story, latency: Duration) -> serde_json::Value {
    let mut scenario = story.scenario.clone();
    scenario.slo.latency = latency;
    tidegate_config(&scenario)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tasks that drive a side; dropping this ends them.
#[derive(Debug)]
pub(super) struct Drive {
    replay: JoinHandle<BTreeSet<u64>>,
    collect: JoinHandle<()>,
    acting: JoinHandle<()>,
}

impl Drive {
    pub(super) fn is_finished(&self) -> bool {
        self.replay.is_finished() && self.collect.is_finished()
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        self.replay.abort();
        self.collect.abort();
        self.acting.abort();
    }
}
