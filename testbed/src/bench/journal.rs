//! Runs as lines of JSON, written as soon as each run is over.
//!
//! An interrupted benchmark continues where it stopped: lines of the same conditions are kept, and their runs are not
//! repeated. Conditions are everything that the figures depend on: commit, build, Envoy, module, scale, and for each line its
//! seed and workers.
//!
//! Edges: a truncated last line is dropped. Lines of other conditions are dropped too, and counted. All changes of a working
//! copy count as one condition.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::plan::PlannedRun;
use crate::run::RunOutcome;

/// Machine, date, versions and other conditions of a run.
pub type Metadata = BTreeMap<String, String>;

/// One run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JournalLine {
    /// Its conditions.
    pub metadata: Metadata,
    /// The repetition, from 0.
    pub repetition: u32,
    /// Seed of its arrivals.
    pub seed: u64,
    /// Worker threads of its Envoy.
    pub workers: u32,
    /// Its results.
    pub outcome: RunOutcome,
}

impl JournalLine {
    /// Whether this is the run that `turn` plans.
    #[must_use]
    pub fn is_of(&self, turn: &PlannedRun) -> bool {
        self.repetition == turn.repetition
            && self.seed == turn.scenario.seed
            && self.workers == turn.scenario.workers
            && self.outcome.scenario == turn.scenario.name
            && self.outcome.variant == turn.variant
    }
}

/// Entries of the metadata that must be equal for figures to be comparable.
const CONDITIONS: [&str; 5] = ["commit", "build", "envoy", "module", "scale"];

/// Whether figures of runs with these metadata are comparable.
#[must_use]
pub fn is_alike(one: &Metadata, other: &Metadata) -> bool {
    CONDITIONS
        .iter()
        .all(|fact| one.get(*fact) == other.get(*fact))
}

/// The file being written.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

/// The contents of a file.
#[derive(Debug, Default)]
pub struct JournalContents {
    /// Runs that are kept.
    pub kept: Vec<JournalLine>,
    /// Lines that are not: of other conditions, or malformed.
    pub dropped: usize,
}

impl Journal {
    /// Begins a new file.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin(path: &Path) -> io::Result<Self> {
        File::create(path).map(|file| Self { file })
    }

    /// Continues an existing file: keeps the runs that were made in the same conditions.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn resume(path: &Path, metadata: &Metadata) -> io::Result<(Self, JournalContents)> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let mut found = JournalContents::default();
        let mut kept = String::new();
        for text in text.lines() {
            match serde_json::from_str::<JournalLine>(text) {
                Ok(line) if is_alike(&line.metadata, metadata) => {
                    kept.push_str(text);
                    kept.push('\n');
                    found.kept.push(line);
                }
                Ok(_) | Err(_) => found.dropped += 1,
            }
        }
        // Atomically, so that an interruption loses nothing.
        let beside = path.with_extension("jsonl.new");
        fs::write(&beside, kept)?;
        fs::rename(&beside, path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok((Self { file }, found))
    }

    /// Records a run.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn note(&mut self, line: &JournalLine) -> io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        // One call without a buffer, so that nothing is held back.
        self.file.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variant::Variant;
    use tidegate_sim::score::Figures;

    fn metadata(commit: &str) -> Metadata {
        BTreeMap::from([
            ("commit".to_owned(), commit.to_owned()),
            ("date".to_owned(), format!("when {commit} was tried")),
        ])
    }

    fn line(commit: &str, repetition: u32) -> JournalLine {
        JournalLine {
            metadata: metadata(commit),
            repetition,
            seed: 7,
            workers: 2,
            outcome: RunOutcome {
                scenario: "steady".to_owned(),
                variant: Variant::Tidegate,
                figures: Figures {
                    settle_s: vec![None, Some(0.25)],
                    ..Figures::default()
                },
                envoy_cpu_s: 1.5,
                envoy_resident_bytes: 3,
                windows: Vec::new(),
                samples: Vec::new(),
            },
        }
    }

    #[test]
    fn an_interrupted_journal_is_continued_behind_its_last_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let mut journal = Journal::begin(&path).unwrap();
        journal.note(&line("a", 0)).unwrap();
        drop(journal);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"metadata\":{\"com").unwrap();

        let (mut journal, found) = Journal::resume(&path, &metadata("a")).unwrap();
        assert_eq!((found.kept.len(), found.dropped), (1, 1));
        assert_eq!(found.kept[0].outcome.figures.settle_s, [None, Some(0.25)]);
        journal.note(&line("a", 1)).unwrap();

        let (_, found) = Journal::resume(&path, &metadata("a")).unwrap();
        let repetitions: Vec<u32> = found.kept.iter().map(|line| line.repetition).collect();
        assert_eq!((repetitions, found.dropped), (vec![0, 1], 0));
    }

    #[test]
    fn runs_of_another_commit_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        Journal::begin(&path).unwrap().note(&line("a", 0)).unwrap();
        let (_, found) = Journal::resume(&path, &metadata("b")).unwrap();
        assert_eq!((found.kept.len(), found.dropped), (0, 1));
    }

    #[test]
    fn there_need_not_be_a_journal_to_resume() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let (_, found) = Journal::resume(&path, &metadata("a")).unwrap();
        assert_eq!((found.kept.len(), found.dropped), (0, 0));
    }
}
