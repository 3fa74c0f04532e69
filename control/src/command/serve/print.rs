//! The settings in force, as a settings file.
//!
//! Settings without a value are comments, so that the file lists all settings.

use std::fmt::Write as _;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::file::key;

/// Every setting with its meaning, its value and the origin of the value.
pub(super) fn settings(command: &Command, matches: &ArgMatches) -> String {
    let mut text = String::from(
        "# Settings of `tidegate serve`: `tidegate serve --settings FILE`. The command line takes precedence\n# over the environment, and the environment over this file.\n",
    );
    let mut heading = None;
    for arg in command.get_arguments() {
        let Some(key) = key(arg) else { continue };
        if arg.get_help_heading() != heading {
            heading = arg.get_help_heading();
            let _ = write!(text, "\n# --- {} ---\n", heading.unwrap_or("General"));
        }
        write(&mut text, &key, arg, matches);
    }
    text
}

fn write(text: &mut String, key: &str, arg: &Arg, matches: &ArgMatches) {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let variable = arg.get_env().map(|name| name.to_string_lossy());
    let _ = write!(text, "\n# {help}\n");
    let choices: Vec<_> = arg
        .get_possible_values()
        .iter()
        .filter(|_| arg.get_action().takes_values())
        .map(|choice| choice.get_name().to_owned())
        .collect();
    if !choices.is_empty() {
        let _ = writeln!(text, "# One of {}.", choices.join(", "));
    }
    let _ = writeln!(
        text,
        "# --{}, {}",
        arg.get_long().unwrap_or_default(),
        variable.unwrap_or_default()
    );
    let id = arg.get_id().as_str();
    let origin = match matches.value_source(id) {
        Some(ValueSource::CommandLine) => " # from the command line",
        Some(ValueSource::EnvVariable) => " # from the environment",
        _ => "",
    };
    let values: Vec<String> = match matches.try_get_raw(id) {
        Ok(Some(raw)) => raw
            .map(|value| value.to_string_lossy().into_owned())
            .collect(),
        _ => Vec::new(),
    };
    let shown = shown(arg, &values);
    match shown {
        Some(value) => {
            let _ = writeln!(text, "{key}: {value}{origin}");
        }
        None => {
            let name = arg.get_value_names().and_then(|names| names.first());
            let name = name.map_or("", |name| name.as_str());
            let _ = writeln!(text, "# {key}: {name}");
        }
    }
}

fn shown(arg: &Arg, values: &[String]) -> Option<String> {
    if !arg.get_action().takes_values() {
        return values.first().cloned();
    }
    let quoted: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    if matches!(arg.get_action(), ArgAction::Append) && !quoted.is_empty() {
        return Some(format!("[{}]", quoted.join(", ")));
    }
    quoted.into_iter().next()
}

/// Quotes everything except whole numbers, so that YAML reads every text as a text.
fn quoted(value: &str) -> String {
    match value.parse::<u64>() {
        Ok(number) if number.to_string() == value => value.to_owned(),
        _ => serde_json::Value::from(value).to_string(),
    }
}
