//! The command line: one file per subcommand.
//!
//! Results go to standard output, everything else to standard error. The exit
//! code is 0 on success, 1 if the command found something (errors in policies,
//! differences), and 2 if it failed.

mod analyze;
mod classify;
mod client;
mod cluster_source;
mod completions;
mod crd;
mod diff;
mod extension;
mod files;
mod graph;
mod man;
mod migrate;
mod node;
mod output;
mod placement;
mod prometheus;
mod recommend;
mod render;
mod running;
mod score;
mod serve;
mod server;
mod status;
mod switch;
mod target;
mod traffic_source;
mod validate;

use std::fmt;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

/// Check latency policies for Envoy, and serve them to proxies as the configuration of Tidegate's filter
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version = tidegate_control::about::FULL_VERSION,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 success; 1 errors or differences were found; 2 the command failed."
)]
struct Arguments {
    #[command(subcommand)]
    command: ControlCommand,
}

#[derive(Debug, Subcommand)]
enum ControlCommand {
    Serve(Box<serve::Serve>),
    Validate(validate::Validate),
    Render(render::Render),
    Diff(diff::Diff),
    Classify(classify::Classify),
    Status(status::Status),
    Disable(switch::Disable),
    Enable(switch::Enable),
    Migrate(Box<migrate::Migrate>),
    Graph(Box<graph::Graph>),
    Recommend(Box<recommend::Recommend>),
    Analyze(Box<analyze::Analyze>),
    Score(Box<score::Score>),
    Crd(crd::Crd),
    Completions(completions::Completions),
    // For building packages, which install the pages for users.
    #[command(hide = true)]
    Man(man::Man),
}

/// The result of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandOutcome {
    /// No errors and no differences.
    Clean,
    /// Errors or differences were found.
    Found,
}

/// Why a command failed.
#[derive(Debug)]
struct CommandFailure(String);

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The subcommand that also reads settings from a file.
const SERVE: &str = "serve";

/// Runs the command of the command line.
pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(CommandOutcome::Clean) => ExitCode::SUCCESS,
        Ok(CommandOutcome::Found) => ExitCode::from(1),
        Err(failure) => {
            output::error(&failure);
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<CommandOutcome, CommandFailure> {
    let grammar = Arguments::command();
    let matches = matched(grammar.clone())?;
    let serve = matches.subcommand_matches(SERVE);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match arguments.command {
        ControlCommand::Serve(command) => match (grammar.find_subcommand(SERVE), serve) {
            (Some(grammar), Some(matches)) => command.run(grammar, matches),
            _ => Err(CommandFailure("serve is not a subcommand".to_owned())),
        },
        ControlCommand::Validate(command) => command.run(),
        ControlCommand::Render(command) => command.run(),
        ControlCommand::Diff(command) => command.run(),
        ControlCommand::Classify(command) => command.run(),
        ControlCommand::Status(command) => command.run(),
        ControlCommand::Disable(command) => command.run(),
        ControlCommand::Enable(command) => command.run(),
        ControlCommand::Migrate(command) => command.run(),
        ControlCommand::Graph(command) => command.run(),
        ControlCommand::Recommend(command) => command.run(),
        ControlCommand::Analyze(command) => command.run(),
        ControlCommand::Score(command) => command.run(),
        ControlCommand::Crd(command) => command.run(),
        ControlCommand::Completions(command) => command.run(),
        ControlCommand::Man(command) => command.run(),
    }
}

/// Parses the command line; if it names a settings file, parses it again with the values of the file as defaults.
fn matched(grammar: clap::Command) -> Result<ArgMatches, CommandFailure> {
    let matches = grammar.clone().get_matches();
    let serving = matches.subcommand_matches(SERVE);
    let file = serving.and_then(serve::Serve::file);
    let (Some(file), Some(serve)) = (file, grammar.find_subcommand(SERVE)) else {
        return Ok(matches);
    };
    let defaults = serve::Serve::defaults(serve, file)?;
    let with_file = grammar.mut_subcommand(SERVE, |serve| serve::Serve::with(serve, defaults));
    Ok(with_file.get_matches())
}
