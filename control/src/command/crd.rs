//! `tidegate crd`.

use clap::Args;
use tidegate_control::document::yaml;
use tidegate_control::resource::definition;

use super::{Failure, Outcome, output};

/// Print the CustomResourceDefinition of BreakerPolicy
#[derive(Debug, Args)]
#[command(after_help = "Example: tidegate crd | kubectl apply --server-side -f -")]
pub(super) struct Crd {
    /// Print JSON instead of YAML
    #[arg(long)]
    json: bool,
}

impl Crd {
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let definition =
            definition().map_err(|error| Failure(format!("the definition: {error}")))?;
        if self.json {
            output::print(&format!("{definition:#}\n"))?;
        } else {
            output::print(&yaml(&definition))?;
        }
        Ok(Outcome::Well)
    }
}
