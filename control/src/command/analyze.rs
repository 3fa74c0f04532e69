//! `tidegate analyze`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tidegate_advise::chain::{
    ChainFinding, ChainSettings, FindingSeverity, FindingsDocument, analyze,
};
use tidegate_control::advice::{MeshSettings, policies_for};
use tidegate_graph::output::plain;

use super::output::{BAD, GOOD, HEADING, NOTED, OutputOption};
use super::traffic_source::TrafficSource;
use super::{CommandFailure, CommandOutcome, files, output};

/// Check settings along chains of calls: timeouts, retries, static limits, objectives and policies
///
/// Reads the service graph from Prometheus, and policies, VirtualServices and DestinationRules from files. Each finding
/// has a code, a severity, an object, and what to do. The exit code is 1 if there is a finding of severity error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate analyze --prometheus http://127.0.0.1:9090 istio/ policies/
  kubectl get virtualservice,destinationrule,breakerpolicy -A -o yaml | tidegate analyze --from graph.json -
  tidegate analyze --from graph.json istio/ -o json | jq '.findings[] | select(.severity == \"error\")'")]
pub(super) struct Analyze {
    /// Files, directories (their .yaml, .yml and .json files), or - for standard input
    #[arg(value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    source: TrafficSource,
    /// Namespace of Istio's documents that name none
    #[arg(long, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    output: OutputOption,
    /// Print the JSON schema of -o json, and nothing else
    #[arg(long)]
    schema: bool,
}

impl Analyze {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        if self.schema {
            output::print(&format!("{:#}\n", FindingsDocument::schema()))?;
            return Ok(CommandOutcome::Clean);
        }
        let texts = files::texts(&self.paths)?;
        let settings = MeshSettings::read(files::borrowed(&texts), &self.namespace);
        for note in &settings.notes {
            output::note(&plain(note));
        }
        for problem in &settings.problems {
            output::note(problem);
        }
        if !settings.problems.is_empty() {
            return Err(CommandFailure("the documents have errors".to_owned()));
        }
        let built = self.source.built()?;
        let overlaps = settings.overlaps();
        let checked = ChainSettings {
            routes: &settings.routes,
            pools: &settings.pools,
            overlaps: &overlaps,
        };
        let findings = analyze(&built, checked, |upstream| {
            policies_for(&settings, upstream)
        });
        self.print(&findings)?;
        let is_bad = findings
            .iter()
            .any(|found| found.severity == FindingSeverity::Error);
        Ok(if is_bad {
            CommandOutcome::Found
        } else {
            CommandOutcome::Clean
        })
    }

    fn print(&self, findings: &[ChainFinding]) -> Result<(), CommandFailure> {
        self.output
            .print(&json!(FindingsDocument::new(findings)), || {
                if findings.is_empty() {
                    return format!("{GOOD}no findings{GOOD:#}\n");
                }
                findings.iter().map(lines).collect()
            })
    }
}

fn lines(found: &ChainFinding) -> String {
    let style = match found.severity {
        FindingSeverity::Error => BAD,
        FindingSeverity::Warning => NOTED,
        FindingSeverity::Info => HEADING,
    };
    let (code, name) = found.code.names();
    let place = found
        .place
        .as_deref()
        .filter(|place| !place.is_empty())
        .map(|place| format!(" {}", plain(place)));
    format!(
        "{style}{}{style:#} [{code}] {HEADING}{name}{HEADING:#} ({}{}): {}\n    {}\n",
        found.severity,
        plain(&found.object),
        place.unwrap_or_default(),
        found
            .message
            .split(' ')
            .map(plain)
            .collect::<Vec<_>>()
            .join(" "),
        found.remedy,
    )
}
