//! `tidegate validate`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::output::{BAD, GOOD, OutputOption};
use super::{CommandFailure, CommandOutcome, files};

/// Check policies and list every error with file, line, path, value and what was expected
///
/// The messages are those of the filter, which rejects the same documents.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate validate policies/
  tidegate validate checkout.yaml -o json | jq '.problems[].path'
  kubectl get breakerpolicy checkout -o yaml | tidegate validate -")]
pub(super) struct Validate {
    /// Files, directories (their .yaml, .yml and .json files), or - for standard input
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputOption,
}

impl Validate {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let (files, gathered) = files::policies(&self.paths)?;
        let names: Vec<String> = gathered
            .policies
            .iter()
            .map(|policy| policy.name().to_string())
            .collect();
        let problems = &gathered.problems;
        let value = json!({"files": files, "policies": names, "problems": problems});
        self.output.print(&value, || {
            let lines: String = problems
                .iter()
                .map(|problem| format!("{problem}\n"))
                .collect();
            let (style, verdict) = match problems.len() {
                0 => (GOOD, "no errors".to_owned()),
                1 => (BAD, "1 error".to_owned()),
                many => (BAD, format!("{many} errors")),
            };
            let policies = names.len();
            format!(
                "{lines}files: {files}, valid policies: {policies}, {style}{verdict}{style:#}\n"
            )
        })?;
        Ok(if problems.is_empty() {
            CommandOutcome::Clean
        } else {
            CommandOutcome::Found
        })
    }
}
