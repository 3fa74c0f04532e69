//! What the cases of the score share: the output of the command, and what callers counted in the same time.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tempfile::TempDir;
use tidegate_graph::output::GraphDocument;
use tidegate_meshbed::until;
use tidegate_testbed::client::Caller;
use tidegate_testbed::dashboards::stats_config;
use tidegate_testbed::envoy::{Cluster, Envoy, Plugin, Route};
use tidegate_testbed::upstream::{Script, Upstream};

use crate::containers::{Containers, POD};
use crate::prometheus::{Prometheus, Target};
use crate::score_load::{
    BURST_SERVICE, BUSY_SERVICE, BUSY_SLOTS, Counted, Counts, LIMIT, TARGET, load,
};
use crate::truth::now;
use crate::world::tidegate;

/// The window in seconds. The score looks for overload in periods of the same length.
const WINDOW: u32 = 30;
/// A late answer comes this much after the latency target. By then the filter no longer counts the request as load. The
/// answer still counts as late.
const LATE: Duration = Duration::from_secs(1);
/// The caller that the Envoy belongs to.
const JOB: &str = "edge";

/// The policy. The load was chosen for its objectives.
fn policy() -> String {
    let target = TARGET.as_millis();
    format!(
        "apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata: {{name: edge}}
spec:
  proxies: [{{id: '*'}}]
  slo: {{latency: {{quantile: 0.95, target: {target}ms}}, successRate: 0.99}}
  upstreams:
  - match: {{cluster: mixed}}
    slo: {{latency: {{quantile: 0.98}}}}
  - match: {{cluster: bursts}}
    limit: {{min: {LIMIT}, max: {LIMIT}}}
  - match: {{cluster: watched}}
    mode: observe
    limit: {{min: {LIMIT}, max: {LIMIT}}}
"
    )
}

/// The output of the commands, and what callers and this machine measured.
#[derive(Debug)]
pub(crate) struct ScoredLoad {
    /// `tidegate score -o json`, with the policy.
    pub(crate) score: Value,
    /// `tidegate graph --metrics tidegate -o json`.
    pub(crate) graph: GraphDocument,
    /// When Prometheus was asked, in seconds since 1970.
    pub(crate) end: f64,
    /// CPU time of the Envoy in the window per request, in microseconds.
    pub(crate) cpu_us: f64,
    /// The memory that Envoy itself reports, in MiB.
    pub(crate) memory_mib: f64,
    counts: Arc<Counts>,
}

impl ScoredLoad {
    /// Starts everything, runs the load, runs the commands, and ends everything.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        let file = folder.path().join("edge.yaml");
        fs::write(&file, policy())?;
        let file = file.to_str().context("the path is text")?.to_owned();
        let asked = file.clone();
        let rendered =
            blocking(move || tidegate(&["render", &asked, "--policy", "edge", "-o", "json"]));
        let rendered: Value = serde_json::from_str(&rendered.await?)?;
        let config = rendered.get("config").context("a configuration")?;
        let upstreams = upstreams().await?;
        let envoy = Arc::new(envoy(&upstreams, config).await?);
        let containers = Containers::start(&envoy).await?;

        let counts = Arc::<Counts>::default();
        let load = load(&Caller::http1(envoy.addr()), &counts);
        let begun = now();
        let targets = [
            Target {
                labels: &POD,
                ..Target::new(JOB, envoy.admin().addr())
            },
            Target::new("containers", containers.addr),
        ];
        let mut prometheus = Prometheus::start(&targets).await?;
        // The period begins when the filter knows the upstreams, and ends before the query.
        until("the period is over", async || {
            stretch(now()).0 > begun + 5.0
        })
        .await;
        let url = prometheus.url();
        let window = format!("{WINDOW}s");
        let (score, graph) = blocking(move || {
            let from = ["--prometheus", &url];
            let score = ["score", "--since", &window, "--policies", &file];
            let score = |format: &'static [&str]| tidegate(&[&score[..], &from, format].concat());
            println!("{}", score(&[])?);
            let graph = ["graph", "--window", &window, "--step", "5s"];
            let graph = [&graph[..], &from, &["--metrics", "tidegate", "-o", "json"]].concat();
            Ok((score(&["-o", "json"])?, tidegate(&graph)?))
        })
        .await?;
        let score: Value = serde_json::from_str(&score)?;
        let end = score.get("end").and_then(Value::as_f64).context("end")?;
        let memory_mib = memory_mib(&envoy).await?;
        prometheus.alive()?;
        drop(load);

        let from = end - f64::from(WINDOW);
        let all = |upstream| counts.between(upstream, from, end).requests;
        let requests: f64 = ["mixed", "bursts", "watched", "busy"].map(all).iter().sum();
        let cpu_us = containers.rate(from, end) * f64::from(WINDOW) * 1e6 / requests;
        Ok(Self {
            score,
            graph: serde_json::from_str(&graph)?,
            end,
            cpu_us,
            memory_mib,
            counts,
        })
    }

    /// What callers counted in the window.
    pub(crate) fn counted(&self, upstream: &str) -> Counted {
        let from = self.end - f64::from(WINDOW);
        self.counts.between(upstream, from, self.end)
    }

    /// What callers counted in the period in which the score looks for overload.
    pub(crate) fn counted_in_stretch(&self, upstream: &str) -> Counted {
        let (from, to) = stretch(self.end);
        self.counts.between(upstream, from, to)
    }

    /// The output of the command for an upstream.
    pub(crate) fn scored(&self, upstream: &str) -> &Value {
        let all = self.score.get("upstreams").and_then(Value::as_array);
        let is_it = |one: &&Value| one.get("upstream").and_then(Value::as_str) == Some(upstream);
        all.unwrap().iter().find(is_it).unwrap()
    }
}

/// The last whole period before a query. Prometheus aligns the periods with 1970.
fn stretch(end: f64) -> (f64, f64) {
    let length = f64::from(WINDOW);
    let to = (end / length).floor() * length;
    (to - length, to)
}

async fn upstreams() -> anyhow::Result<[(&'static str, Upstream); 4]> {
    let mixed = Upstream::builder("mixed").script(|head| {
        Some(if head.number.is_multiple_of(16) {
            Script::after(TARGET + LATE)
        } else if head.number.is_multiple_of(25) {
            Script::status(500)
        } else {
            Script::after(Duration::from_millis(10))
        })
    });
    let bursts = |name| Upstream::builder(name).script(|_| Some(Script::after(BURST_SERVICE)));
    Ok([
        ("mixed", mixed.start().await?),
        ("bursts", bursts("bursts").start().await?),
        ("watched", bursts("watched").start().await?),
        (
            "busy",
            Upstream::constant("busy", BUSY_SLOTS, BUSY_SERVICE).await?,
        ),
    ])
}

async fn envoy(upstreams: &[(&'static str, Upstream)], config: &Value) -> anyhow::Result<Envoy> {
    let builder = Envoy::builder().concurrency(1).without_access_log();
    let builder = upstreams.iter().fold(builder, |builder, (name, upstream)| {
        let builder = builder.cluster(Cluster::new(name, upstream.addr()));
        builder.route(Route::host(name).to(name))
    });
    let plugin = Plugin::tidegate(config);
    Ok(builder.plugin(plugin).edit(publish_tags).start().await?)
}

/// Adds the published `stats_tags`, which make the labels, to the bootstrap.
fn publish_tags(bootstrap: &mut Value) {
    let fields = bootstrap.as_object_mut().unwrap();
    fields.insert("stats_config".to_owned(), stats_config().unwrap());
}

async fn memory_mib(envoy: &Envoy) -> anyhow::Result<f64> {
    let stats = envoy.admin().stats("server.memory_physical_size").await?;
    let bytes = stats.values().next().context("a figure of memory")?;
    Ok(f64::from(u32::try_from(*bytes >> 10)?) / 1024.0)
}

async fn blocking<T: Send + 'static>(
    run: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(run).await?
}
