//! `tidegate migrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tidegate_control::advice::read_made;
use tidegate_control::migrate::{
    FixedNumbers, LimitedProxies, Migration, MigrationOptions, MigrationSources, migrate,
    read_counts,
};
use tidegate_core::config::schema::LATENCY_TARGET;
use tidegate_graph::output::plain;

use super::extension::ExtensionOption;
use super::output::NOTED;
use super::traffic_source::TrafficSource;
use super::{CommandFailure, CommandOutcome, files, output};

/// Turn the limits of Istio DestinationRules into policies
///
/// Reads connectionPool and outlierDetection, and prints the policies that replace them. A comment
/// explains for every field how it was carried over, or why not. Limits of each client's proxy
/// become bounds per endpoint, within which the limit is learned; a waypoint, which all clients
/// share, gets the bounds of all of them together. Counts and objectives come from the service graph, Kubernetes or a
/// file; the flags apply where none of these has a value. Missing values are named in the policies and on standard
/// error.
///
/// Of outlierDetection, baseEjectionTime becomes breaker.maxOpen, and nothing else is carried over, because the breaker
/// judges the upstream as a whole. No outlierDetection is written, because no measurement shows that it helps beside a
/// policy. To eject single bad endpoints, keep it in the DestinationRule.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl get destinationrule reviews -o yaml | tidegate migrate - --replicas 5 --latency 250ms
  tidegate migrate rules/ --from graph.json > policies.yaml
  tidegate migrate rules/ --mode waypoint --replicas 5 --clients 10 --waypoint-replicas 1 --latency 250ms > policies.yaml")]
pub(super) struct Migrate {
    /// Files, directories (their .yaml, .yml and .json files), or - for standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Proxies that enforce the limits
    #[arg(long, value_enum, default_value_t)]
    mode: MigrateMode,
    /// Endpoints of each service for which no other source has a count
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replicas: Option<u32>,
    /// Client workloads of each service for which no other source has a count; each has a proxy that enforces the
    /// limits
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: Option<u32>,
    /// Name of the waypoint's Gateway
    #[arg(long, default_value = "waypoint")]
    waypoint: String,
    /// Pods of the waypoint, if Kubernetes does not say how many there are
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    waypoint_replicas: Option<u32>,
    /// Namespace of rules that name none
    #[arg(long, default_value = "default")]
    namespace: String,
    /// Objective of each service without a known one: the latency that 99 of 100 requests must meet
    #[arg(long, value_name = "DURATION", value_parser = target)]
    latency: Option<String>,
    /// Counts and latencies of services: a list under services with host, replicas, clients and latency
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
    #[command(flatten)]
    extension: ExtensionOption,
    #[command(flatten)]
    source: TrafficSource,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum MigrateMode {
    /// The sidecar of each client
    #[default]
    Sidecar,
    /// The waypoint that all clients share
    Waypoint,
}

impl Migrate {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let options = MigrationOptions {
            proxies: match self.mode {
                MigrateMode::Sidecar => LimitedProxies::Sidecars,
                MigrateMode::Waypoint => LimitedProxies::Waypoint,
            },
            waypoint: self.waypoint.clone(),
            namespace: self.namespace.clone(),
            fixed: FixedNumbers {
                replicas: self.replicas,
                clients: self.clients,
                waypoints: self.waypoint_replicas,
                latency: self.latency.clone(),
            },
        };
        let (graph, cluster) = self.source.built_if_named()?;
        let mut sources = MigrationSources {
            graph: graph.as_ref(),
            cluster: graph
                .as_ref()
                .and_then(|built| built.kubernetes.as_ref())
                .or(cluster.as_ref()),
            ..MigrationSources::default()
        };
        if let Some(path) = &self.counts {
            for (name, bytes) in files::borrowed(&files::texts(std::slice::from_ref(path))?) {
                let counts = read_counts(name, bytes).map_err(CommandFailure)?;
                sources.counts.extend(counts);
            }
        }
        let texts = files::texts(&self.paths)?;
        let done = migrate(files::borrowed(&texts), &options, &sources);
        self.finish(&done)
    }

    /// Prints the policies, unless they have errors.
    fn finish(&self, done: &Migration) -> Result<CommandOutcome, CommandFailure> {
        for note in &done.notes {
            output::note(note);
        }
        // The printed policies must be valid, except for a missing objective.
        let mut made = read_made(&done.policies).problems;
        made.retain(|problem| !(done.lacks_objective && problem.path.contains("slo")));
        for problem in done.problems.iter().chain(&made) {
            output::note(problem);
        }
        if !done.problems.is_empty() || !made.is_empty() {
            return Ok(CommandOutcome::Found);
        }
        for unknown in &done.unknown {
            let words: Vec<String> = unknown.split(' ').map(plain).collect();
            output::note(&format_args!(
                "{NOTED}warning{NOTED:#}: {}",
                words.join(" ")
            ));
        }
        if done.lacks_objective && self.extension.is_wanted() {
            return Err(CommandFailure(
            "--extension-api: found policies without an objective, expected one for each: --latency, --counts, or a graph"
                .to_owned(),
        ));
        }
        self.extension.print(&done.policies)?;
        Ok(if done.lacks_objective {
            CommandOutcome::Found
        } else {
            CommandOutcome::Clean
        })
    }
}

/// Checks that a policy would accept the latency.
fn target(text: &str) -> Result<String, String> {
    let found = LATENCY_TARGET.parse(text).map(|_| text.to_owned());
    found.ok_or_else(|| format!("expected {LATENCY_TARGET}"))
}
