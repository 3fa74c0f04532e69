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
    Check(command::check::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match Options::parse().command {
        Command::Check(options) => command::check::run(&options),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("tidegate-loadtests: {error:#}");
        ExitCode::from(2)
    })
}
