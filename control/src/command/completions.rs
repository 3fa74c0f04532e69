//! `tidegate completions`.

use std::io;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Arguments;

/// Print a completion script for a shell
///
/// For bash: source <(tidegate completions bash)
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self) -> ExitCode {
        let mut command = Arguments::command();
        clap_complete::generate(self.shell, &mut command, "tidegate", &mut io::stdout());
        ExitCode::SUCCESS
    }
}
