//! The cells and the name of a run.
//!
//! A resumed run plays the same cells: options that are not given come from its `run.json`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use tidegate_loadtests::matrix::{self, Cell};
use tidegate_loadtests::result::{CellOutcome, Extent, LoadtestRun, Parameter, RUN_FILE};
use tidegate_loadtests::study::{self, Study};
use tidegate_sim::number;
use tidegate_testbed::about;

use super::options::StudyRunOptions;

/// Parameter in `run.json` with the chosen studies.
pub(super) const STUDIES: &str = "studies";

/// Parameter in `run.json` with the text that names of cells must contain.
pub(super) const CELLS: &str = "cells";

/// Parameter in `run.json` with the least number of repetitions.
pub(super) const REPEAT: &str = "repeat";

/// Parameter in `run.json` that says whether the native module plays as well.
pub(super) const NATIVE: &str = "native";

/// The choice of cells, and the name of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunChoice {
    /// Name of the run.
    pub(super) name: String,
    /// The part of the matrix.
    pub(super) extent: Extent,
    /// Studies by name, or `all`.
    pub(super) studies: Vec<String>,
    /// Text that names of cells must contain.
    pub(super) part: String,
    /// Repetitions of every cell, at least.
    pub(super) repeat: u32,
    /// Whether the native module plays every cell that Tidegate's filter plays.
    pub(super) with_native: bool,
}

impl RunChoice {
    /// The choice that the options mean.
    pub(super) fn of(options: &StudyRunOptions) -> Result<Self> {
        let extent = if options.full {
            Extent::Full
        } else {
            Extent::Reduced
        };
        let mut choice = Self {
            name: String::new(),
            extent,
            studies: vec!["all".to_owned()],
            part: String::new(),
            repeat: options.repeat,
            with_native: options.native,
        };
        choice.name = match (&options.name, options.resume) {
            (Some(name), _) => name.clone(),
            (None, false) => new_name(extent),
            (None, true) => last(&options.out, options.full)?,
        };
        if options.resume {
            choice.go_on(options)?;
        }
        if let Some(studies) = &options.studies {
            choice.studies.clone_from(studies);
        }
        if let Some(part) = &options.cells {
            choice.part.clone_from(part);
        }
        Ok(choice)
    }

    /// Takes from the run to be resumed what the options do not give.
    fn go_on(&mut self, options: &StudyRunOptions) -> Result<()> {
        let info = LoadtestRun::read(&options.out.join(&self.name))?.info;
        if !options.full {
            self.extent = info.extent;
        }
        if let Some(Parameter::Number(repeat)) = info.parameters.get(REPEAT) {
            let begun = u32::try_from(number::floor(*repeat)).unwrap_or(1);
            self.repeat = self.repeat.max(begun);
        }
        self.with_native |= info.parameters.contains_key(NATIVE);
        // Other studies or cells replace the whole choice.
        if options.studies.is_none() && options.cells.is_none() {
            if let Some(Parameter::Text(studies)) = info.parameters.get(STUDIES) {
                self.studies = studies.split(',').map(str::to_owned).collect();
            }
            if let Some(Parameter::Text(part)) = info.parameters.get(CELLS) {
                self.part.clone_from(part);
            }
        }
        Ok(())
    }

    /// The chosen cells.
    pub(super) fn cells(&self) -> Result<Vec<Cell>> {
        let mut studies: Vec<Study> = Vec::new();
        for name in &self.studies {
            if name == "all" {
                studies.extend(study::ALL);
            } else {
                studies.push(Study::of(name)?);
            }
        }
        let mut cells = Vec::new();
        for study in studies {
            cells.extend(study.cells(self.extent)?);
        }
        let mut cells = matrix::repeated(cells, self.repeat);
        if self.with_native {
            cells = matrix::with_native(cells);
        }
        cells.retain(|cell| cell.result(CellOutcome::Ok).name().contains(&self.part));
        if cells.is_empty() {
            bail!(
                "--cells: found {}, expected a part of the name of a cell (--list shows them)",
                self.part
            );
        }
        Ok(cells)
    }
}

/// A name from extent, date and time, such as `reduced-20261121-1030`.
fn new_name(extent: Extent) -> String {
    let date = about::metadata().remove("date").unwrap_or_default();
    let digits: String = date.chars().filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at_checked(8).unwrap_or((&digits, ""));
    format!("{extent}-{day}-{time}")
}

/// The last run without a name of its own. After the extent, names sort by time.
fn last(out: &Path, is_full: bool) -> Result<String> {
    let extents = if is_full {
        &[Extent::Full][..]
    } else {
        &[Extent::Full, Extent::Reduced]
    };
    let time = |name: &str| {
        let mut times = extents
            .iter()
            .filter_map(|extent| name.strip_prefix(&format!("{extent}-")));
        times.next().map(str::to_owned)
    };
    let folders = fs::read_dir(out).with_context(|| format!("read {}", out.display()))?;
    let names = folders
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let last = names
        .filter(|name| out.join(name).join(RUN_FILE).exists())
        .filter_map(|name| Some((time(&name)?, name)))
        .max();
    let (_, name) = last.with_context(|| {
        let names: Vec<String> = extents.iter().map(|extent| format!("{extent}-")).collect();
        format!(
            "{}: found no run whose name begins with {}",
            out.display(),
            names.join(" or ")
        )
    })?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_run_is_the_latest_of_any_extent_unless_a_full_one_is_meant() {
        let out = tempfile::tempdir().unwrap();
        for name in ["full-20261120-1000", "reduced-20261121-0900", "mine"] {
            fs::create_dir(out.path().join(name)).unwrap();
            fs::write(out.path().join(name).join(RUN_FILE), "{}").unwrap();
        }
        assert_eq!(last(out.path(), false).unwrap(), "reduced-20261121-0900");
        assert_eq!(last(out.path(), true).unwrap(), "full-20261120-1000");
        let none = tempfile::tempdir().unwrap();
        let said = last(none.path(), true).unwrap_err().to_string();
        assert!(
            said.ends_with("found no run whose name begins with full-"),
            "{said}"
        );
    }
}
