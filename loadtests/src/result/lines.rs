//! Files of results: a cell a line, and a description of each damaged line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::CellResult;

/// A line that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Number of the line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
    /// Whether it is the last line, without an end: the run was interrupted while it was written.
    pub is_cut_short: bool,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            line,
            reason,
            is_cut_short,
        } = self;
        let path = path.display();
        if *is_cut_short {
            write!(f, "{path}:{line}: cut short, the lines before it count")
        } else {
            write!(
                f,
                "{path}:{line}: not a result, the other lines count: {reason}"
            )
        }
    }
}

/// The cells from lines that `read` understands, and the other lines.
pub(super) fn lines(
    text: &str,
    path: &Path,
    mut read: impl FnMut(&str) -> Result<CellResult, String>,
) -> (Vec<CellResult>, Vec<Damage>) {
    let (mut cells, mut damaged) = (Vec::<CellResult>::new(), Vec::new());
    let mut places = BTreeMap::new();
    let count = text.lines().count();
    for (line, content) in (1..).zip(text.lines()) {
        if content.trim().is_empty() {
            continue;
        }
        match read(content) {
            Ok(cell) => {
                let place = *places.entry(cell.name()).or_insert(cells.len());
                match cells.get_mut(place) {
                    Some(earlier) => *earlier = cell,
                    None => cells.push(cell),
                }
            }
            Err(reason) => damaged.push(Damage {
                path: path.to_owned(),
                line,
                reason,
                is_cut_short: line == count && !text.ends_with('\n'),
            }),
        }
    }
    (cells, damaged)
}
