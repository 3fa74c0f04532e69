//! The options of `run`.

use std::path::PathBuf;

use clap::Args;

/// Play studies and write down what came out.
#[derive(Debug, Args)]
pub(crate) struct StudyRunOptions {
    /// Studies by name, separated by commas, or `all` [default: all; with `--resume` what the run was begun with].
    #[arg(long, value_delimiter = ',')]
    pub(super) studies: Option<Vec<String>>,
    /// Only cells whose name, topology and contender contain this text [with `--resume` what the run was begun with].
    #[arg(long)]
    pub(super) cells: Option<String>,
    /// The whole matrix, which takes many hours, instead of a part of it.
    #[arg(long)]
    pub(super) full: bool,
    /// Repetitions of every cell, at least; cells with more keep theirs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) repeat: u32,
    /// Let the native module play every cell that Tidegate's filter plays.
    #[arg(long)]
    pub(super) native: bool,
    /// Continue the last run, or the one that `--name` names.
    #[arg(long)]
    pub(super) resume: bool,
    /// Name of the run; its extent, date and time otherwise.
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Folder with a folder for each run.
    #[arg(long, default_value = "out/loadtests")]
    pub(super) out: PathBuf,
    /// Envoys listen on this port and those after it; on any otherwise.
    #[arg(long)]
    pub(super) first_port: Option<u16>,
    /// Print the cells and how long they take, and play nothing.
    #[arg(long)]
    pub(super) list: bool,
}
