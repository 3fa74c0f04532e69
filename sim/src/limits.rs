//! Where our score may lie further behind a rival than the targets allow, by how much, and why.
//!
//! Some comparisons ask for what nobody can have who does not know what comes next, others for what costs more
//! elsewhere. Each such scenario is data (`sim/limits.toml`): how far behind which kind of rival, the reason in a
//! line, and the heading of the page that explains it and shows it by a run. What is not listed is held to the rule.
//!
//! A list that nobody holds to runs rots. [`judge`] says which scenario is behind without being listed or by more
//! than is granted, and which is listed without need; [`page`] and
//! [`row`] hold the page's table to the list and to the run.
//!
//! Edges: the list is for simulated runs, whose medians are the same on every machine. A scenario that was not played
//! is not judged. A file with faults is refused with all of them, each with its line.

mod check;
mod judge;
pub mod page;
pub mod row;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::targets::{Comparison, Kind};

pub(crate) use judge::judge;
pub use judge::{Held, Judged, Standing};
pub use page::Page;

/// Where the list stands, as messages name it.
pub const FILE: &str = "sim/limits.toml";

/// What is granted to one scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Behind the best contender that nobody tuned; none where the rule holds.
    pub behind_best_untuned: Option<f64>,
    /// Behind the best contender that somebody tuned; likewise.
    pub behind_tuned: Option<f64>,
    /// Why, in a line.
    pub reason: String,
    /// Anchor of the heading of the page that explains it.
    pub see: String,
}

impl Limit {
    /// What is granted against a kind of rival.
    #[must_use]
    pub const fn behind(&self, kind: Kind) -> Option<f64> {
        match kind {
            Kind::Ours => None,
            Kind::Untuned => self.behind_best_untuned,
            Kind::Tuned => self.behind_tuned,
        }
    }
}

/// Everything that is granted.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Runs of each scenario with each contender, whose median is judged; at least 1.
    pub seeds: u64,
    /// By scenario.
    pub scenarios: BTreeMap<String, Limit>,
}

/// Why the list cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LimitsError {
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The text is no list; the message holds line and column.
    #[error("parse {origin}:\n{message}")]
    Parse {
        /// The file.
        origin: String,
        /// What the parser says.
        message: String,
    },
    /// The list or its page makes no sense.
    #[error("{}", .0.join("\n"))]
    Refused(
        /// Every fault, each as `file:line: what is wrong`.
        Vec<String>,
    ),
}

/// What a list is held against when it is read.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Names of the scenarios there are.
    pub scenarios: &'a BTreeSet<&'a str>,
    /// The rule: less than it is not granted, it is everybody's.
    pub rule: Comparison,
    /// Anchors of the page's headings.
    pub anchors: &'a BTreeSet<String>,
}

impl Limits {
    /// The list of this repository, and the page that explains it.
    ///
    /// # Errors
    /// When either cannot be read, the list does not parse, or with all of its faults.
    pub fn read(scenarios: &BTreeSet<&str>, rule: Comparison) -> Result<(Self, Page), LimitsError> {
        let page = Page::new(&text_of(&at(page::FILE))?);
        let known = Known {
            scenarios,
            rule,
            anchors: &page.anchors(),
        };
        let limits = Self::parse(&text_of(&at(FILE))?, FILE, known)?;
        Ok((limits, page))
    }

    /// Parses and checks a list; `origin` names it in errors.
    ///
    /// # Errors
    /// When the text does not parse, or with all of its faults.
    pub fn parse(text: &str, origin: &str, known: Known<'_>) -> Result<Self, LimitsError> {
        check::parse(text, origin, known)
    }
}

/// A file of the repository by its path there.
#[must_use]
pub fn at(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

fn text_of(path: &Path) -> Result<String, LimitsError> {
    fs::read_to_string(path).map_err(|source| LimitsError::Read {
        path: path.to_owned(),
        source,
    })
}
