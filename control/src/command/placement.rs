//! `tidegate graph --placement`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tidegate_control::cluster::read_nodes;
use tidegate_control::document::yaml;
use tidegate_graph::BuiltGraph;
use tidegate_graph::output::{memory, plain, plain_json};
use tidegate_graph::placement::{EdgeCost, PlacementReport, PlacementTerms, place};

use super::output::{NOTED, table};
use super::{CommandFailure, files, output};

/// The options of the placement.
#[derive(Debug, Args)]
#[command(next_help_heading = "Placement")]
pub(super) struct PlacementOption {
    /// Place the workloads so that little traffic crosses nodes, and report what that changes. Nothing is applied
    #[arg(long)]
    placement: bool,
    /// What to minimize across nodes
    #[arg(
        long,
        value_enum,
        value_name = "COST",
        requires = "placement",
        default_value_t
    )]
    weigh: Weigh,
    /// File with the nodes and what their pods may request, instead of the cluster's nodes
    #[arg(long, value_name = "FILE", requires = "placement")]
    nodes: Option<PathBuf>,
    /// Same seed, same placement
    #[arg(long, value_name = "N", requires = "placement", default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Weigh {
    /// Requests per second, for throughput
    #[default]
    Rate,
    /// The 99th percentile of the latency, for the slowest calls
    Latency,
}

/// The forms of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlacementForm {
    Table,
    Json,
    /// The patches.
    Yaml,
}

impl PlacementOption {
    /// Whether a placement is wanted.
    pub(super) const fn is_wanted(&self) -> bool {
        self.placement
    }

    /// Prints the placement.
    pub(super) fn run(
        &self,
        built: &BuiltGraph,
        form: PlacementForm,
    ) -> Result<(), CommandFailure> {
        let nodes = match &self.nodes {
            None => None,
            Some(path) => {
                let texts = files::texts(std::slice::from_ref(path))?;
                let read = files::borrowed(&texts).map(|(name, bytes)| read_nodes(name, bytes));
                let nodes: Result<Vec<_>, String> = read.collect();
                let nodes = nodes.map_err(|error| {
                    CommandFailure(error.lines().map(plain).collect::<Vec<_>>().join("\n"))
                })?;
                Some(nodes.into_iter().flatten().collect())
            }
        };
        let terms = PlacementTerms {
            cost: match self.weigh {
                Weigh::Rate => EdgeCost::Rate,
                Weigh::Latency => EdgeCost::Latency,
            },
            nodes,
            seed: self.seed,
        };
        let report =
            place(built, &terms).map_err(|error| CommandFailure(plain(&error.to_string())))?;
        for note in &report.notes {
            output::note(&format_args!("{NOTED}note{NOTED:#}: {}", plain(note)));
        }
        match form {
            PlacementForm::Table => output::print(&shown(&report)),
            PlacementForm::Json => {
                let text = serde_json::to_string_pretty(&report)
                    .map_err(|error| CommandFailure(format!("the document: {error}")))?;
                output::print(&plain_json(&format!("{text}\n")))
            }
            PlacementForm::Yaml => output::print(&patches(&report)),
        }
    }
}

fn shown(report: &PlacementReport) -> String {
    let mut out = String::new();
    let before =
        |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), |found| format!("{found:.1}"));
    let rate = &report.rate;
    // Writing to a String does not fail.
    let _ = writeln!(
        out,
        "Across nodes: {} of {:.1} requests/s now, {:.1} afterwards",
        before(rate.across_before),
        rate.total,
        rate.across_after
    );
    if report.cost == EdgeCost::Latency {
        let weight = &report.weight;
        let _ = writeln!(
            out,
            "Latency of calls across nodes, summed: {} of {:.3} s now, {:.3} s afterwards",
            weight
                .across_before
                .map_or_else(|| "-".to_owned(), |found| format!("{found:.3}")),
            weight.total,
            weight.across_after
        );
    }
    if !report.is_better {
        return out;
    }
    let nodes: Vec<_> = report
        .nodes
        .iter()
        .map(|node| {
            let cpu =
                |of: Option<f64>| of.map_or_else(|| "-".to_owned(), |cores| format!("{cores:.2}"));
            let bytes = |of: Option<u64>| of.map_or_else(|| "-".to_owned(), memory);
            [
                plain(&node.node),
                format!(
                    "{} of {}",
                    cpu(node.used.cpu_cores),
                    cpu(node.free.cpu_cores)
                ),
                format!(
                    "{} of {}",
                    bytes(node.used.memory_bytes),
                    bytes(node.free.memory_bytes)
                ),
                spread(&node.workloads),
            ]
        })
        .collect();
    out.push('\n');
    out.push_str(&table(["NODE", "CPU", "MEMORY", "WORKLOADS"], &nodes));
    let moves: Vec<_> = report
        .moves
        .iter()
        .map(|found| {
            [
                plain(&found.workload),
                found.moved.to_string(),
                spread(&found.from),
                spread(&found.to),
            ]
        })
        .collect();
    out.push('\n');
    out.push_str(&table(["WORKLOAD", "MOVED", "NOW", "AFTERWARDS"], &moves));
    out
}

/// Names with the number of pods.
fn spread(pods: &BTreeMap<String, u32>) -> String {
    if pods.is_empty() {
        return "-".to_owned();
    }
    let shown: Vec<String> = pods
        .iter()
        .map(|(name, count)| format!("{} ({count})", plain(name)))
        .collect();
    shown.join(", ")
}

/// The patches as documents. All names in them are values, which are escaped.
fn patches(report: &PlacementReport) -> String {
    let mut out = String::from(
        "# Partial objects. They ask the scheduler to run pods beside those that they call, and take effect when pods are created again:\n\
         # kubectl apply --server-side --field-manager=tidegate-placement -f FILE\n\
         # A conflict means that the object already has such an affinity: merge them by hand.\n",
    );
    for (index, patch) in report.patches.iter().enumerate() {
        if index > 0 {
            out.push_str("---\n");
        }
        out.push_str(&yaml(patch));
    }
    out
}
