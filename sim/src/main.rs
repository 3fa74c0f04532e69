//! The simulator on the command line: one file for each subcommand.

mod command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Plays scenarios in a simulated world: the same figures each time, on every machine.
#[derive(Debug, Parser)]
#[command(name = "tidegate-sim", version)]
struct SimOptions {
    #[command(subcommand)]
    command: SimCommand,
}

#[derive(Debug, Subcommand)]
enum SimCommand {
    Run(command::run::ScenarioRunOptions),
    Compare(command::compare::ScenarioCompareOptions),
    Fleet(command::fleet::FleetOptions),
    Sweep(command::sweep::SweepOptions),
    Chaos(command::chaos::ChaosSweepOptions),
    List(command::list::ListOptions),
    #[cfg(feature = "ablation")]
    Ablate(command::ablate::AblateOptions),
}

fn main() -> ExitCode {
    let ended = match SimOptions::parse().command {
        SimCommand::Run(options) => command::run::run(&options),
        SimCommand::Compare(options) => command::compare::run(&options),
        SimCommand::Fleet(options) => command::fleet::run(&options),
        SimCommand::Sweep(options) => command::sweep::run(&options),
        SimCommand::Chaos(options) => command::chaos::run(&options),
        SimCommand::List(options) => command::list::run(&options),
        #[cfg(feature = "ablation")]
        SimCommand::Ablate(options) => command::ablate::run(&options),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("tidegate-sim: {error:#}");
        ExitCode::from(2)
    })
}
