//! The load tests on the command line: one file for each subcommand.

mod command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Load tests with fortio, k6 and the testbed's client, and their reports.
#[derive(Debug, Parser)]
#[command(name = "tidegate-loadtests", version)]
struct LoadtestsOptions {
    #[command(subcommand)]
    command: LoadtestsCommand,
}

#[derive(Debug, Subcommand)]
enum LoadtestsCommand {
    K6(command::k6::K6Options),
    Stage(command::stage::StageOptions),
    Report(command::report::ReportOptions),
    Compare(command::compare::RunCompareOptions),
    Check(command::check::CheckOptions),
    Run(command::run::StudyRunOptions),
}

#[tokio::main]
async fn main() -> ExitCode {
    let ended = match LoadtestsOptions::parse().command {
        LoadtestsCommand::K6(options) => command::k6::run(&options).await,
        LoadtestsCommand::Stage(options) => command::stage::run(&options).await,
        LoadtestsCommand::Report(options) => command::report::run(&options),
        LoadtestsCommand::Compare(options) => command::compare::run(&options),
        LoadtestsCommand::Check(options) => command::check::run(&options),
        LoadtestsCommand::Run(options) => command::run::run(&options).await,
    };
    ended.unwrap_or_else(|error| {
        eprintln!("tidegate-loadtests: {error:#}");
        ExitCode::from(2)
    })
}
