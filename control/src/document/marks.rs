//! Where every value of a document stands in its text.
//!
//! Errors name a path. Resolving one walks down from the root, spelling each
//! step as core does; what is missing has no place, so the deepest value on
//! the way to it stands in.

use std::fmt;

use tidegate_core::config::{Path, Step};

/// A position in a text, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The place of a value and of what it holds. An entry of an object stands
/// where its key does.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) place: Place,
    pub(super) children: Children,
}

/// What a value holds.
#[derive(Clone, Debug)]
pub(super) enum Children {
    None,
    List(Vec<Mark>),
    Object(Vec<(String, Mark)>),
}

impl Mark {
    /// The place of the value at `path`, or of the deepest one on the way.
    pub(super) fn locate(&self, path: &str) -> Place {
        self.locate_below(&Path::ROOT, path)
    }

    fn locate_below(&self, here: &Path<'_>, path: &str) -> Place {
        let step_into = |step: Step<'_>, child: &Self| {
            let there = here.child(step);
            leads_to(&there.to_string(), path).then(|| child.locate_below(&there, path))
        };
        match &self.children {
            Children::None => None,
            Children::List(items) => items
                .iter()
                .enumerate()
                .find_map(|(index, child)| step_into(Step::Index(index), child)),
            Children::Object(entries) => entries
                .iter()
                .find_map(|(key, child)| step_into(Step::Key(key), child)),
        }
        .unwrap_or(self.place)
    }
}

/// Whether `path` is `there` or something below it.
fn leads_to(there: &str, path: &str) -> bool {
    path.strip_prefix(there)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
