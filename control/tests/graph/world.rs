//! What all cases share: two graphs from the command, and what callers saw in the same windows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tidegate_graph::EdgeTraffic;
use tidegate_graph::output::GraphDocument;
use tidegate_meshbed::until;
use tidegate_testbed::envoy::repository;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval};

use crate::chain::{Chain, ENTRY, GATEWAY, SLOW};
use crate::prometheus::Prometheus;
use crate::service::Egress;
use crate::truth::{Ends, TrueTraffic, Truth};

/// The time between two requests from outside. Each leads to ten calls.
const DISTANCE: Duration = Duration::from_millis(160);
/// The number of requests from outside before the first observation. They take longer than the window.
const UNTIL_STEADY: usize = 220;
/// The number of requests from outside before the second observation. Its window contains the change.
const UNTIL_CHANGED: usize = 350;
/// The service whose Envoy is restarted.
pub(crate) const RESTARTED: &str = "cart";
/// The service whose Envoy is removed.
pub(crate) const REMOVED: &str = SLOW;

/// The graph before and after the change.
#[derive(Debug)]
pub(crate) struct ObservedChain {
    pub(crate) steady: Observation,
    pub(crate) changed: Observation,
}

/// A graph, and what callers saw.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) graph: GraphDocument,
    /// The graph from the recording.
    pub(crate) again: GraphDocument,
    pub(crate) truth: BTreeMap<Ends, TrueTraffic>,
}

impl Observation {
    /// The edges, by the names of their ends.
    pub(crate) fn edges(&self) -> BTreeMap<(&str, &str), &EdgeTraffic> {
        let name = |id: &str| {
            let vertex = self.graph.vertices.iter().find(|vertex| vertex.id == id);
            vertex.unwrap().name.as_str()
        };
        self.graph
            .edges
            .iter()
            .map(|edge| ((name(&edge.caller), name(&edge.upstream)), &edge.traffic))
            .collect()
    }

    /// Each edge, and what its caller saw.
    pub(crate) fn pairs(&self) -> Vec<(Ends, &EdgeTraffic, &TrueTraffic)> {
        let edges = self.edges();
        let pair = |(ends, truth): (&Ends, _)| {
            let edge = edges.get(&(ends.0, ends.1));
            (
                *ends,
                *edge.unwrap_or_else(|| panic!("no edge {ends:?}")),
                truth,
            )
        };
        self.truth.iter().map(pair).collect()
    }
}

impl ObservedChain {
    /// Starts everything, makes both observations, and ends everything.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let truth = Arc::new(Truth::default());
        let mut chain = Chain::start(&truth).await?;
        let mut prometheus = Prometheus::start(&chain.targets()).await?;
        let load = load(chain.gateway.clone());

        answered(&truth, UNTIL_STEADY).await;
        let steady = observe(&prometheus, &truth, "steady").await?;
        chain.remove(REMOVED);
        chain.restart(RESTARTED).await?;
        answered(&truth, UNTIL_CHANGED).await;
        let changed = observe(&prometheus, &truth, "changed").await?;

        load.abort();
        prometheus.alive()?;
        Ok(Self { steady, changed })
    }
}

async fn answered(truth: &Truth, count: usize) {
    until(&format!("{count} requests are answered"), async || {
        truth.count((GATEWAY, ENTRY)) >= count
    })
    .await;
}

/// Sends requests without waiting for answers, until the task is aborted.
fn load(gateway: Egress) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut due = interval(DISTANCE);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut under_way = JoinSet::new();
        loop {
            due.tick().await;
            while under_way.try_join_next().is_some() {}
            let gateway = gateway.clone();
            under_way.spawn(async move { gateway.call(ENTRY).await });
        }
    })
}

/// Runs the command for the graph of the last half minute, keeps the recording, and prints the table.
async fn observe(
    prometheus: &Prometheus,
    truth: &Truth,
    name: &'static str,
) -> anyhow::Result<Observation> {
    let folder = repository().join("out/graph-prometheus");
    fs::create_dir_all(&folder)?;
    let recording = folder.join(format!("{name}.json"));
    let url = prometheus.url();
    let run = move || -> anyhow::Result<_> {
        let path = text(&recording)?;
        // A step must be at least twice the scrape interval.
        let live = tidegate(&[
            "graph",
            "--prometheus",
            &url,
            "--window",
            "30s",
            "--step",
            "5s",
            "--record",
            path,
            "-o",
            "json",
        ])?;
        let again = tidegate(&["graph", "--from", path, "-o", "json"])?;
        let table = tidegate(&["graph", "--from", path])?;
        println!("{name}: {path}\n{table}");
        Ok((serde_json::from_str(&live)?, serde_json::from_str(&again)?))
    };
    let (graph, again): (GraphDocument, GraphDocument) = tokio::task::spawn_blocking(run).await??;
    let truth = truth.window(graph.end, graph.window_seconds);
    Ok(Observation {
        graph,
        again,
        truth,
    })
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("the path is text")
}

/// The output of the command.
pub(crate) fn tidegate(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .env_remove("TIDEGATE_PROMETHEUS")
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "tidegate {arguments:?}: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}
