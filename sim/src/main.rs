//! The simulator on the command line: one file for each subcommand.

mod command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Plays scenarios in a simulated world: the same figures each time, on every machine.
#[derive(Debug, Parser)]
#[command(name = "tidegate-sim", version)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(command::run::Options),
    Compare(command::compare::Options),
    Fleet(command::fleet::Options),
    Sweep(command::sweep::Options),
    Chaos(command::chaos::Options),
    List(command::list::Options),
    #[cfg(feature = "ablation")]
    Ablate(command::ablate::Options),
}

fn main() -> ExitCode {
    let ended = match Options::parse().command {
        Command::Run(options) => command::run::run(&options),
        Command::Compare(options) => command::compare::run(&options),
        Command::Fleet(options) => command::fleet::run(&options),
        Command::Sweep(options) => command::sweep::run(&options),
        Command::Chaos(options) => command::chaos::run(&options),
        Command::List(options) => command::list::run(&options),
        #[cfg(feature = "ablation")]
        Command::Ablate(options) => command::ablate::run(&options),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("tidegate-sim: {error:#}");
        ExitCode::from(2)
    })
}
