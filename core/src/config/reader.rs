//! Reads checked values out of the tree and collects what is wrong.
//!
//! A [`Section`] is one JSON object with its path. Each read names a key, takes
//! the range from the schema, and always returns a value. On an error it returns
//! the fallback, so that reading continues and finds the next error too. When the
//! section ends, keys that were not read are errors. So is a key that occurs
//! twice. The values are valid only if no error was collected.
//!
//! Edges: an absent object is read like an empty one, and its fields fall back.
//! If a value is not an object, that is the only error: missing required fields
//! in it are not reported.

use std::fmt::{self, Write as _};

use super::document::Node;
use super::errors::{ConfigError, ConfigErrors};
use super::path::{Path, PathStep};
use super::typo::closest;

/// One JSON object being read.
#[derive(Debug)]
pub struct Section<'a> {
    entries: &'a [(String, Node)],
    path: Path<'a>,
    errors: &'a mut ConfigErrors,
    asked: Vec<&'static str>,
    /// The value was not an object. This is reported already, so missing keys are not.
    is_lost: bool,
    /// Keys that were not read are ignored.
    is_open: bool,
}

impl<'a> Section<'a> {
    /// Reads the whole of a document.
    ///
    /// # Errors
    /// Everything that `read` found wrong, unknown keys included.
    pub fn read_document<T>(
        root: &Node,
        read: impl FnOnce(&mut Section<'_>) -> T,
    ) -> Result<T, ConfigErrors> {
        let mut errors = ConfigErrors::default();
        let value = Self::read(Some(root), Path::ROOT, &mut errors, read);
        if errors.total() == 0 {
            Ok(value)
        } else {
            Err(errors)
        }
    }

    /// Reads `node` as an object at `path`.
    fn read<T>(
        node: Option<&Node>,
        path: Path<'_>,
        errors: &mut ConfigErrors,
        read: impl FnOnce(&mut Section<'_>) -> T,
    ) -> T {
        let (entries, is_lost): (&[(String, Node)], bool) = match node {
            None => (&[], false),
            Some(Node::Object(entries)) => (entries, false),
            Some(other) => {
                let shown = match path.step {
                    PathStep::Root => "document".to_owned(),
                    _ => path.to_string(),
                };
                errors.push(ConfigError::new(
                    shown,
                    other.shown(),
                    "an object".to_owned(),
                ));
                (&[], true)
            }
        };
        let mut section = Section {
            entries,
            path,
            errors,
            asked: Vec::new(),
            is_lost,
            is_open: false,
        };
        let value = read(&mut section);
        if !section.is_open {
            section.reject_unknown_keys();
        }
        value
    }

    /// The object at `key`; an absent one is read like an empty one.
    pub fn object<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'_>) -> T) -> T {
        let node = self.take(key);
        let is_lost = self.is_lost;
        Self::read(
            node,
            self.path.child(PathStep::Key(key)),
            &mut *self.errors,
            |section| {
                section.is_lost |= is_lost;
                read(section)
            },
        )
    }

    /// The list of objects at `key`; absent means empty.
    pub fn objects<T>(
        &mut self,
        key: &'static str,
        max_items: usize,
        mut read: impl FnMut(&mut Section<'_>) -> T,
    ) -> Vec<T> {
        let items = self.list(key, max_items).unwrap_or_default();
        let path = self.path.child(PathStep::Key(key));
        let mut values = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = path.child(PathStep::Index(index));
            values.push(Self::read(Some(item), path, &mut *self.errors, &mut read));
        }
        values
    }

    /// The list of texts at `key`, each through `parse`; `None` when absent.
    pub fn texts<T>(
        &mut self,
        key: &'static str,
        max_items: usize,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut values = Vec::new();
        let is_there = self.entries(key, max_items, &expected, &mut |node| {
            let value = match node {
                Node::Text(text) => parse(text),
                _ => None,
            };
            value.map(|value| values.push(value)).is_some()
        });
        is_there.then_some(values)
    }

    /// Reads the list at `key`. Each entry goes through `take`, which returns whether it is as `expected`. Returns whether
    /// there is a list.
    pub(super) fn entries(
        &mut self,
        key: &'static str,
        max_items: usize,
        expected: &dyn fmt::Display,
        take: &mut dyn FnMut(&Node) -> bool,
    ) -> bool {
        let Some(items) = self.list(key, max_items) else {
            return false;
        };
        let path = self.path.child(PathStep::Key(key));
        for (index, item) in items.iter().enumerate() {
            if !take(item) {
                self.errors.push(ConfigError::new(
                    path.child(PathStep::Index(index)).to_string(),
                    item.shown(),
                    expected.to_string(),
                ));
            }
        }
        true
    }

    fn list(&mut self, key: &'static str, max_items: usize) -> Option<&'a [Node]> {
        match self.take(key)? {
            Node::List(items) if items.len() <= max_items => Some(items),
            Node::List(items) => {
                let found = format!("{} entries", items.len());
                self.report(key, found, format!("at most {max_items} entries"));
                None
            }
            other => {
                self.report(
                    key,
                    other.shown(),
                    format!("a list of at most {max_items} entries"),
                );
                None
            }
        }
    }

    /// The value at `key` through `parse`; `None` if it is absent or wrong. A
    /// wrong value is reported with `expected`.
    pub fn value<T>(
        &mut self,
        key: &'static str,
        expected: &dyn fmt::Display,
        parse: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        let node = self.take(key)?;
        let value = parse(node);
        if value.is_none() {
            self.report(key, node.shown(), expected.to_string());
        }
        value
    }

    /// Like [`Self::value`] for a text.
    pub fn text<T>(
        &mut self,
        key: &'static str,
        expected: &dyn fmt::Display,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        self.value(key, expected, |node| match node {
            Node::Text(text) => parse(text),
            _ => None,
        })
    }

    /// Ignores keys that are not read, because they belong to another reader.
    pub const fn allow_unknown(&mut self) {
        self.is_open = true;
    }

    /// Whether the document has `key`.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(entry, _)| entry == key)
    }

    /// Reports that `key` is missing.
    pub fn require(&mut self, key: &'static str, expected: &dyn fmt::Display) {
        if !self.is_lost {
            self.report(key, "nothing".to_owned(), expected.to_string());
        }
    }

    /// Reports the value at `key`, which is readable but contradicts another.
    pub fn reject(&mut self, key: &'static str, expected: String) {
        let node = self.entries.iter().find(|(entry, _)| entry == key);
        let found = node.map_or_else(|| "nothing".to_owned(), |(_, node)| node.shown());
        self.report(key, found, expected);
    }

    /// Reports this section as a whole.
    pub fn reject_whole(&mut self, found: String, expected: String) {
        if !self.is_lost {
            self.errors
                .push(ConfigError::new(self.path.to_string(), found, expected));
        }
    }

    /// How many errors there are so far. If the count is the same before and
    /// after some reads, their values can be compared with each other.
    #[must_use]
    pub const fn error_count(&self) -> usize {
        self.errors.total()
    }

    fn report(&mut self, key: &str, found: String, expected: String) {
        self.errors.push(ConfigError::new(
            self.path.child(PathStep::Key(key)).to_string(),
            found,
            expected,
        ));
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Node> {
        self.asked.push(key);
        let entries: &'a [(String, Node)] = self.entries;
        let mut nodes = entries
            .iter()
            .filter(|(entry, _)| entry == key)
            .map(|(_, node)| node);
        let first = nodes.next()?;
        for again in nodes {
            let found = format!("the key again, with {}", again.shown());
            self.report(key, found, "each key once".to_owned());
        }
        Some(first)
    }

    fn reject_unknown_keys(&mut self) {
        for (key, _) in self.entries {
            if self.asked.iter().any(|known| known == key) {
                continue;
            }
            if self.errors.is_full() {
                self.errors.omit();
                continue;
            }
            let mut expected = format!("one of {}", self.asked.join(", "));
            if let Some(known) = closest(key, &self.asked) {
                let _ = write!(expected, " (did you mean \"{known}\"?)");
            }
            self.report(key, "an unknown key".to_owned(), expected);
        }
    }
}
