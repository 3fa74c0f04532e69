//! The folder of a run, written so that an interruption loses only the current cell.
//!
//! `run.json` is written before the first cell; each cell becomes a line as soon as it is over. A run can only be resumed
//! under the same conditions: figures of another commit, module, machine or tool must not be in the same table. Failed cells
//! are played again; of two lines for one cell the later one counts.
//!
//! Edges: a truncated last line is terminated first, so that it spoils no other.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::result::{CellResult, LoadtestRun, RESULTS_FILE, RUN_FILE, RunInfo, RunReadError};

/// Why a run could not be begun or resumed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A file cannot be written.
    #[error("write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The existing run cannot be read.
    #[error("go on with a run")]
    Read(#[from] RunReadError),
    /// The conditions have changed.
    #[error("{}: a run goes on in the same conditions only; begin a new one\n{}", path.display(), differences.join("\n"))]
    OtherConditions {
        /// The file with the metadata.
        path: PathBuf,
        /// The differences.
        differences: Vec<String>,
    },
}

/// The file with the results.
#[derive(Debug)]
pub struct ResultJournal {
    path: PathBuf,
    file: File,
    made: BTreeSet<String>,
}

impl ResultJournal {
    /// Begins a run in `folder`, which is created.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(folder: &Path, info: &RunInfo) -> Result<Self, JournalError> {
        let write = |path: &Path| {
            let path = path.to_owned();
            move |source| JournalError::Write { path, source }
        };
        fs::create_dir_all(folder).map_err(write(folder))?;
        write_info(folder, info)?;
        let path = folder.join(RESULTS_FILE);
        let file = File::create(&path).map_err(write(&path))?;
        Ok(Self {
            path,
            file,
            made: BTreeSet::new(),
        })
    }

    /// Resumes the run in `folder`; `info` describes the present conditions.
    ///
    /// # Errors
    /// If there is none, or the conditions have changed.
    pub fn resume(folder: &Path, info: &RunInfo) -> Result<Self, JournalError> {
        let run = LoadtestRun::read(folder)?;
        let differences = differences(&run.info, info);
        if !differences.is_empty() {
            return Err(JournalError::OtherConditions {
                path: folder.join(RUN_FILE),
                differences,
            });
        }
        // A tool may have been installed meanwhile, and more cells may be requested.
        let mut known = run.info.clone();
        known.versions.extend(info.versions.clone());
        for (study, count) in &info.planned {
            // Only a part may be requested now; earlier planned cells still count as missing.
            let planned = known.planned.entry(study.clone()).or_default();
            *planned = (*planned).max(*count);
        }
        write_info(folder, &known)?;
        let made = run.ended().map(CellResult::name).collect();
        let path = folder.join(RESULTS_FILE);
        let open = OpenOptions::new().append(true).open(&path);
        let mut file = open.map_err(|source| JournalError::Write {
            path: path.clone(),
            source,
        })?;
        if run.damaged.iter().any(|damage| damage.is_cut_short) {
            file.write_all(b"\n")
                .map_err(|source| JournalError::Write {
                    path: path.clone(),
                    source,
                })?;
        }
        Ok(Self { path, file, made })
    }

    /// Whether the cell of `result` already has a result that is not a failure.
    #[must_use]
    pub fn has(&self, result: &CellResult) -> bool {
        self.made.contains(&result.name())
    }

    /// Records a result.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn note(&mut self, result: &CellResult) -> Result<(), JournalError> {
        let write = |source| JournalError::Write {
            path: self.path.clone(),
            source,
        };
        let line = serde_json::to_string(result).map_err(|error| write(error.into()))? + "\n";
        // One call without a buffer, so that nothing is held back.
        self.file.write_all(line.as_bytes()).map_err(write)
    }
}

/// Writes the metadata atomically: under another name, then renamed.
fn write_info(folder: &Path, info: &RunInfo) -> Result<(), JournalError> {
    let (path, beside) = (folder.join(RUN_FILE), folder.join("run.json.new"));
    let text = serde_json::to_string_pretty(info).map_err(io::Error::from);
    let written = text.and_then(|text| fs::write(&beside, text + "\n"));
    let renamed = written.and_then(|()| fs::rename(&beside, &path));
    renamed.map_err(|source| JournalError::Write { path, source })
}

/// Differences between the conditions; neither the date nor the planned studies matter.
fn differences(before: &RunInfo, now: &RunInfo) -> Vec<String> {
    let mut facts: Vec<(String, String, String)> = [
        ("machine", &before.machine, &now.machine),
        ("kernel", &before.kernel, &now.kernel),
        ("commit", &before.commit, &now.commit),
        ("module_sha256", &before.module_sha256, &now.module_sha256),
    ]
    .map(|(name, before, now)| (name.to_owned(), before.clone(), now.clone()))
    .into();
    facts.push((
        "cores".to_owned(),
        before.cores.to_string(),
        now.cores.to_string(),
    ));
    facts.push((
        "extent".to_owned(),
        before.extent.to_string(),
        now.extent.to_string(),
    ));
    for (program, version) in &now.versions {
        let then = before.versions.get(program).unwrap_or(version);
        facts.push((format!("versions.{program}"), then.clone(), version.clone()));
    }
    let differ = facts.into_iter().filter(|(_, before, now)| before != now);
    differ
        .map(|(name, before, now)| format!("  {name}: found {before}, expected {now}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::info;
    use crate::result::{CellOutcome, Extent};
    use crate::study;

    fn results() -> Vec<CellResult> {
        let cells = study::ALL[0].cells(Extent::Reduced).unwrap();
        cells
            .iter()
            .take(3)
            .map(|cell| cell.result(CellOutcome::Ok))
            .collect()
    }

    #[test]
    fn a_run_goes_on_where_it_was_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let [first, second, third] = &results()[..] else {
            unreachable!()
        };
        let failed = CellResult {
            outcome: CellOutcome::Failed {
                error: "port in use".to_owned(),
            },
            ..third.clone()
        };
        let mut journal = ResultJournal::begin(folder.path(), &info()).unwrap();
        for result in [first, &failed, second] {
            journal.note(result).unwrap();
        }
        let path = folder.path().join(RESULTS_FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 9]).unwrap();

        let mut journal = ResultJournal::resume(folder.path(), &info()).unwrap();
        assert!(journal.has(first));
        assert!(!journal.has(second), "its line was cut short");
        assert!(!journal.has(third), "it failed");
        journal.note(second).unwrap();
        journal.note(third).unwrap();
        let run = LoadtestRun::read(folder.path()).unwrap();
        assert_eq!(
            (run.ended().count(), run.failed().count(), run.damaged.len()),
            (3, 0, 1)
        );
    }

    #[test]
    fn going_on_with_a_part_hides_no_gap_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let planning = |count| RunInfo {
            planned: [("transition".to_owned(), count)].into(),
            ..info()
        };
        let mut journal = ResultJournal::begin(folder.path(), &planning(3)).unwrap();
        journal.note(&results()[0]).unwrap();
        ResultJournal::resume(folder.path(), &planning(1)).unwrap();
        let run = LoadtestRun::read(folder.path()).unwrap();
        assert_eq!(run.not_run().collect::<Vec<_>>(), [("transition", 2)]);
    }

    #[test]
    fn figures_of_another_commit_are_not_mixed_in() {
        let folder = tempfile::tempdir().unwrap();
        ResultJournal::begin(folder.path(), &info()).unwrap();
        let now = RunInfo {
            commit: "fedcba987654".to_owned(),
            date: "2026-11-22T10:00:00Z".to_owned(),
            ..info()
        };
        let said = ResultJournal::resume(folder.path(), &now)
            .unwrap_err()
            .to_string();
        assert!(
            said.ends_with("begin a new one\n  commit: found 0123456789ab, expected fedcba987654"),
            "{said}"
        );
    }
}
