//! `tidegate score`.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tidegate_advise::score::{
    ScoreReadings, ScoreTerms, ScoredUpstream, score_queries, scored_upstreams,
};
use tidegate_control::advice::promised_for;
use tidegate_graph::output::plain;

use super::output::{NOTED, OutputOption, table};
use super::prometheus::{PrometheusOptions, now};
use super::traffic_source::seconds;
use super::{CommandFailure, CommandOutcome, files, output};

/// Step between the points of the window, in seconds: at least two scrapes at any usual scrape interval.
const STEP_SECONDS: u32 = 300;
/// Number of points in a window that is too short for steps of five minutes.
const MIN_POINTS: u32 = 12;
/// The shortest step, in seconds: two scrapes at the shortest usual interval.
const MIN_STEP_SECONDS: u32 = 30;

/// Score what protection gives each upstream, and what it costs, from metrics in Prometheus
///
/// Benefit: answers in time and with success, against the objective. Cost: requests shed while nothing was overloaded,
/// and CPU and memory of the proxies. Each part has a number from 0 to 1, where 1 is best, and a reason. An unknown
/// part has no number. The worst upstream comes first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate score --prometheus http://127.0.0.1:9090 --policies policies/
  tidegate score --prometheus http://127.0.0.1:9090 --since 1d -o json | jq '.upstreams[] | select(.score < 0.8)'")]
pub(super) struct Score {
    #[command(flatten)]
    prometheus: PrometheusOptions,
    /// How far back traffic is observed
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = seconds)]
    since: u32,
    /// Policies with the objectives: files, directories, or - for standard input
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
    policies: Vec<PathBuf>,
    /// Weights, budgets and the objective of upstreams without a policy, instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    terms: Option<PathBuf>,
    #[command(flatten)]
    output: OutputOption,
}

impl Score {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let terms = self.terms()?;
        let (_, gathered) = files::policies(&self.policies)?;
        for problem in &gathered.problems {
            output::note(problem);
        }
        if !gathered.problems.is_empty() {
            return Err(CommandFailure("the policies have errors".to_owned()));
        }
        let usual = (self.since / MIN_POINTS).clamp(MIN_STEP_SECONDS, STEP_SECONDS);
        let queries = score_queries(self.since, usual.min(self.since))
            .map_err(|error| CommandFailure(error.to_string()))?;
        let end = now()?;
        let readings = ScoreReadings::ask(&self.prometheus.client()?, &queries, end)
            .map_err(|error| CommandFailure(sentence(&error.to_string())))?;
        for warning in &readings.warnings {
            output::note(&format_args!(
                "{NOTED}warning{NOTED:#}: {}",
                sentence(warning)
            ));
        }
        let scored = scored_upstreams(&readings, &terms, |upstream| {
            promised_for(&gathered.policies, upstream)
        });
        let value = json!({"end": end, "windowSeconds": self.since, "upstreams": scored});
        self.output.print(&value, || shown(&scored))?;
        Ok(CommandOutcome::Clean)
    }

    fn terms(&self) -> Result<ScoreTerms, CommandFailure> {
        let read = match &self.terms {
            None => ScoreTerms::ours(),
            Some(path) => {
                let name = path.display().to_string();
                let text = fs::read_to_string(path)
                    .map_err(|error| CommandFailure(format!("{name}: {error}")))?;
                ScoreTerms::parse(&text, &name)
            }
        };
        read.map_err(|error| CommandFailure(error.to_string()))
    }
}

/// A row for each upstream, and one for each of its parts.
fn shown(scored: &[ScoredUpstream]) -> String {
    let number = |score: Option<f64>| score.map_or_else(|| "-".to_owned(), |it| format!("{it:.2}"));
    let rows = scored.iter().flat_map(|one| {
        let summary = format!(
            "benefit {}, cost {}, of {:.0} requests",
            number(one.benefit),
            number(one.cost),
            one.requests
        );
        let whole = [
            plain(&one.upstream),
            "all".to_owned(),
            number(one.score),
            summary,
        ];
        let part = one.parts.iter().map(|part| {
            let name = part.name.to_owned();
            [
                String::new(),
                name,
                number(part.score),
                sentence(&part.reason),
            ]
        });
        std::iter::once(whole).chain(part)
    });
    let rows: Vec<[String; 4]> = rows.collect();
    table(["UPSTREAM", "PART", "SCORE", "WHY"], &rows)
}

/// A text that contains names from metrics, on one line and safe to print. Escaped word by word, so that it is not cut.
fn sentence(text: &str) -> String {
    let words: Vec<String> = text.split(' ').map(plain).collect();
    words.join(" ")
}
