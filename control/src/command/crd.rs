//! `tidegate crd`.

use clap::{Args, ValueEnum};
use tidegate_control::document::yaml;
use tidegate_control::resource::definition;

use super::{CommandFailure, CommandOutcome, output};

/// Print the CustomResourceDefinition of BreakerPolicy
#[derive(Debug, Args)]
#[command(after_help = "Example: tidegate crd | kubectl apply --server-side -f -")]
pub(super) struct Crd {
    /// Form of the definition
    #[arg(
        short,
        long = "output",
        value_enum,
        value_name = "FORMAT",
        default_value_t
    )]
    output: Form,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For manifests
    #[default]
    Yaml,
    /// JSON
    Json,
}

impl Crd {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let definition =
            definition().map_err(|error| CommandFailure(format!("the definition: {error}")))?;
        match self.output {
            Form::Yaml => output::print(&yaml(&definition))?,
            Form::Json => output::print(&format!("{definition:#}\n"))?,
        }
        Ok(CommandOutcome::Clean)
    }
}
