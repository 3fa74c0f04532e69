//! The split of one objective along the graph.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tidegate_advise::split::{EndToEnd, ParallelCalls, split};
use tidegate_advise::traces::{learned_calls, read_traces};
use tidegate_core::config::parse_duration;
use tidegate_graph::BuiltGraph;
use tidegate_graph::output::plain;

use super::form::{AdviceForm, print_json};
use crate::command::output::{NOTED, table};
use crate::command::{CommandFailure, CommandOutcome, output};

/// Shown instead of an unknown value.
const NOT_KNOWN: &str = "-";

/// The options of the split.
#[derive(Debug, Args)]
pub(super) struct SplitOption {
    /// Split one objective of this service among the calls that it causes
    #[arg(long, value_name = "SERVICE", requires = "within", conflicts_with_all = ["policies", "waypoint"])]
    split: Option<String>,
    /// The latency of the objective to split
    #[arg(long, value_name = "TIME", requires = "split", value_parser = time)]
    within: Option<Duration>,
    /// Share of requests that must meet it
    #[arg(long, value_name = "SHARE", requires = "split", default_value_t = 0.99, value_parser = quantile)]
    quantile: f64,
    /// Calls that a service makes at the same time, or alternatives of which it makes one: CALLER=SERVICE,SERVICE
    #[arg(long, value_name = "CALLS", requires = "split", value_parser = parallel)]
    parallel: Vec<ParallelCalls>,
    /// Traces (JSON of OTLP or Jaeger) from which to learn which calls are made at the same time
    #[arg(long, value_name = "FILE", requires = "split", num_args = 1..)]
    traces: Vec<PathBuf>,
}

impl SplitOption {
    /// Prints the split, if one is wanted.
    pub(super) fn run(
        &self,
        built: &BuiltGraph,
        form: AdviceForm,
    ) -> Result<Option<CommandOutcome>, CommandFailure> {
        let (Some(entry), Some(target)) = (&self.split, self.within) else {
            return Ok(None);
        };
        let mut parallel = self.parallel.clone();
        parallel.extend(learned(&self.traces, built)?);
        let objective = EndToEnd {
            entry: entry.clone(),
            quantile: self.quantile,
            target,
            parallel,
        };
        let found = split(&built.graph, &objective)
            .map_err(|error| CommandFailure(plain(&error.to_string())))?;
        for note in &found.notes {
            output::note(&format_args!("{NOTED}note{NOTED:#}: {}", plain(note)));
        }
        for cycle in &found.cycles {
            output::note(&format_args!(
                "{NOTED}warning{NOTED:#}: calls that form a cycle are not followed: {}",
                plain(&cycle.join(" -> "))
            ));
        }
        match form {
            AdviceForm::Table => {
                let rows: Vec<_> = found
                    .parts
                    .iter()
                    .map(|part| {
                        [
                            part.caller
                                .as_deref()
                                .map_or_else(|| NOT_KNOWN.to_owned(), plain),
                            plain(&part.upstream),
                            format!("{:.2}", part.calls),
                            format!("{}", part.quantile),
                            part.target.clone(),
                            format!("{:.1}ms", part.own_seconds * 1_000.0),
                        ]
                    })
                    .collect();
                output::print(&table(
                    [
                        "CALLER", "UPSTREAM", "CALLS", "QUANTILE", "TARGET", "OWN TIME",
                    ],
                    &rows,
                ))?;
            }
            AdviceForm::Json => print_json(&found)?,
            AdviceForm::Yaml | AdviceForm::Config => {
                return Err(CommandFailure(
                    "--split: found --output yaml or config, expected table or json".to_owned(),
                ));
            }
        }
        let is_kept = found
            .expected_late
            .is_some_and(|late| late <= found.allowed_late);
        Ok(Some(if is_kept {
            CommandOutcome::Clean
        } else {
            CommandOutcome::Found
        }))
    }
}

/// Calls that traces show to be made at the same time.
fn learned(traces: &[PathBuf], built: &BuiltGraph) -> Result<Vec<ParallelCalls>, CommandFailure> {
    let mut spans = Vec::new();
    for path in traces {
        let failure = |reason: &dyn std::fmt::Display| {
            CommandFailure(plain(&format!("{}: {reason}", path.display())))
        };
        let text = fs::read_to_string(path).map_err(|error| failure(&error))?;
        spans.extend(read_traces(&text).map_err(|error| failure(&error))?);
    }
    let learned = learned_calls(&built.graph, &spans);
    for name in &learned.unknown {
        output::note(&format_args!(
            "{NOTED}note{NOTED:#}: the traces name {}, which matches no service of the graph, or several",
            plain(name)
        ));
    }
    for group in &learned.parallel {
        let names: Vec<&str> = group.upstreams.iter().map(String::as_str).collect();
        output::note(&format_args!(
            "{NOTED}note{NOTED:#}: the traces show that {} calls at the same time: {}",
            plain(&group.caller),
            plain(&names.join(", "))
        ));
    }
    Ok(learned.parallel)
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a duration such as 800ms".to_owned())
}

fn quantile(text: &str) -> Result<f64, String> {
    let found = text
        .parse()
        .ok()
        .filter(|share| (0.5..=0.999).contains(share));
    found.ok_or_else(|| "expected a number from 0.5 to 0.999".to_owned())
}

fn parallel(text: &str) -> Result<ParallelCalls, String> {
    let found = text.split_once('=').filter(|(caller, upstreams)| {
        !caller.is_empty() && upstreams.split(',').all(|name| !name.is_empty())
    });
    let (caller, upstreams) = found.ok_or_else(|| "expected CALLER=SERVICE,SERVICE".to_owned())?;
    Ok(ParallelCalls {
        caller: caller.to_owned(),
        upstreams: upstreams.split(',').map(str::to_owned).collect(),
    })
}
