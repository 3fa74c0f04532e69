//! A real Prometheus that scrapes each target once a second. Each target has its own job.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use tempfile::TempDir;
use tidegate_meshbed::{BOUND, until};
use tidegate_supervise::{Log, Process};
use tidegate_testbed::client::Caller;
use tidegate_testbed::envoy::repository;

/// A target that is scraped at `/stats/prometheus`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// The name of its job. For an Envoy this is the name of its caller.
    pub(crate) job: &'static str,
    pub(crate) addr: SocketAddr,
    /// Labels that all of its series get, as relabeling adds them in a cluster.
    pub(crate) labels: &'static [(&'static str, &'static str)],
}

impl Target {
    pub(crate) const fn new(job: &'static str, addr: SocketAddr) -> Self {
        Self {
            job,
            addr,
            labels: &[],
        }
    }
}

/// The running server; dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Prometheus {
    process: Process,
    addr: SocketAddr,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts Prometheus, and waits until it has scraped all of `targets`.
    pub(crate) async fn start(targets: &[Target]) -> anyhow::Result<Self> {
        let binary = repository().join(".tools/bin/prometheus");
        ensure!(
            binary.exists(),
            "{}: not there: make graph-prometheus builds it",
            binary.display()
        );
        let folder = TempDir::new()?;
        let config = folder.path().join("prometheus.yaml");
        fs::write(&config, configuration(targets)?)?;
        let mut command = Command::new(binary);
        command
            .arg("--config.file")
            .arg(&config)
            .arg("--storage.tsdb.path")
            .arg(folder.path().join("data"))
            .arg("--web.listen-address=127.0.0.1:0");
        let mut process = Process::start("prometheus", command, Log::In(folder.path()))?;
        let addr = process.line(BOUND, listening).await?;
        let server = Self {
            process,
            addr,
            _folder: folder,
        };
        let wanted = targets.len();
        until("all targets are scraped", async || {
            server.is_up(wanted).await.unwrap_or_default()
        })
        .await;
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Fails if the process has ended.
    pub(crate) fn alive(&mut self) -> anyhow::Result<()> {
        Ok(self.process.alive()?)
    }

    /// Whether exactly `wanted` targets were up at their last scrape.
    async fn is_up(&self, wanted: usize) -> anyhow::Result<bool> {
        let path = "/api/v1/query?query=sum(up)";
        let reply = Caller::http1(self.addr).get(path).await?;
        let answer: Value = serde_json::from_slice(&reply.body)?;
        let found = answer
            .pointer("/data/result/0/value/1")
            .and_then(Value::as_str);
        Ok(found == Some(wanted.to_string().as_str()))
    }
}

fn configuration(targets: &[Target]) -> anyhow::Result<String> {
    let mut text = "global: {scrape_interval: 1s}\nscrape_configs:\n".to_owned();
    for Target { job, addr, labels } in targets {
        let labels: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        writeln!(
            text,
            "- {{job_name: {job}, metrics_path: /stats/prometheus, static_configs: [{{targets: ['{addr}'], labels: {{{}}}}}]}}",
            labels.join(", ")
        )
        .context("write to a text")?;
    }
    Ok(text)
}

/// The listen address, from the line of the log that contains it.
fn listening(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("Listening on")?;
    let (_, address) = rest.split_once("address=")?;
    address.split_whitespace().next()?.parse().ok()
}
