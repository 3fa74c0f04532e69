//! `tidegate completions`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Arguments, CommandFailure, CommandOutcome, output};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example: tidegate completions bash > ~/.local/share/bash-completion/completions/tidegate"
)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let mut script = Vec::new();
        let mut command = Arguments::command();
        clap_complete::generate(self.shell, &mut command, "tidegate", &mut script);
        output::print(&String::from_utf8_lossy(&script))?;
        Ok(CommandOutcome::Clean)
    }
}
