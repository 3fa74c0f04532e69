//! `tidegate migrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tidegate_control::migrate::{MigrationOptions, ProxyTopology, migrate};
use tidegate_control::policy::gather;

use super::{CommandFailure, CommandOutcome, files, output};

/// Turn the limits of Istio DestinationRules into policies
///
/// Reads connectionPool and outlierDetection, and prints the policies that replace them. A comment
/// explains for every field how it was carried over, or why not. Limits of each client's proxy
/// become bounds per endpoint, within which the limit is learned; a waypoint, which all clients
/// share, gets the bounds of all of them together.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl get destinationrule reviews -o yaml | tidegate migrate - --replicas 5 --clients 10
  tidegate migrate rules/ --mode waypoint --replicas 5 --clients 10 > policies.yaml")]
pub(super) struct Migrate {
    /// Files, directories (their .yaml, .yml and .json files), or - for standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Proxies that enforce the limits
    #[arg(long, value_enum, default_value_t)]
    mode: MigrateMode,
    /// Endpoints of the service
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    replicas: u32,
    /// Client workloads, each with a proxy that enforces the limits
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: u32,
    /// Name of the waypoint's Gateway
    #[arg(long, default_value = "waypoint")]
    waypoint: String,
    /// Pods of the waypoint
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    waypoint_replicas: u32,
    /// Namespace of rules without one
    #[arg(long, default_value = "default")]
    namespace: String,
    /// The objective, which a DestinationRule does not have: the latency that 99 of 100 requests must meet
    #[arg(long, default_value = "1s", value_name = "DURATION")]
    latency: String,
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
        let (clients, replicas) = (self.clients, self.replicas);
        let options = MigrationOptions {
            topology: match self.mode {
                MigrateMode::Sidecar => ProxyTopology::Sidecars { clients, replicas },
                MigrateMode::Waypoint => ProxyTopology::Waypoint {
                    clients,
                    replicas,
                    waypoints: self.waypoint_replicas,
                },
            },
            waypoint: self.waypoint.clone(),
            namespace: self.namespace.clone(),
            latency: self.latency.clone(),
        };
        let texts = files::texts(&self.paths)?;
        let done = migrate(files::borrowed(&texts), &options);
        for note in &done.notes {
            output::note(note);
        }
        // The printed policies must be valid.
        let made = gather([("the policies made", done.policies.as_bytes())]);
        for problem in done.problems.iter().chain(&made.problems) {
            output::note(problem);
        }
        if !done.problems.is_empty() || !made.problems.is_empty() {
            return Ok(CommandOutcome::Found);
        }
        output::print(&done.policies)?;
        Ok(CommandOutcome::Clean)
    }
}
