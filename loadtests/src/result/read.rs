//! Reads and checks the folder of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::lines::{Damage, lines};
use super::{CellResult, JOURNAL_FILE, Lack, RESULTS_FILE, RUN_FILE, RunInfo, Tool, bench};

/// A run, with everything in it that is usable.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadtestRun {
    /// Its metadata.
    pub info: RunInfo,
    /// The cells, in order of the first line of each; of two lines for one cell the later counts.
    pub cells: Vec<CellResult>,
    /// Lines that could not be used.
    pub damaged: Vec<Damage>,
}

/// Why the results of a run cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunReadError {
    /// A file is missing or cannot be read.
    #[error("read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The metadata are not a valid document.
    #[error("{}: a run without its metadata is not used", path.display())]
    NotMetadata {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// The metadata are incomplete.
    #[error("{}: a run without its metadata is not used\n{}", path.display(), listed(lacks))]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// Everything that is wrong.
        lacks: Vec<Lack>,
    },
}

fn listed(lacks: &[Lack]) -> String {
    let lines: Vec<String> = lacks.iter().map(|lack| format!("  {lack}")).collect();
    lines.join("\n")
}

impl LoadtestRun {
    /// Reads the folder of a run.
    ///
    /// # Errors
    /// If a file cannot be read, or the metadata are missing or incomplete.
    pub fn read(folder: &Path) -> Result<Self, RunReadError> {
        let (journal, path) = (folder.join(JOURNAL_FILE), folder.join(RUN_FILE));
        let (path, info, cells, damaged) = if journal.exists() && !path.exists() {
            let (info, cells, damaged) = bench::parse(&read(&journal)?, &journal);
            (journal, info, cells, damaged)
        } else {
            let info: RunInfo = serde_json::from_str(&read(&path)?).map_err(|source| {
                RunReadError::NotMetadata {
                    path: path.clone(),
                    source,
                }
            })?;
            let results = folder.join(RESULTS_FILE);
            let (cells, damaged) = parse(&read(&results)?, &results);
            (path, info, cells, damaged)
        };
        // A missing tool has neither a version nor figures.
        let with_figures = cells.iter().filter(|cell| cell.error().is_none());
        let tools: BTreeSet<Tool> = with_figures.map(|cell| cell.tool).collect();
        let tools: Vec<Tool> = tools.into_iter().collect();
        let lacks = info.lacks(&tools);
        if lacks.is_empty() {
            Ok(Self {
                info,
                cells,
                damaged,
            })
        } else {
            Err(RunReadError::Incomplete { path, lacks })
        }
    }

    /// The cells that failed.
    pub fn failed(&self) -> impl Iterator<Item = &CellResult> {
        self.cells.iter().filter(|cell| cell.error().is_some())
    }

    /// The cells that ended without an error.
    pub fn ended(&self) -> impl Iterator<Item = &CellResult> {
        self.cells.iter().filter(|cell| cell.error().is_none())
    }

    /// Studies with planned cells that have no line, and the number of these cells.
    pub fn not_run(&self) -> impl Iterator<Item = (&str, usize)> {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for cell in &self.cells {
            *found.entry(&cell.study).or_default() += 1;
        }
        self.info
            .planned
            .iter()
            .filter_map(move |(study, planned)| {
                let missing =
                    planned.saturating_sub(found.get(study.as_str()).copied().unwrap_or(0));
                (missing > 0).then_some((study.as_str(), missing))
            })
    }
}

fn read(path: &Path) -> Result<String, RunReadError> {
    let bytes = fs::read(path).map_err(|source| RunReadError::Io {
        path: path.to_owned(),
        source,
    })?;
    // A line that was cut within a character is damaged like any other.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The cells of a file, and the other lines.
fn parse(text: &str, path: &Path) -> (Vec<CellResult>, Vec<Damage>) {
    lines(text, path, |line| {
        serde_json::from_str(line).map_err(|error| error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::super::cell::tests::cell;
    use super::super::info::tests::info;
    use super::*;
    use crate::result::CellOutcome;

    fn folder(info: &str, results: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(RUN_FILE), info).unwrap();
        fs::write(folder.path().join(RESULTS_FILE), results).unwrap();
        folder
    }

    fn line(cell: &CellResult) -> String {
        serde_json::to_string(cell).unwrap() + "\n"
    }

    #[test]
    fn a_line_that_was_cut_short_is_named_and_the_rest_is_kept() {
        let lines = line(&cell("a", "tidegate", 0)) + &line(&cell("b", "tidegate", 0));
        let cut = &lines[..lines.len() - 20];
        let folder = folder(&serde_json::to_string(&info()).unwrap(), cut);
        let run = LoadtestRun::read(folder.path()).unwrap();
        assert_eq!(run.cells, [cell("a", "tidegate", 0)]);
        let said = run.damaged[0].to_string();
        assert!(
            said.ends_with("results.jsonl:2: cut short, the lines before it count"),
            "{said}"
        );
    }

    #[test]
    fn a_run_without_complete_metadata_is_rejected_with_all_that_is_missing() {
        let mut broken = info();
        broken.kernel.clear();
        broken.versions.clear();
        let folder = folder(
            &serde_json::to_string(&broken).unwrap(),
            &line(&cell("a", "tidegate", 0)),
        );
        let said = LoadtestRun::read(folder.path()).unwrap_err().to_string();
        for path in [
            "kernel",
            "versions.tidegate",
            "versions.envoy",
            "versions.fortio",
        ] {
            assert!(
                said.contains(&format!("  {path}: found nothing, expected ")),
                "{said}"
            );
        }
        let folder = self::folder("{}", "");
        let error = LoadtestRun::read(folder.path()).unwrap_err();
        assert!(matches!(error, RunReadError::NotMetadata { .. }), "{error}");
    }

    #[test]
    fn what_was_planned_and_has_no_line_was_not_run() {
        let mut planned = info();
        planned.planned = [("breakers".to_owned(), 3), ("mesh".to_owned(), 2)].into();
        let lines = line(&cell("a", "tidegate", 0)) + &line(&cell("a", "none", 0));
        let folder = folder(&serde_json::to_string(&planned).unwrap(), &lines);
        let run = LoadtestRun::read(folder.path()).unwrap();
        assert_eq!(
            run.not_run().collect::<Vec<_>>(),
            [("breakers", 1), ("mesh", 2)]
        );
    }

    #[test]
    fn of_two_lines_for_one_cell_the_later_counts() {
        let failed = CellResult {
            outcome: CellOutcome::Failed {
                error: "port in use".to_owned(),
            },
            ..cell("a", "none", 0)
        };
        let lines = line(&failed) + &line(&cell("b", "none", 0)) + &line(&cell("a", "none", 0));
        let folder = folder(&serde_json::to_string(&info()).unwrap(), &lines);
        let run = LoadtestRun::read(folder.path()).unwrap();
        assert_eq!(run.cells, [cell("a", "none", 0), cell("b", "none", 0)]);
        assert_eq!(run.failed().count(), 0);
    }
}
