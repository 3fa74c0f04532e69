//! YAML with comments.
//!
//! It does not use the YAML writer, because comments explain the values. Text from the input is written in JSON's quotes, or in
//! a comment without its line breaks, so that it cannot become part of the document's structure.

use std::fmt::Write as _;

use serde_json::Value;
use tidegate_graph::output::plain;

/// Maximum width of a comment line, in characters.
const WIDTH: usize = 100;

/// `text` in quotes that YAML and JSON read the same way.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

pub(super) fn write(out: &mut String, text: &str) {
    // Writing to a string does not fail.
    let _ = out.write_str(text);
}

/// Writes `text` as comment lines, broken between words.
pub(super) fn comment(out: &mut String, indent: usize, text: &str) {
    let lead = format!("{:indent$}#", "");
    let mut line = lead.clone();
    // Names of callers come from metrics, and may contain anything.
    for word in text.split_whitespace().map(plain) {
        let is_full = line.chars().count().saturating_add(word.chars().count()) >= WIDTH;
        if is_full && line != lead {
            out.push_str(&line);
            out.push('\n');
            line.clone_from(&lead);
        }
        line.push(' ');
        line.push_str(&word);
    }
    out.push_str(&line);
    out.push('\n');
}
