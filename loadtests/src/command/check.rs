//! `check`: whether the results of a run can be used, and what is missing.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tidegate_loadtests::result::LoadtestRun;

/// Tell whether the results in a folder can be used, and what is missing.
#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Folder with `run.json` and `results.jsonl`.
    folder: PathBuf,
}

/// Reads everything; fails if anything cannot be used.
pub(crate) fn run(options: &CheckOptions) -> Result<ExitCode> {
    let run = LoadtestRun::read(&options.folder)?;
    for damage in &run.damaged {
        println!("{damage}");
    }
    for cell in run.failed() {
        println!(
            "{} failed: {}",
            cell.name(),
            cell.error().unwrap_or_default()
        );
    }
    for (study, count) in run.not_run() {
        println!("study {study}: {count} cells were not run");
    }
    let (cells, failed) = (run.cells.len(), run.failed().count());
    println!("{}: {cells} cells, {failed} of them failed", run.info.run);
    let is_whole = run.damaged.is_empty() && failed == 0 && run.not_run().next().is_none();
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
