//! What a run of load tests leaves behind: `run.json` says on what, when and with what it was made, and each line
//! of `results.jsonl` is one cell of a study's matrix.
//!
//! The runner writes, reports and comparisons read. A figure without its circumstances is worth nothing, so that
//! [`LoadtestRun::read`] refuses a folder whose metadata are not complete, with everything that is missing at once. The journal
//! of `make bench` is a run as well ([`bench`]).
//!
//! Edges: a run that was killed leaves a last line that is cut short; it is named in [`LoadtestRun::damaged`] and the rest
//! is kept. A cell that failed is a line as well: a gap is shown, never left out. A cell with two lines (a run
//! that was resumed after a failure) counts as its last line says.

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
pub use read::{LoadtestRun, ReadError};

/// Name of the file with the metadata in the folder of a run.
pub const RUN_FILE: &str = "run.json";

/// Name of the file with the cells in the folder of a run, one in each line.
pub const RESULTS_FILE: &str = "results.jsonl";

/// Name of the testbed's journal, which a folder may have in the place of both.
pub const JOURNAL_FILE: &str = "runs.jsonl";

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use super::cell::tests::cell;
    pub(crate) use super::info::tests::info;
}
