//! `tidegate man`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};

use super::{Arguments, CommandFailure, CommandOutcome};

/// Write the manual pages, one for each command
#[derive(Debug, Args)]
#[command(after_help = "Example: tidegate man ~/.local/share/man/man1")]
pub(super) struct Man {
    /// The folder to write them into; made if it is missing
    folder: PathBuf,
}

impl Man {
    pub(super) fn run(&self) -> Result<CommandOutcome, CommandFailure> {
        let command = Arguments::command().version(tidegate_control::about::VERSION);
        let written = fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to(command, &self.folder));
        written.map_err(|error| {
            CommandFailure(format!("write into {}: {error}", self.folder.display()))
        })?;
        Ok(CommandOutcome::Clean)
    }
}
