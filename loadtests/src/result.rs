//! The files of a run of load tests: `run.json` has the metadata (machine, date, versions, conditions), and each line of
//! `results.jsonl` is one cell of a study's matrix.
//!
//! The runner writes them; reports and comparisons read them. A figure without its circumstances is worthless, so
//! [`LoadtestRun::read`] fails for a folder with incomplete metadata, and lists everything that is missing. The journal of
//! `make bench` is also read as a run ([`bench`]).
//!
//! Edges: a run that was killed leaves a truncated last line; it is listed in [`LoadtestRun::damaged`], and the rest is kept.
//! A failed cell also has a line: gaps are shown, never left out. Of a cell with two lines (a run that was resumed after a
//! failure) the last line counts.

mod bench;
mod cell;
mod figure;
mod gather;
mod info;
mod lines;
mod read;

pub use cell::{CellOutcome, CellResult, Parameter, Point, Tool, Topology};
pub use figure::{Better, CellFigures, Figure};
pub use gather::{Circumstances, GatherError};
pub use info::{Extent, Lack, RunInfo};
pub use lines::Damage;
pub use read::{LoadtestRun, RunReadError};

/// Name of the file with the metadata in the folder of a run.
pub const RUN_FILE: &str = "run.json";

/// Name of the file with the cells in the folder of a run, one in each line.
pub const RESULTS_FILE: &str = "results.jsonl";

/// Name of the testbed's journal, which a folder may have instead of both.
pub const JOURNAL_FILE: &str = "runs.jsonl";

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use super::cell::tests::cell;
    pub(crate) use super::info::tests::info;
}
