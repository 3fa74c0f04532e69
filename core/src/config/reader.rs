//! Reads checked values out of the tree and collects what is wrong.
//!
//! A [`Section`] is one JSON object with its path. Each read names a key,
//! takes its range from the schema and always returns a value: on an error the
//! fallback, so that reading goes on and the next error is found too. Keys
//! that nobody asked for are errors when the section ends, and so is a key
//! that stands twice. The values only count if no error was collected.
//!
//! Edges: an absent object is read like an empty one (its fields fall back);
//! when a value is no object at all, that is the one error, and the required
//! fields inside it are not complained about as well.

use std::fmt::{self, Write as _};

use super::document::Node;
use super::errors::{ConfigError, ConfigErrors, found, quoted};

/// Keys farther apart than this are not offered as "did you mean".
const MAX_TYPOS: usize = 2;

/// Longer keys are no misspelling of ours.
const MAX_KEY_CHARS: usize = 40;

/// Where a value stands, as a list towards the root.
#[derive(Clone, Copy)]
pub(super) struct Path<'a> {
    parent: Option<&'a Self>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl Path<'_> {
    pub(super) const ROOT: Path<'static> = Path {
        parent: None,
        step: Step::Root,
    };

    const fn child<'a>(&'a self, step: Step<'a>) -> Path<'a> {
        Path {
            parent: Some(self),
            step,
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            fmt::Display::fmt(parent, f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) if is_plain(key) => {
                if self.parent.is_some_and(|p| !matches!(p.step, Step::Root)) {
                    f.write_char('.')?;
                }
                f.write_str(key)
            }
            Step::Key(key) => write!(f, "[{}]", quoted(key)),
        }
    }
}

fn is_plain(key: &str) -> bool {
    (1..=MAX_KEY_CHARS).contains(&key.len())
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// One JSON object being read.
pub(super) struct Section<'a> {
    entries: &'a [(String, Node)],
    path: Path<'a>,
    errors: &'a mut ConfigErrors,
    asked: Vec<&'static str>,
    /// The value was no object: already reported, nothing in it can be missing.
    is_lost: bool,
}

impl<'a> Section<'a> {
    /// Reads `node` as an object at `path`; `expected` says what should be there.
    pub(super) fn read<T>(
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
                    Step::Root => "document".to_owned(),
                    _ => path.to_string(),
                };
                errors.push(ConfigError::new(
                    shown,
                    found(other),
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
        };
        let value = read(&mut section);
        section.refuse_unknown_keys();
        value
    }

    /// The object at `key`; an absent one is read like an empty one.
    pub(super) fn object<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Section<'_>) -> T,
    ) -> T {
        let node = self.take(key);
        let is_lost = self.is_lost;
        Self::read(
            node,
            self.path.child(Step::Key(key)),
            &mut *self.errors,
            |section| {
                section.is_lost |= is_lost;
                read(section)
            },
        )
    }

    /// The list of objects at `key`; absent means empty.
    pub(super) fn objects<T>(
        &mut self,
        key: &'static str,
        max_items: usize,
        mut read: impl FnMut(&mut Section<'_>) -> T,
    ) -> Vec<T> {
        let items = self.list(key, max_items).unwrap_or_default();
        let path = self.path.child(Step::Key(key));
        let mut values = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = path.child(Step::Index(index));
            values.push(Self::read(Some(item), path, &mut *self.errors, &mut read));
        }
        values
    }

    /// The list of texts at `key`, each through `parse`; `None` when absent.
    pub(super) fn texts<T>(
        &mut self,
        key: &'static str,
        max_items: usize,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.list(key, max_items)?;
        let path = self.path.child(Step::Key(key));
        let mut values = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match item {
                Node::Text(text) if let Some(value) = parse(text) => values.push(value),
                other => self.errors.push(ConfigError::new(
                    path.child(Step::Index(index)).to_string(),
                    found(other),
                    expected.to_owned(),
                )),
            }
        }
        Some(values)
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
                    found(other),
                    format!("a list of at most {max_items} entries"),
                );
                None
            }
        }
    }

    /// The value at `key` through `parse`; `None` when absent or wrong, and
    /// then it has been reported with `expected`.
    pub(super) fn value<T>(
        &mut self,
        key: &'static str,
        expected: &dyn fmt::Display,
        parse: impl FnOnce(&Node) -> Option<T>,
    ) -> Option<T> {
        let node = self.take(key)?;
        let value = parse(node);
        if value.is_none() {
            self.report(key, found(node), expected.to_string());
        }
        value
    }

    /// Like [`Self::value`] for a text.
    pub(super) fn text<T>(
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

    /// Whether `key` stands in the document.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(entry, _)| entry == key)
    }

    /// Reports that `key` is missing.
    pub(super) fn require(&mut self, key: &'static str, expected: &dyn fmt::Display) {
        if !self.is_lost {
            self.report(key, "nothing".to_owned(), expected.to_string());
        }
    }

    /// Reports the value at `key` though it was readable: it contradicts another.
    pub(super) fn refuse(&mut self, key: &'static str, expected: String) {
        let node = self.entries.iter().find(|(entry, _)| entry == key);
        let found = node.map_or_else(|| "nothing".to_owned(), |(_, node)| found(node));
        self.report(key, found, expected);
    }

    /// Reports this section as a whole.
    pub(super) fn refuse_whole(&mut self, found: String, expected: String) {
        if !self.is_lost {
            self.errors
                .push(ConfigError::new(self.path.to_string(), found, expected));
        }
    }

    /// How many errors there are so far: equal before and after means that
    /// what was read in between can be compared with each other.
    pub(super) const fn error_count(&self) -> usize {
        self.errors.total()
    }

    fn report(&mut self, key: &str, found: String, expected: String) {
        self.errors.push(ConfigError::new(
            self.path.child(Step::Key(key)).to_string(),
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
            let found = format!("the key again, with {}", found(again));
            self.report(key, found, "each key once".to_owned());
        }
        Some(first)
    }

    fn refuse_unknown_keys(&mut self) {
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

/// The known key that `key` is most likely a misspelling of.
fn closest(key: &str, known: &[&'static str]) -> Option<&'static str> {
    if key.len() > MAX_KEY_CHARS {
        return None;
    }
    known
        .iter()
        .map(|known| (distance(key, known), *known))
        // A key must keep more than it loses: `a` is not `min`.
        .filter(|(typos, known)| *typos <= MAX_TYPOS && typos.saturating_mul(2) <= known.len())
        .min_by_key(|(typos, _)| *typos)
        .map(|(_, known)| known)
}

/// Levenshtein distance of two short keys, blind to the case of ASCII letters.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, a_byte) in a.bytes().enumerate() {
        let mut diagonal = above;
        let mut left = above.saturating_add(1);
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, b_byte) in row.iter_mut().skip(1).zip(b.bytes()) {
            let replaced =
                diagonal.saturating_add(usize::from(!a_byte.eq_ignore_ascii_case(&b_byte)));
            diagonal = *cell;
            left = replaced.min(left.min(*cell).saturating_add(1));
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits_but_not_case() {
        for (a, b, typos) in [
            ("min", "min", 0),
            ("MIN", "min", 0),
            ("mni", "min", 2),
            ("trip_ratio", "tripRatio", 1),
            ("", "min", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), typos, "{a} {b}");
        }
    }

    #[test]
    fn only_likely_misspellings_are_offered() {
        let known = ["min", "max", "initial"];

        assert_eq!(closest("Max", &known), Some("max"));
        assert_eq!(closest("intial", &known), Some("initial"));
        assert_eq!(closest("a", &known), None);
        assert_eq!(closest("minimum", &known), None);
        assert_eq!(closest(&"min".repeat(1000), &known), None);
    }

    #[test]
    fn paths_read_like_the_document() {
        let upstreams = Path::ROOT.child(Step::Key("upstreams"));
        let rule = upstreams.child(Step::Index(2));
        let odd = rule.child(Step::Key("a b\n"));

        assert_eq!(
            rule.child(Step::Key("limit")).to_string(),
            "upstreams[2].limit"
        );
        assert_eq!(odd.to_string(), r#"upstreams[2]["a b\n"]"#);
    }
}
