//! `report`: one page and Markdown tables from the results of runs.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use tidegate_loadtests::report::report;
use tidegate_loadtests::result::LoadtestRun;
use tidegate_loadtests::score::ScoreTargets;
use tidegate_report::page::Page;

/// Write a page and Markdown tables from the results of runs.
#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// Folders with `run.json` and `results.jsonl`. If several have the same study, the last folder counts.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// Folder for `report.html`, `report.json` and `report.md` [default: the last of the folders].
    #[arg(long)]
    out: Option<PathBuf>,
    /// File with targets of the composite score, instead of `loadtests/score.toml`.
    #[arg(long)]
    score: Option<PathBuf>,
}

/// Reads the runs and writes both files.
pub(crate) fn run(options: &ReportOptions) -> Result<ExitCode> {
    let targets = match &options.score {
        None => ScoreTargets::ours()?,
        Some(path) => {
            let text =
                fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
            ScoreTargets::parse(&text, &path.display().to_string())?
        }
    };
    let runs: Vec<LoadtestRun> = options
        .folders
        .iter()
        .map(|folder| LoadtestRun::read(folder))
        .collect::<Result<_, _>>()?;
    for damage in runs.iter().flat_map(|run| &run.damaged) {
        eprintln!("tidegate-loadtests: {damage}");
    }
    let folder = options
        .out
        .as_ref()
        .or_else(|| options.folders.last())
        .cloned()
        .unwrap_or_default();
    write(&report(&runs, &targets), &folder, "report")?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a page, with its data beside it, and the same as Markdown; prints the paths.
pub(crate) fn write(page: &Page, folder: &Path, name: &str) -> Result<()> {
    let html = page.write(folder, name)?;
    let markdown = html.with_extension("md");
    fs::write(&markdown, page.markdown())
        .with_context(|| format!("write {}", markdown.display()))?;
    for path in [html, markdown] {
        // If a reader closes the pipe, it has seen enough; both files are written.
        let _ = writeln!(std::io::stdout(), "{name}: {}", path.display());
    }
    Ok(())
}
