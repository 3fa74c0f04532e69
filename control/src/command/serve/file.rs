//! The settings file: its values become the defaults of the options.
//!
//! Each option is a key, for example `--xds-listen` is `xdsListen`; repeatable options accept a list. Every value goes
//! through the option's own parser, so that file, environment and command line accept the same values. It is checked
//! here first, because only here the line number is known.
//!
//! Edge cases: the file cannot name another settings file. Paths in it are relative to the working directory, as on the
//! command line. `null` is rejected: omit the key instead.

use std::fs;
use std::path::Path;

use clap::builder::{OsStr, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use tidegate_control::document::{YamlDocument, documents};
use tidegate_control::policy::Problem;
use tidegate_core::config::{ConfigErrors, Node, Section};

use crate::command::CommandFailure;

/// The id of the option that names the file.
pub(super) const FLAG: &str = "settings";

/// An option and its values in the file.
pub(in crate::command) type Setting = (String, Vec<String>);

/// The key of an option, if it can be set in the file.
pub(super) fn key(arg: &Arg) -> Option<String> {
    // Options without an environment variable belong to the command line only, such as --help.
    let long = arg.get_long()?;
    if arg.get_id() == FLAG || arg.get_env().is_none() {
        return None;
    }
    let mut words = long.split('-');
    let mut key = words.next()?.to_owned();
    for word in words {
        let (first, rest) = word.split_at_checked(1)?;
        key.push_str(&first.to_ascii_uppercase());
        key.push_str(rest);
    }
    Some(key)
}

/// The values in the file at `path`.
///
/// # Errors
/// All errors of the file, one per line.
pub(super) fn defaults(command: &Command, path: &Path) -> Result<Vec<Setting>, CommandFailure> {
    let source = path.display().to_string();
    let text = fs::read(path).map_err(|error| CommandFailure(format!("{source}: {error}")))?;
    read(command, &source, &text).map_err(|mut problems| {
        problems.sort_by_key(|problem| problem.place);
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        CommandFailure(format!("invalid settings\n{}", lines.join("\n")))
    })
}

/// The command with these defaults.
pub(super) fn with(command: Command, defaults: Vec<Setting>) -> Command {
    defaults.into_iter().fold(command, |command, (id, values)| {
        let values = values.into_iter().map(OsStr::from);
        command.mut_arg(id, |arg| arg.default_values(values))
    })
}

fn read(command: &Command, source: &str, text: &[u8]) -> Result<Vec<Setting>, Vec<Problem>> {
    let (documents, malformed) = documents(text);
    if let Some(malformed) = malformed {
        let expected = "an object of settings";
        return Err(vec![Problem::malformed(
            source,
            documents.len(),
            malformed,
            expected,
        )]);
    }
    match documents.as_slice() {
        [] => Ok(Vec::new()),
        [document] => {
            values(command, document).map_err(|errors| Problem::list(source, document, &errors))
        }
        [_, again, ..] => Err(vec![Problem {
            source: source.to_owned(),
            place: again.start(),
            policy: None,
            path: "document 2".to_owned(),
            found: "another document".to_owned(),
            expected: "one document".to_owned(),
        }]),
    }
}

fn values(command: &Command, document: &YamlDocument) -> Result<Vec<Setting>, ConfigErrors> {
    let entries = match document.root() {
        Node::Object(entries) => entries.as_slice(),
        _ => &[],
    };
    Section::read_document(document.root(), |section| {
        let mut found = Vec::new();
        for arg in command.get_arguments() {
            let Some(key) = key(arg) else { continue };
            // The reader needs static keys; leaking them is fine, because the file is read once per process.
            let key: &'static str = key.leak();
            let node = entries.iter().find(|(entry, _)| entry == key);
            let read = node.map(|(_, node)| value(arg, node));
            let expected = match &read {
                Some(Err(expected)) => expected.as_str(),
                _ => "",
            };
            let read = section.value(key, &expected, |_| read.as_ref()?.as_ref().ok().cloned());
            found.extend(read.map(|values| (arg.get_id().to_string(), values)));
        }
        found
    })
}

/// The option's values as on the command line, or what was expected instead.
fn value(arg: &Arg, node: &Node) -> Result<Vec<String>, String> {
    if !arg.get_action().takes_values() {
        return match node {
            Node::Bool(flag) => Ok(vec![flag.to_string()]),
            _ => Err("true or false".to_owned()),
        };
    }
    let takes_many = matches!(arg.get_action(), ArgAction::Append);
    let values = match node {
        Node::List(items) if takes_many => items.iter().map(scalar).collect(),
        other => scalar(other).map(|value| vec![value]),
    };
    let values = values.ok_or_else(|| expected(arg, None))?;
    let probe = Command::new("probe").no_binary_name(true).arg(
        Arg::new("probe")
            .long("probe")
            .action(arg.get_action().clone())
            .value_parser(ValueParser::clone(arg.get_value_parser()))
            .value_delimiter(arg.get_value_delimiter()),
    );
    let words = values.iter().map(|value| format!("--probe={value}"));
    match probe.try_get_matches_from(words) {
        Ok(_) => Ok(values),
        Err(error) => Err(expected(arg, Some(&error))),
    }
}

fn scalar(node: &Node) -> Option<String> {
    match node {
        Node::Text(text) => Some(text.clone()),
        Node::Whole(number) => Some(number.to_string()),
        Node::Number(number) => Some(number.to_string()),
        Node::Bool(flag) => Some(flag.to_string()),
        Node::Null | Node::List(_) | Node::Object(_) => None,
    }
}

fn expected(arg: &Arg, error: Option<&clap::Error>) -> String {
    let choices: Vec<String> = arg
        .get_possible_values()
        .iter()
        .map(|choice| choice.get_name().to_owned())
        .collect();
    if !choices.is_empty() {
        return format!("one of {}", choices.join(", "));
    }
    let reason = error
        .filter(|error| error.kind() == ErrorKind::ValueValidation)
        .and_then(std::error::Error::source)
        .map(ToString::to_string);
    let name = arg.get_value_names().and_then(|names| names.first());
    let name = name.map_or("a value", |name| name.as_str());
    match reason {
        Some(reason) => match reason.strip_prefix("expected ") {
            Some(expected) => expected.to_owned(),
            None => format!("{name} ({reason})"),
        },
        None if matches!(arg.get_action(), ArgAction::Append) => {
            format!("{name} or a list of them")
        }
        None => name.to_owned(),
    }
}
