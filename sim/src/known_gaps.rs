//! Known gaps: scenarios in which our score may be further behind a rival than the targets allow, by how much, and why.
//!
//! Some rivals do better because they know the future, others because they pay for it in other scenarios. Each known gap is
//! data (`sim/limits.toml`): how far behind which kind of rival, the reason in one line, and the heading of the page that
//! explains it with a run. The rule of the targets applies to every scenario that is not listed.
//!
//! A list without a check becomes outdated. `judge` reports scenarios that are behind without being listed or by more
//! than is granted, and those that are listed without need. [`page`] and [`row`] check the page's table against the list
//! and the run.
//!
//! Edges: the list is for simulated runs, whose medians are the same on every machine. A scenario that was not played
//! is not judged. A file with errors is rejected with all of them, each with its line.

mod check;
mod judge;
pub mod page;
pub mod row;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::targets::{Margins, RivalKind};

pub(crate) use judge::judge;
pub use judge::{Grade, Judged, RunScope};
pub use page::GapsPage;

/// Path of the list in the repository, as messages name it.
pub const FILE: &str = "sim/limits.toml";

/// Path of the page that explains the list, in the repository.
pub const PAGE: &str = "docs/laws/limits-of-the-measure.md";

/// What is granted to one scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownGap {
    /// How far behind the best untuned contender; none where the rule applies.
    pub behind_best_untuned: Option<f64>,
    /// How far behind the best tuned contender; likewise.
    pub behind_tuned: Option<f64>,
    /// Why, in a line.
    pub reason: String,
    /// Anchor of the heading of the page that explains it.
    pub see: String,
}

impl KnownGap {
    /// What is granted against a kind of rival.
    #[must_use]
    pub const fn behind(&self, kind: RivalKind) -> Option<f64> {
        match kind {
            RivalKind::Ours => None,
            RivalKind::Untuned => self.behind_best_untuned,
            RivalKind::Tuned => self.behind_tuned,
        }
    }
}

/// Everything that is granted.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownGaps {
    /// Runs of each scenario with each contender, whose median is judged; at least 1.
    pub seeds: u64,
    /// By scenario.
    pub scenarios: BTreeMap<String, KnownGap>,
}

/// Why the list cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum KnownGapsError {
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The text is not a list; the message holds line and column.
    #[error("parse {origin}:\n{message}")]
    Parse {
        /// The file.
        origin: String,
        /// What the parser says.
        message: String,
    },
    /// The list or its page is invalid.
    #[error("{}", .0.join("\n"))]
    Refused(
        /// Every fault, each as `file:line: what is wrong`.
        Vec<String>,
    ),
}

/// What a list is checked against when it is read.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Names of the scenarios there are.
    pub scenarios: &'a BTreeSet<&'a str>,
    /// The rule: it applies to all scenarios, so an entry must grant more.
    pub rule: Margins,
    /// Anchors of the page's headings.
    pub anchors: &'a BTreeSet<String>,
}

/// A file of the repository by its path there.
#[must_use]
pub fn at(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}
