//! `tidegate graph`.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};
use tidegate_core::config::parse_duration;
use tidegate_graph::output::{self as forms, MAX_MERMAID_EDGES};
use tidegate_graph::prometheus::{ClientSettings, Credentials, PrometheusClient};
use tidegate_graph::{
    BuildTerms, BuiltGraph, Collected, MetricsChoice, MetricsSource, ObservationWindow, Recording,
    build, collect, planned,
};

use super::output::{NOTED, table};
use super::{CommandFailure, CommandOutcome, output};

/// Points of a window that is too short for steps of five minutes.
const MIN_POINTS: u32 = 12;
/// Distance of the points, in seconds: at least two scrapes, for any usual interval of scrapes.
const STEP_SECONDS: u32 = 300;
/// The shortest distance of the points, in seconds: two scrapes at the shortest usual interval.
const MIN_STEP_SECONDS: u32 = 30;

/// Show who calls whom, how often, how well and how fast, from metrics in Prometheus
///
/// Reads the metrics of Istio, of Envoy's clusters or of Tidegate's filter over a window that ends now. A query that fails leaves a
/// gap: the graph is made of the others, and a warning on standard error names what is unknown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate graph --prometheus http://127.0.0.1:9090
  tidegate graph --prometheus http://127.0.0.1:9090 --window 6h -o mermaid
  tidegate graph --prometheus https://prometheus.example --ca ca.pem --token-file token --record graph.json
  tidegate graph --from graph.json -o json | jq '.edges[] | select(.success < 0.99)'")]
pub(super) struct Graph {
    /// URL of Prometheus, with its path prefix if it has one
    #[arg(long, value_name = "URL", env = "TIDEGATE_PROMETHEUS",
          required_unless_present_any = ["from", "schema"])]
    prometheus: Option<String>,
    /// Read the answers from a file that --record wrote, instead of asking Prometheus
    #[arg(long, value_name = "FILE", conflicts_with_all = ["record", "window", "step", "metrics", "caller_label"])]
    from: Option<PathBuf>,
    /// Write the answers of Prometheus to a file, for --from
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// How far back traffic is observed
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = seconds)]
    window: u32,
    /// Distance of the points that the rate is averaged over, at least twice the interval of scrapes
    /// [default: 5m, or a twelfth of a shorter window, but at least 30s]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    step: Option<u32>,
    /// Whose metrics are read
    /// [default: the first of istio, envoy and tidegate that has any]
    #[arg(long, value_enum, value_name = "SOURCE", value_delimiter = ',')]
    metrics: Vec<Source>,
    /// The label that names the caller in the metrics of Envoy and Tidegate
    #[arg(long, value_name = "LABEL", default_value = "job")]
    caller_label: String,
    /// Mark edges with fewer requests in the window
    #[arg(long, value_name = "N", default_value_t = BuildTerms::default().min_samples)]
    min_samples: u32,
    /// File with a bearer token
    #[arg(long, value_name = "FILE", conflicts_with = "basic_user")]
    token_file: Option<PathBuf>,
    /// User for basic authentication
    #[arg(long, value_name = "NAME", requires = "basic_password_file")]
    basic_user: Option<String>,
    /// File with the password for basic authentication
    #[arg(long, value_name = "FILE", requires = "basic_user")]
    basic_password_file: Option<PathBuf>,
    /// Certificate authorities (PEM) instead of those of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Longest time for the answer to one query
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    timeout: Duration,
    /// Form of the graph
    #[arg(
        short,
        long = "output",
        value_enum,
        value_name = "FORMAT",
        default_value_t
    )]
    output: GraphForm,
    /// Print the JSON schema of -o json, and nothing else
    #[arg(long)]
    schema: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum GraphForm {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// For Graphviz
    Dot,
    /// A flowchart for Markdown
    Mermaid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Source {
    /// Istio's standard metrics
    Istio,
    /// Envoy's statistics of its clusters
    Envoy,
    /// The metrics of Tidegate's filter
    Tidegate,
}

impl Graph {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        if self.schema {
            output::print(&format!("{:#}\n", forms::schema()))?;
            return Ok(CommandOutcome::Clean);
        }
        let built = match &self.from {
            Some(path) => {
                let text = fs::read_to_string(path).map_err(|error| failure(path, &error))?;
                let recording = Recording::parse(&text).map_err(|error| failure(path, &error))?;
                build(&recording, self.terms()).map_err(|error| failure(path, &error))?
            }
            None => {
                let collected = self.collect()?;
                let recording = collected.recording();
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
        self.print(&built)?;
        Ok(CommandOutcome::Clean)
    }

    const fn terms(&self) -> BuildTerms {
        BuildTerms {
            min_samples: self.min_samples,
        }
    }

    fn collect(&self) -> Result<Collected, CommandFailure> {
        let client = PrometheusClient::new(&self.settings()?)
            .map_err(|error| CommandFailure(error.to_string()))?;
        if client.sends_credentials_in_clear() {
            output::note(&format_args!(
                "{NOTED}warning{NOTED:#}: the credentials go over http, which others can read: expected https"
            ));
        }
        let end = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_err(|error| CommandFailure(format!("the clock: {error}")))?
            .as_secs();
        let usual = (self.window / MIN_POINTS).clamp(MIN_STEP_SECONDS, STEP_SECONDS);
        let observed = ObservationWindow {
            end,
            window_seconds: self.window,
            step_seconds: self.step.unwrap_or_else(|| usual.min(self.window)),
        };
        let plan = planned(observed, &self.caller_label)
            .map_err(|error| CommandFailure(error.to_string()))?;
        let choice = if self.metrics.is_empty() {
            MetricsChoice::First
        } else {
            MetricsChoice::All(self.metrics.iter().map(|source| (*source).into()).collect())
        };
        collect(&client, plan, observed, &self.caller_label, &choice)
            .map_err(|error| CommandFailure(forms::plain(&error.to_string())))
    }

    fn settings(&self) -> Result<ClientSettings, CommandFailure> {
        let credentials = match (
            &self.token_file,
            &self.basic_user,
            &self.basic_password_file,
        ) {
            (Some(path), _, _) => Credentials::Token(secret(path)?),
            (None, Some(user), Some(path)) => Credentials::Basic {
                user: user.clone(),
                password: secret(path)?,
            },
            _ => Credentials::None,
        };
        Ok(ClientSettings {
            url: self.prometheus.clone().unwrap_or_default(),
            credentials,
            authorities: self.ca.clone(),
            identity: self.cert.clone().zip(self.key.clone()),
            timeout: self.timeout,
        })
    }

    fn print(&self, built: &BuiltGraph) -> Result<(), CommandFailure> {
        match self.output {
            GraphForm::Table => output::print(&table(forms::HEADINGS, &forms::rows(built))),
            GraphForm::Json => {
                let text = forms::json(&forms::document(built))
                    .map_err(|error| CommandFailure(format!("the document: {error}")))?;
                output::print(&text)
            }
            GraphForm::Dot => output::print(&forms::dot(built)),
            GraphForm::Mermaid => {
                let edges = built.graph.petgraph().edge_count();
                if edges > MAX_MERMAID_EDGES {
                    output::note(&format_args!(
                        "{NOTED}warning{NOTED:#}: {edges} edges, but Mermaid draws {MAX_MERMAID_EDGES} unless maxEdges says otherwise"
                    ));
                }
                output::print(&forms::mermaid(built))
            }
        }
    }
}

impl From<Source> for MetricsSource {
    fn from(source: Source) -> Self {
        match source {
            Source::Istio => Self::Istio,
            Source::Envoy => Self::Envoy,
            Source::Tidegate => Self::Tidegate,
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

/// A secret on the first line of a file.
fn secret(path: &Path) -> Result<String, CommandFailure> {
    let text = fs::read_to_string(path).map_err(|error| failure(path, &error))?;
    let text = text.trim();
    if text.is_empty() {
        return Err(failure(path, &"found nothing, expected a secret"));
    }
    Ok(text.to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a duration such as 30s".to_owned())
}

fn seconds(text: &str) -> Result<u32, String> {
    let found = parse_duration(text).and_then(|time| u32::try_from(time.as_secs()).ok());
    found
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| "expected a duration of at least 1s such as 1h".to_owned())
}

fn failure(path: &Path, reason: &dyn std::fmt::Display) -> CommandFailure {
    CommandFailure(format!("{}: {reason}", path.display()))
}
