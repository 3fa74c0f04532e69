//! `tidegate recommend`.

mod form;
mod split;
mod table;

use std::path::PathBuf;

use clap::Args;
use tidegate_advise::recommend::{
    AdviceTerms, Entries, UpstreamAdvice, advice_schema, plugin_configuration, recommend,
    unknown_entries,
};
use tidegate_control::advice::{
    AdvicePlacement, MeshSettings, compared, left_out, policy_texts, read_made,
};
use tidegate_core::Criticality;
use tidegate_graph::output::plain;

use super::extension::ExtensionOption;
use super::traffic_source::TrafficSource;
use super::{CommandFailure, CommandOutcome, files, output};
use form::{AdviceForm, print_json};
use split::SplitOption;
use table::shown;

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
    /// Factor by which latency and failures may exceed the observed ones
    #[arg(long, value_name = "FACTOR", default_value_t = AdviceTerms::default().margin, value_parser = margin)]
    margin: f64,
    /// Services where requests enter: callers that these requests reach are critical, others sheddable_plus [default:
    /// gateways, or services that nothing calls]
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
    /// Print the JSON schema of -o json without --split, and nothing else
    #[arg(long)]
    schema: bool,
    #[command(flatten)]
    extension: ExtensionOption,
    #[command(flatten)]
    split: SplitOption,
}

impl Recommend {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        if self.schema {
            output::print(&format!("{:#}\n", advice_schema()))?;
            return Ok(CommandOutcome::Clean);
        }
        if self.extension.is_wanted() && self.output != AdviceForm::Yaml {
            return Err(CommandFailure(
                "--extension-api: expected --output yaml with it".to_owned(),
            ));
        }
        let settings = self.settings()?;
        let built = self.source.built()?;
        if let Some(outcome) = self.split.run(&built, self.output)? {
            return Ok(outcome);
        }
        let entries = if self.entry.is_empty() {
            Entries::Guessed
        } else {
            Entries::Named(self.entry.iter().cloned().collect())
        };
        let unknown = unknown_entries(&built.graph, &entries);
        if !unknown.is_empty() {
            return Err(CommandFailure(format!(
                "--entry: found {}, expected names of the graph as tidegate graph prints them",
                plain(&unknown.join(", "))
            )));
        }
        let terms = AdviceTerms {
            margin: self.margin,
            entries,
        };
        let advice = recommend(&built, &terms);
        let document = compared(&advice, built.observed, &settings);
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
        let read = read_made(&made.text);
        if let Some(problem) = read.problems.first() {
            return Err(CommandFailure(problem.to_string()));
        }
        self.extension.print(&made.text)
    }
}

fn print_configuration(advice: &[UpstreamAdvice<'_>]) -> Result<(), CommandFailure> {
    let all: Vec<_> = advice.iter().collect();
    if let Some(note) = left_out("", &all) {
        output::note(&note);
    }
    // The configuration may be used for any caller.
    match plugin_configuration(&all, Criticality::Critical) {
        Some(value) => print_json(&value),
        None => Err(CommandFailure(
            "no upstream has both an objective and a name for a rule: see -o table".to_owned(),
        )),
    }
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
