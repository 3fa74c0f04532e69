//! `tidegate recommend`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;
use tidegate_advise::recommend::{
    AdviceDocument, AdviceEntry, AdviceTerms, Entries, UpstreamAdvice, advice_document,
    plugin_configuration, recommend,
};
use tidegate_advise::split::{EndToEnd, ParallelCalls, split};
use tidegate_control::advice::{AdvicePlacement, MeshSettings, policies_for, policy_texts};
use tidegate_control::policy::gather;
use tidegate_core::Criticality;
use tidegate_core::config::parse_duration;
use tidegate_graph::BuiltGraph;
use tidegate_graph::output::{plain, plain_json};

use super::output::{NOTED, table};
use super::traffic_source::TrafficSource;
use super::{CommandFailure, CommandOutcome, files, output};

/// What a value is shown as that is not known.
const NOT_KNOWN: &str = "-";

/// Recommend objectives for upstreams from observed traffic, in mode observe
///
/// Finds a quantile, a latency target with a margin and a success rate for each upstream, with the reasons, or says why the
/// observations do not suffice. Nothing is applied. With --policies, the recommendations are compared with the objectives in
/// force, and the exit code is 1 if any differs. With --split, one objective end to end becomes a target for each call.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate recommend --prometheus http://127.0.0.1:9090 --window 1d
  tidegate recommend --from graph.json -o yaml > policies.yaml
  tidegate recommend --from graph.json --policies policies/
  tidegate recommend --from graph.json --split shop/checkout --within 800ms --parallel shop/checkout=shop/cart,shop/prices")]
pub(super) struct Recommend {
    #[command(flatten)]
    source: TrafficSource,
    /// How many times as slow as observed is still good, and how many times the failures
    #[arg(long, value_name = "FACTOR", default_value_t = AdviceTerms::default().margin, value_parser = margin)]
    margin: f64,
    /// Where requests come from: their callers are critical, others sheddable_plus [default: gateways, or what nothing calls]
    #[arg(long, value_name = "SERVICE", value_delimiter = ',')]
    entry: Vec<String>,
    /// Policies in force: files, directories, or - for standard input
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
    policies: Vec<PathBuf>,
    /// Write policies for the waypoint of that name, instead of for the proxies of the callers
    #[arg(long, value_name = "NAME")]
    waypoint: Option<String>,
    /// Form of the recommendations
    #[arg(
        short,
        long = "output",
        value_enum,
        value_name = "FORMAT",
        default_value_t
    )]
    output: AdviceForm,
    /// Split one objective of this service among the calls that it causes
    #[arg(long, value_name = "SERVICE", requires = "within", conflicts_with_all = ["policies", "waypoint"])]
    split: Option<String>,
    /// The latency of the objective to split
    #[arg(long, value_name = "TIME", requires = "split", value_parser = time)]
    within: Option<Duration>,
    /// The share of requests that must keep it
    #[arg(long, value_name = "SHARE", requires = "split", default_value_t = 0.99, value_parser = quantile)]
    quantile: f64,
    /// Calls of a service that are made at the same time, or of which only one is made: CALLER=SERVICE,SERVICE
    #[arg(long, value_name = "CALLS", requires = "split", value_parser = parallel)]
    parallel: Vec<ParallelCalls>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum AdviceForm {
    /// For people
    #[default]
    Table,
    /// For programs, with all reasons
    Json,
    /// Policies, with the reasons as comments
    Yaml,
    /// A configuration of the filter
    Config,
}

impl Recommend {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let settings = self.settings()?;
        let built = self.source.built()?;
        if let (Some(entry), Some(within)) = (&self.split, self.within) {
            return self.run_split(&built, entry, within);
        }
        let entries = if self.entry.is_empty() {
            Entries::Guessed
        } else {
            Entries::Named(self.entry.iter().cloned().collect())
        };
        let terms = AdviceTerms {
            margin: self.margin,
            entries,
        };
        let advice = recommend(&built, &terms);
        let document = advice_document(&advice, built.observed, |upstream| {
            let found = policies_for(&settings, upstream).into_iter();
            found.map(|policy| policy.objective).collect()
        });
        match self.output {
            AdviceForm::Table => output::print(&shown(&document))?,
            AdviceForm::Json => print_json(&document)?,
            AdviceForm::Yaml => self.print_policies(&advice)?,
            AdviceForm::Config => print_configuration(&advice)?,
        }
        let in_force = document.upstreams.iter().flat_map(|entry| &entry.in_force);
        let differs = in_force
            .into_iter()
            .any(|found| found.differs == Some(true) || !found.verdicts.is_empty());
        Ok(if differs {
            CommandOutcome::Found
        } else {
            CommandOutcome::Clean
        })
    }

    /// The policies in force.
    fn settings(&self) -> Result<MeshSettings, CommandFailure> {
        let texts = files::texts(&self.policies)?;
        let settings = MeshSettings::read(files::borrowed(&texts), "default");
        for note in &settings.notes {
            output::note(&plain(note));
        }
        for problem in &settings.problems {
            output::note(problem);
        }
        if settings.problems.is_empty() {
            Ok(settings)
        } else {
            Err(CommandFailure(
                "the policies in force have errors".to_owned(),
            ))
        }
    }

    fn print_policies(&self, advice: &[UpstreamAdvice<'_>]) -> Result<(), CommandFailure> {
        let placement = self
            .waypoint
            .clone()
            .map_or(AdvicePlacement::Callers, AdvicePlacement::Waypoint);
        let made = policy_texts(advice, &placement);
        for note in &made.notes {
            output::note(note);
        }
        // The printed policies must be valid.
        let read = gather([("the policies made", made.text.as_bytes())]);
        if let Some(problem) = read.problems.first() {
            return Err(CommandFailure(problem.to_string()));
        }
        output::print(&made.text)
    }

    fn run_split(
        &self,
        built: &BuiltGraph,
        entry: &str,
        target: Duration,
    ) -> Result<CommandOutcome, CommandFailure> {
        let objective = EndToEnd {
            entry: entry.to_owned(),
            quantile: self.quantile,
            target,
            parallel: self.parallel.clone(),
        };
        let found = split(&built.graph, &objective)
            .map_err(|error| CommandFailure(plain(&error.to_string())))?;
        for note in &found.notes {
            output::note(&format_args!("{NOTED}note{NOTED:#}: {}", plain(note)));
        }
        for cycle in &found.cycles {
            output::note(&format_args!(
                "{NOTED}warning{NOTED:#}: a circle of calls is not followed: {}",
                plain(&cycle.join(" -> "))
            ));
        }
        match self.output {
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
        Ok(if is_kept {
            CommandOutcome::Clean
        } else {
            CommandOutcome::Found
        })
    }
}

fn print_json(value: &impl serde::Serialize) -> Result<(), CommandFailure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CommandFailure(format!("the document: {error}")))?;
    output::print(&plain_json(&format!("{text}\n")))
}

fn print_configuration(advice: &[UpstreamAdvice<'_>]) -> Result<(), CommandFailure> {
    let all: Vec<_> = advice.iter().collect();
    // One configuration may be for any caller.
    match plugin_configuration(&all, Criticality::Critical) {
        Some(value) => print_json(&value),
        None => Err(CommandFailure(
            "no upstream has both an objective and a name for a rule: see -o table".to_owned(),
        )),
    }
}

fn shown(document: &AdviceDocument) -> String {
    let rows: Vec<_> = document.upstreams.iter().map(row).collect();
    table(
        [
            "UPSTREAM", "QUANTILE", "TARGET", "SUCCESS", "OBSERVED", "SENSIBLE", "SAMPLES", "NOTE",
        ],
        &rows,
    )
}

fn row(entry: &AdviceEntry) -> [String; 8] {
    let slo = |pointer: &str| {
        let value = entry.slo.as_ref().and_then(|slo| slo.pointer(pointer));
        text(value)
    };
    let bound = |pointer: &str| {
        let value = entry
            .bounds
            .as_ref()
            .and_then(|bounds| bounds.pointer(pointer));
        text(value)
    };
    let evidence = entry.evidence.as_ref();
    let mut notes: Vec<String> = Vec::new();
    notes.extend(entry.refused.as_ref().map(ToString::to_string));
    if entry.refused.is_none() {
        notes.extend(entry.no_rule.clone());
    }
    for found in &entry.in_force {
        let differs = if found.differs == Some(false) {
            "as"
        } else {
            "now"
        };
        let verdicts: String = found
            .verdicts
            .iter()
            .map(|verdict| format!(", but {verdict}"))
            .collect();
        notes.push(format!(
            "{differs} in {}: {} within {}, success {}{verdicts}",
            found.policy,
            text(found.slo.pointer("/latency/quantile")),
            text(found.slo.pointer("/latency/target")),
            text(found.slo.pointer("/successRate")),
        ));
    }
    let known = |value: Option<String>| value.unwrap_or_else(|| NOT_KNOWN.to_owned());
    [
        plain(&entry.upstream),
        slo("/latency/quantile"),
        slo("/latency/target"),
        slo("/successRate"),
        known(evidence.map(|found| format!("{:.1}ms", found.observed_seconds * 1_000.0))),
        known(evidence.map(|_| {
            format!(
                "{} to {}",
                bound("/target/lowest"),
                bound("/target/highest")
            )
        })),
        known(evidence.map(|found| format!("{:.0}", found.samples))),
        plain(&notes.join("; ")),
    ]
}

fn text(value: Option<&Value>) -> String {
    match value {
        None => NOT_KNOWN.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a duration such as 800ms".to_owned())
}

fn margin(text: &str) -> Result<f64, String> {
    let range = 1.0..=AdviceTerms::MAX_MARGIN;
    let found = text.parse().ok().filter(|margin| range.contains(margin));
    found.ok_or_else(|| {
        format!(
            "expected a number from {} to {}",
            range.start(),
            range.end()
        )
    })
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
