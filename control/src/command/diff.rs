//! `tidegate diff`.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tidegate_control::policy::Policies;
use tidegate_control::render::{PolicyDifference, differences};

use super::output::{BAD, GOOD, HEADING, NOTED, OutputOption};
use super::{CommandFailure, CommandOutcome, files, output};

/// Show how new policies differ from old ones, value by value, and for which proxies
///
/// Documents are compared by meaning: order and white space do not count. The exit code is 1 if
/// anything differs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tidegate diff old/ new/
  git show HEAD:policies.yaml | tidegate diff - policies.yaml")]
pub(super) struct Diff {
    /// Policies in force: a file, a directory, or - for standard input
    old: PathBuf,
    /// New policies: a file, a directory, or - for standard input
    new: PathBuf,
    #[command(flatten)]
    output: OutputOption,
}

impl Diff {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let found = differences(&valid(&self.old)?, &valid(&self.new)?);
        let value: Value = found.iter().map(|difference| json!(difference)).collect();
        self.output.print(&value, || {
            let lines: String = found.iter().map(lines).collect();
            if lines.is_empty() {
                "no differences\n".to_owned()
            } else {
                lines
            }
        })?;
        Ok(if found.is_empty() {
            CommandOutcome::Clean
        } else {
            CommandOutcome::Found
        })
    }
}

fn valid(path: &PathBuf) -> Result<Policies, CommandFailure> {
    let (_, gathered) = files::policies(std::slice::from_ref(path))?;
    for problem in &gathered.problems {
        output::note(problem);
    }
    if gathered.problems.is_empty() {
        Ok(gathered.policies)
    } else {
        Err(CommandFailure(format!("{} has errors", path.display())))
    }
}

fn lines(difference: &PolicyDifference) -> String {
    let (sign, style) = match difference {
        PolicyDifference::Added { .. } => ('+', GOOD),
        PolicyDifference::Removed { .. } => ('-', BAD),
        PolicyDifference::Changed { .. } => ('~', NOTED),
    };
    let name = difference.policy();
    match difference {
        PolicyDifference::Added {
            targets, version, ..
        }
        | PolicyDifference::Removed {
            targets, version, ..
        } => {
            format!(
                "{style}{sign} {HEADING}{name}{HEADING:#}{style} for {targets}, version {version}{style:#}\n"
            )
        }
        PolicyDifference::Changed {
            targets,
            values,
            old_version,
            new_version,
            ..
        } => {
            let versions = if old_version == new_version {
                format!("version {new_version} as before")
            } else {
                format!("version {old_version} -> {new_version}")
            };
            let head = format!(
                "{style}{sign}{style:#} {HEADING}{name}{HEADING:#} for {targets}, {versions}\n"
            );
            let shown = |value: &Option<Value>| {
                value
                    .as_ref()
                    .map_or_else(|| "not set".to_owned(), ToString::to_string)
            };
            values.iter().fold(head, |mut text, value| {
                text.push_str(&format!(
                    "    {}: {BAD}{}{BAD:#} -> {GOOD}{}{GOOD:#}\n",
                    value.path,
                    shown(&value.old),
                    shown(&value.new),
                ));
                text
            })
        }
    }
}
