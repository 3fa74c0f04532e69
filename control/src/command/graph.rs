//! `tidegate graph`.

use clap::{Args, ValueEnum};
use tidegate_graph::BuiltGraph;
use tidegate_graph::output::{self as forms, MAX_MERMAID_EDGES};

use super::output::{NOTED, table};
use super::placement::{PlacementForm, PlacementOption};
use super::traffic_source::TrafficSource;
use super::{CommandFailure, CommandOutcome, output};

/// Show who calls whom, how often, how well and how fast, from metrics in Prometheus
///
/// Reads the metrics of Istio, of Envoy's clusters or of Tidegate's filter over a window that ends now. A query that fails leaves a
/// gap: the graph is made of the others, and a warning on standard error names what is unknown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate graph --prometheus http://127.0.0.1:9090
  tidegate graph --prometheus http://127.0.0.1:9090 --window 6h -o mermaid
  tidegate graph --prometheus https://prometheus.example --ca ca.pem --token-file token --record graph.json
  tidegate graph --prometheus http://127.0.0.1:9090 --kubernetes --record graph.json
  tidegate graph --from graph.json --placement -o yaml > patches.yaml
  tidegate graph --from graph.json -o json | jq '.edges[] | select(.success < 0.99)'")]
pub(super) struct Graph {
    #[command(flatten)]
    source: TrafficSource,
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
    #[command(flatten)]
    placement: PlacementOption,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum GraphForm {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// With --placement: its patches
    Yaml,
    /// For Graphviz
    Dot,
    /// A flowchart for Markdown
    Mermaid,
}

impl Graph {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        if self.schema {
            output::print(&format!("{:#}\n", forms::schema()))?;
            return Ok(CommandOutcome::Clean);
        }
        self.check()?;
        let built = self.source.built()?;
        self.print(&built)?;
        Ok(CommandOutcome::Clean)
    }

    /// Checks the form of the output before anything is read.
    fn check(&self) -> Result<(), CommandFailure> {
        let expected = match (self.placement.is_wanted(), self.output) {
            (true, GraphForm::Dot | GraphForm::Mermaid) => "table, json or yaml",
            (false, GraphForm::Yaml) => "--placement with it, or another form",
            _ => return Ok(()),
        };
        let form = self.output.to_possible_value();
        let name = form.as_ref().map_or("", |form| form.get_name());
        Err(CommandFailure(format!(
            "--output: found {name}, expected {expected}"
        )))
    }

    fn print(&self, built: &BuiltGraph) -> Result<(), CommandFailure> {
        if self.placement.is_wanted() {
            let form = match self.output {
                GraphForm::Json => PlacementForm::Json,
                GraphForm::Yaml => PlacementForm::Yaml,
                _ => PlacementForm::Table,
            };
            return self.placement.run(built, form);
        }
        match self.output {
            GraphForm::Table => {
                let mut text = table(forms::HEADINGS, &forms::rows(built));
                let services = forms::service_rows(built);
                if !services.is_empty() {
                    text.push('\n');
                    text.push_str(&table(forms::SERVICE_HEADINGS, &services));
                }
                output::print(&text)
            }
            GraphForm::Json => {
                let text = forms::json(&forms::document(built))
                    .map_err(|error| CommandFailure(format!("the document: {error}")))?;
                output::print(&text)
            }
            GraphForm::Yaml => Ok(()),
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
