//! The command line: one file per subcommand.

mod completions;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Service level policies for Envoy, turned into the configuration of Tidegate's filter.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Completions(completions::Completions),
}

/// Runs what the command line asks for.
pub(crate) fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Completions(command) => command.run(),
    }
}
