//! The command line: one file per subcommand.
//!
//! Results go to standard output, everything else to standard error. A command
//! ends with 0 when all is well, with 1 when what it looked at is not (errors
//! in policies, differences), and with 2 when it could not do its work.

mod client;
mod completions;
mod crd;
mod diff;
mod files;
mod migrate;
mod output;
mod render;
mod serve;
mod status;
mod validate;

use std::fmt;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Service level policies for Envoy, turned into the configuration of Tidegate's filter
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 all is well; 1 errors or differences were found; 2 the command failed."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    Validate(validate::Validate),
    Render(render::Render),
    Diff(diff::Diff),
    Status(status::Status),
    Migrate(migrate::Migrate),
    Crd(crd::Crd),
    Completions(completions::Completions),
}

/// How a command ended that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Nothing to complain of.
    Well,
    /// What was looked at has errors, or differs.
    Found,
}

/// Why a command could not do its work.
#[derive(Debug)]
struct Failure(String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs what the command line asks for.
pub(crate) fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Serve(command) => command.run(),
        Command::Validate(command) => command.run(),
        Command::Render(command) => command.run(),
        Command::Diff(command) => command.run(),
        Command::Status(command) => command.run(),
        Command::Migrate(command) => command.run(),
        Command::Crd(command) => command.run(),
        Command::Completions(command) => command.run(),
    };
    match outcome {
        Ok(Outcome::Well) => ExitCode::SUCCESS,
        Ok(Outcome::Found) => ExitCode::from(1),
        Err(failure) => {
            output::complain(&failure);
            ExitCode::from(2)
        }
    }
}
