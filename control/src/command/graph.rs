//! `tidegate graph`.

use clap::{Args, ValueEnum};
use tidegate_graph::BuiltGraph;
use tidegate_graph::output::{self as forms, MAX_MERMAID_EDGES};

use super::output::{NOTED, table};
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

impl Graph {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        if self.schema {
            output::print(&format!("{:#}\n", forms::schema()))?;
            return Ok(CommandOutcome::Clean);
        }
        let built = self.source.built()?;
        self.print(&built)?;
        Ok(CommandOutcome::Clean)
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
