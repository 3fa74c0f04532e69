//! Where a command reads the service graph: from Prometheus, or from a recording of its answers.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tidegate_control::traffic::TrafficTerms;
use tidegate_core::config::parse_duration;
use tidegate_graph::output as forms;
use tidegate_graph::{
    BuildTerms, BuiltGraph, ClusterFacts, Collected, MetricsChoice, MetricsSource, Recording, build,
};

use super::cluster_source::ClusterSource;
use super::output::NOTED;
use super::prometheus::{PrometheusOptions, now, unread};
use super::{CommandFailure, output};

/// The options of every command that reads the service graph.
#[derive(Debug, Args)]
pub(super) struct TrafficSource {
    #[command(flatten)]
    prometheus: PrometheusOptions,
    /// Read the answers from a file that --record wrote, instead of asking Prometheus
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "window", "step", "metrics", "caller_label"])]
    from: Option<PathBuf>,
    /// Write the answers of Prometheus to a file, for --from
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// How far back traffic is observed
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = seconds)]
    window: u32,
    /// Time between the points over which the rate is averaged, at least twice the scrape interval
    /// [default: 5m, or a twelfth of a shorter window, but at least 30s]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    step: Option<u32>,
    /// Source of the metrics
    /// [default: the first of istio, envoy and tidegate that has any]
    #[arg(long, value_enum, value_name = "SOURCE", value_delimiter = ',')]
    metrics: Vec<MetricsOption>,
    /// The label that names the caller in the metrics of Envoy and Tidegate
    #[arg(long, value_name = "LABEL", default_value = "job")]
    caller_label: String,
    /// Mark edges with fewer requests in the window
    #[arg(long, value_name = "N", default_value_t = BuildTerms::default().min_samples)]
    min_samples: u32,
    #[command(flatten)]
    cluster: ClusterSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum MetricsOption {
    /// Istio's standard metrics
    Istio,
    /// Envoy's statistics of its clusters
    Envoy,
    /// The metrics of Tidegate's filter
    Tidegate,
}

impl TrafficSource {
    /// The graph, if a source of traffic is given; otherwise the facts about the cluster, if their source is given.
    pub(super) fn built_if_named(
        &self,
    ) -> Result<(Option<BuiltGraph>, Option<ClusterFacts>), CommandFailure> {
        if self.from.is_some() || self.prometheus.is_given() {
            return Ok((Some(self.built()?), None));
        }
        let cluster = self.cluster.facts(self.prometheus.timeout())?;
        for reason in cluster.iter().flat_map(|found| &found.unread) {
            let text = forms::plain(reason);
            output::note(&format_args!(
                "{NOTED}warning{NOTED:#}: not read from Kubernetes: {text}"
            ));
        }
        Ok((None, cluster))
    }

    /// The graph. Prints warnings to standard error about what it does not show.
    pub(super) fn built(&self) -> Result<BuiltGraph, CommandFailure> {
        let cluster = self.cluster.facts(self.prometheus.timeout())?;
        let built = match &self.from {
            Some(path) => {
                let text = fs::read_to_string(path).map_err(|error| failure(path, &error))?;
                let mut recording =
                    Recording::parse(&text).map_err(|error| failure(path, &error))?;
                recording.kubernetes = cluster.or(recording.kubernetes);
                build(&recording, self.terms()).map_err(|error| failure(path, &error))?
            }
            None => {
                let collected = self.collect()?;
                let mut recording = collected.recording();
                recording.kubernetes = cluster;
                if let Some(path) = &self.record {
                    record(&recording, path)?;
                }
                build(&recording, self.terms())
                    .map_err(|error| CommandFailure(error.to_string()))?
            }
        };
        for warning in &built.warnings {
            let text = forms::plain(&warning.message);
            output::note(&format_args!("{NOTED}warning{NOTED:#}: {text}"));
        }
        Ok(built)
    }

    const fn terms(&self) -> BuildTerms {
        BuildTerms {
            min_samples: self.min_samples,
        }
    }

    fn collect(&self) -> Result<Collected, CommandFailure> {
        // Not required by the grammar, because `graph --schema` needs none.
        if !self.prometheus.is_given() {
            return Err(CommandFailure(
                "found no source of traffic, expected --prometheus <URL> or --from <FILE>"
                    .to_owned(),
            ));
        }
        let client = self.prometheus.client()?;
        let terms = TrafficTerms {
            prometheus: self.prometheus.terms()?,
            window_seconds: self.window,
            step_seconds: self.step,
            choice: choice(&self.metrics),
            caller_label: self.caller_label.clone(),
            build: self.terms(),
        };
        terms.collected(&client, now()?).map_err(unread)
    }
}

/// The metrics to read; if none are named, the first that exist.
pub(super) fn choice(metrics: &[MetricsOption]) -> MetricsChoice {
    if metrics.is_empty() {
        MetricsChoice::First
    } else {
        MetricsChoice::All(metrics.iter().map(|source| (*source).into()).collect())
    }
}

impl From<MetricsOption> for MetricsSource {
    fn from(source: MetricsOption) -> Self {
        match source {
            MetricsOption::Istio => Self::Istio,
            MetricsOption::Envoy => Self::Envoy,
            MetricsOption::Tidegate => Self::Tidegate,
        }
    }
}

fn record(recording: &Recording<'_>, path: &Path) -> Result<(), CommandFailure> {
    let file = File::create(path).map_err(|error| failure(path, &error))?;
    let mut out = BufWriter::new(file);
    recording
        .write(&mut out)
        .map_err(|error| failure(path, &error))?;
    out.flush().map_err(|error| failure(path, &error))
}

/// A time in whole seconds, at least one.
pub(super) fn seconds(text: &str) -> Result<u32, String> {
    let found = parse_duration(text).and_then(|time| u32::try_from(time.as_secs()).ok());
    found
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| "expected a duration of at least 1s such as 1h".to_owned())
}

fn failure(path: &Path, reason: &dyn std::fmt::Display) -> CommandFailure {
    CommandFailure(format!("{}: {reason}", path.display()))
}
