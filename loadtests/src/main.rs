//! The load tests on the command line: one file for each subcommand.

mod command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Load tests with fortio, k6 and the testbed's client, and their reports.
#[derive(Debug, Parser)]
#[command(name = "tidegate-loadtests", version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    K6(command::k6::Options),
    Stage(command::stage::Options),
    Report(command::report::Options),
    Compare(command::compare::Options),
    Check(command::check::Options),
    Run(command::run::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Options::parse().command {
        Command::K6(options) => command::k6::run(&options).await,
        Command::Stage(options) => command::stage::run(&options).await,
        Command::Report(options) => command::report::run(&options),
        Command::Compare(options) => command::compare::run(&options),
        Command::Check(options) => command::check::run(&options),
        Command::Run(options) => command::run::run(&options).await,
    };
    ended.unwrap_or_else(|error| {
        eprintln!("tidegate-loadtests: {error:#}");
        ExitCode::from(2)
    })
}
