//! The forms of recommendations.

use clap::ValueEnum;
use tidegate_graph::output::plain_json;

use crate::command::{CommandFailure, output};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum AdviceForm {
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

/// Prints a document for programs.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<(), CommandFailure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| CommandFailure(format!("the document: {error}")))?;
    output::print(&plain_json(&format!("{text}\n")))
}
