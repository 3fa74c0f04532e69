//! The position of every value of a document in its text.
//!
//! Errors name a path. It is resolved from the root down, each step spelled as
//! core does. A missing value has no position, so the deepest value on the way
//! to it is used instead.

use std::fmt;

use tidegate_core::config::{Path, PathStep};

/// A position in a text, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct TextPosition {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The position of a value and of everything in it. The position of an object's
/// entry is that of its key.
#[derive(Clone, Debug)]
pub(super) struct ValueMark {
    pub(super) place: TextPosition,
    pub(super) children: Children,
}

/// The marks of the values in a value.
#[derive(Clone, Debug)]
pub(super) enum Children {
    None,
    List(Vec<ValueMark>),
    Object(Vec<(String, ValueMark)>),
}

impl ValueMark {
    /// The position of the value at `path`, or of the deepest value on the way.
    pub(super) fn locate(&self, path: &str) -> TextPosition {
        self.locate_below(&Path::ROOT, path)
    }

    fn locate_below(&self, here: &Path<'_>, path: &str) -> TextPosition {
        let step_into = |step: PathStep<'_>, child: &Self| {
            let there = here.child(step);
            leads_to(&there.to_string(), path).then(|| child.locate_below(&there, path))
        };
        match &self.children {
            Children::None => None,
            Children::List(items) => items
                .iter()
                .enumerate()
                .find_map(|(index, child)| step_into(PathStep::Index(index), child)),
            Children::Object(entries) => entries
                .iter()
                .find_map(|(key, child)| step_into(PathStep::Key(key), child)),
        }
        .unwrap_or(self.place)
    }
}

/// Whether `path` is `there` or is below it.
fn leads_to(there: &str, path: &str) -> bool {
    path.strip_prefix(there)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
