//! Prints results and messages of commands.
//!
//! Colors are always written, and removed again unless the output is a terminal;
//! `NO_COLOR` is honored.

use std::fmt;
use std::io::{self, Write as _};

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use serde_json::Value;
use tidegate_control::document::yaml;

use super::CommandFailure;

/// Something bad.
pub(super) const BAD: Style = AnsiColor::Red.on_default();
/// Something good, or new.
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
/// Something to notice.
pub(super) const NOTED: Style = AnsiColor::Yellow.on_default();
/// A heading.
pub(super) const HEADING: Style = Style::new().bold();

/// The form of a printed result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// For both
    Yaml,
}

/// The option that every command with a result has.
#[derive(Debug, Args)]
pub(super) struct OutputOption {
    /// Form of the result
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub(super) format: Format,
}

impl OutputOption {
    /// Prints a result: `value`, or the `table` for people.
    pub(super) fn print(
        &self,
        value: &Value,
        table: impl FnOnce() -> String,
    ) -> Result<(), CommandFailure> {
        match self.format {
            Format::Table => print(&table()),
            Format::Json => print(&format!("{value:#}\n")),
            Format::Yaml => print(&yaml(value)),
        }
    }
}

/// Prints `text` unchanged. A reader that stops early is not an error.
pub(super) fn print(text: &str) -> Result<(), CommandFailure> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandFailure(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error.
pub(super) fn note(text: &dyn fmt::Display) {
    // If this fails, the failure cannot be reported either.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints why the command failed.
pub(super) fn error(text: &dyn fmt::Display) {
    note(&format_args!("{BAD}error{BAD:#}: {text}"));
}

/// Rows under headings in aligned columns; the last column is not padded.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = headings.map(|heading| heading.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let padded: String = cells
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}  "))
            .collect();
        padded.trim_end().to_owned()
    };
    let mut out = format!("{HEADING}{}{HEADING:#}\n", line(headings));
    for row in rows {
        out.push_str(&line(std::array::from_fn(|column| {
            row.get(column).map_or("", String::as_str)
        })));
        out.push('\n');
    }
    out
}
