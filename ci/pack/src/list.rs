//! A reviewed list of names: one a line, `#` starts a comment.
//!
//! Exports and imports of the module are both compared with such a list, so that a change in what the
//! filter asks of its host, or offers to it, is a changed line in a file. `name` must be there,
//! `name?` may be there. A line that no longer holds is an error too: a list that lags behind the
//! module says nothing.

use std::collections::{BTreeMap, BTreeSet};

/// Names that must, may, or must not be there.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct List {
    names: BTreeMap<String, Presence>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

/// What a list and a module disagree on, both sorted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListDifference {
    /// Required by the list, not in the module.
    pub missing: Vec<String>,
    /// In the module, not in the list.
    pub unlisted: Vec<String>,
}

impl List {
    /// Reads the text of a list file. Every text is a list; later lines win over earlier ones.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for line in text.lines() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            match entry.strip_suffix('?') {
                Some(name) => list.add(name.trim_end(), Presence::Optional),
                None => list.add(entry, Presence::Required),
            }
        }
        list
    }

    /// Adds a name that must be there.
    pub fn require(&mut self, name: &str) {
        self.add(name, Presence::Required);
    }

    fn add(&mut self, name: &str, presence: Presence) {
        if !name.is_empty() {
            self.names.insert(name.to_owned(), presence);
        }
    }

    /// Whether the name is in the list.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Holds the names found in a module against the list.
    #[must_use]
    pub fn compare(&self, found: &BTreeSet<String>) -> ListDifference {
        let required = self
            .names
            .iter()
            .filter(|(_, presence)| **presence == Presence::Required);
        ListDifference {
            missing: required
                .map(|(name, _)| name)
                .filter(|name| !found.contains(*name))
                .cloned()
                .collect(),
            unlisted: found
                .iter()
                .filter(|name| !self.contains(name))
                .cloned()
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn comments_and_blank_lines_are_no_names() {
        let list = List::parse("# all\n\n  memory   # linear memory\r\nmalloc?\n");
        assert_eq!(list.names.len(), 2);
        assert!(list.contains("memory") && list.contains("malloc"));
    }

    #[test]
    fn only_required_names_can_be_missing() {
        let list = List::parse("b\na\noptional?\n");
        let difference = list.compare(&found(&["b", "z", "y"]));
        assert_eq!(difference.missing, ["a"]);
        assert_eq!(difference.unlisted, ["y", "z"]);
    }

    #[test]
    fn an_optional_name_is_not_unlisted() {
        let list = List::parse("optional ?");
        assert_eq!(
            list.compare(&found(&["optional"])),
            ListDifference::default()
        );
        assert_eq!(list.compare(&found(&[])), ListDifference::default());
    }
}
