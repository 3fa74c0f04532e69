//! `compare`: which differences between two runs are more than noise.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tidegate_loadtests::compare::{compare, page};
use tidegate_loadtests::result::LoadtestRun;

/// Say which differences between two runs are more than noise.
#[derive(Debug, Args)]
pub(crate) struct RunCompareOptions {
    /// Folder of the first run, the base of the comparison.
    before: PathBuf,
    /// Folder of the second run.
    after: PathBuf,
    /// Folder for `compare.html`, `compare.json` and `compare.md` [default: the folder of the second run].
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Compares the runs, prints the tables and writes them.
pub(crate) fn run(options: &RunCompareOptions) -> Result<ExitCode> {
    let (before, after) = (
        LoadtestRun::read(&options.before)?,
        LoadtestRun::read(&options.after)?,
    );
    let page = page(&before, &after, &compare(&before, &after));
    // If a reader closes the pipe, it has seen enough.
    let _ = std::io::stdout().write_all(page.markdown().as_bytes());
    super::report::write(
        &page,
        options.out.as_ref().unwrap_or(&options.after),
        "compare",
    )?;
    Ok(ExitCode::SUCCESS)
}
