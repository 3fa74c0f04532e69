//! The options of `run`.

use std::path::PathBuf;

use clap::Args;

/// Play studies and write their results.
#[derive(Debug, Args)]
pub(crate) struct StudyRunOptions {
    /// Studies by name, separated by commas, or `all` [default: all; with `--resume`: the choice of that run].
    #[arg(long, value_delimiter = ',')]
    pub(super) studies: Option<Vec<String>>,
    /// Only cells whose name, topology and contender contain this text [with `--resume`: the text of that run].
    #[arg(long)]
    pub(super) cells: Option<String>,
    /// Play the whole matrix instead of a part of it. This takes many hours.
    #[arg(long)]
    pub(super) full: bool,
    /// Least number of repetitions of every cell. Cells with more repetitions keep theirs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) repeat: u32,
    /// Let the native module play every cell that Tidegate's filter plays.
    #[arg(long)]
    pub(super) native: bool,
    /// Continue the last run, or the run that `--name` names.
    #[arg(long)]
    pub(super) resume: bool,
    /// Name of the run [default: its extent, date and time].
    #[arg(long)]
    pub(super) name: Option<String>,
    /// Folder that holds a folder for each run.
    #[arg(long, default_value = "out/loadtests")]
    pub(super) out: PathBuf,
    /// First port on which Envoys listen; they also use the ports after it [default: free ports].
    #[arg(long)]
    pub(super) first_port: Option<u16>,
    /// Print the cells and how long they take, and play none.
    #[arg(long)]
    pub(super) list: bool,
}
