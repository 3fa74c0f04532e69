//! Everything that is wrong with a configuration.
//!
//! A policy is pushed to a thousand proxies, so its author needs the whole list
//! of errors, not only the first. Each error says where it is, what was found and
//! what was expected. The found text comes from outside, so it is shortened and
//! escaped: it can neither flood a log nor forge a line in it.

use std::fmt::{self, Write as _};

/// Longest text, in characters, that an error repeats from the document.
const MAX_FOUND_CHARS: usize = 60;

/// Most errors that are kept; the rest is counted. A document of a million wrong
/// keys must not become a log of a hundred megabytes.
const MAX_ERRORS: usize = 100;

/// One thing wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: found {found}, expected {expected}")]
pub struct ConfigError {
    path: String,
    found: String,
    expected: String,
}

impl ConfigError {
    pub(super) const fn new(path: String, found: String, expected: String) -> Self {
        Self {
            path,
            found,
            expected,
        }
    }

    /// Where: a path such as `upstreams[2].limit.max`, `document` for the
    /// whole, or `line 3, column 14` where the text is not JSON.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What was found there, escaped and at most about 60 characters long.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What was expected there.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

/// Everything wrong with a configuration; never empty when returned.
/// Displayed as one line per error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigErrors {
    errors: Vec<ConfigError>,
    omitted: usize,
}

impl ConfigErrors {
    pub(super) fn one(error: ConfigError) -> Self {
        Self {
            errors: vec![error],
            omitted: 0,
        }
    }

    /// Whether the list is full. Check it before building an error, because
    /// past the cap its text would be thrown away.
    pub(super) const fn is_full(&self) -> bool {
        self.errors.len() >= MAX_ERRORS
    }

    pub(super) fn push(&mut self, error: ConfigError) {
        if self.is_full() {
            self.omit();
        } else {
            self.errors.push(error);
        }
    }

    pub(super) const fn omit(&mut self) {
        self.omitted = self.omitted.saturating_add(1);
    }

    /// The number of errors, including those that were not kept.
    #[must_use]
    pub const fn total(&self) -> usize {
        self.errors.len().saturating_add(self.omitted)
    }

    /// The errors that were kept: the first 100, in the order of the reference.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.errors.iter()
    }
}

impl std::error::Error for ConfigErrors {}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, error) in self.errors.iter().enumerate() {
            if position > 0 {
                f.write_char('\n')?;
            }
            fmt::Display::fmt(error, f)?;
        }
        if self.omitted > 0 {
            write!(f, "\nand {} more", self.omitted)?;
        }
        Ok(())
    }
}

/// `text` in quotes, escaped to printable ASCII and shortened.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    out.push_str(&shortened_to(text, MAX_FOUND_CHARS.saturating_sub(2)));
    out.push('"');
    out
}

/// `text` escaped to printable ASCII and shortened.
pub(super) fn shortened(text: &str) -> String {
    shortened_to(text, MAX_FOUND_CHARS)
}

fn shortened_to(text: &str, max_chars: usize) -> String {
    const ELLIPSIS: &str = "...";
    let mut out = String::new();
    // Where to cut if the text is too long; never inside an escape.
    let mut cut = 0;
    for c in text.chars() {
        // Escaped text is ASCII, so bytes are characters.
        if out.len().saturating_add(ELLIPSIS.len()) <= max_chars {
            cut = out.len();
        }
        match c {
            '\'' => out.push(c),
            _ => out.extend(c.escape_default()),
        }
        if out.len() > max_chars {
            out.truncate(cut);
            out.push_str(ELLIPSIS);
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_at_sixty_characters() {
        let shown = quoted(&"x".repeat(1000));

        assert_eq!(shown, format!("\"{}...\"", "x".repeat(55)));
        assert_eq!(shown.len(), MAX_FOUND_CHARS);
    }

    #[test]
    fn values_of_exactly_sixty_characters_stay_whole() {
        let shown = quoted(&"x".repeat(58));

        assert_eq!(shown, format!("\"{}\"", "x".repeat(58)));
    }

    #[test]
    fn an_escape_is_never_cut_in_two() {
        for lead in 0..12 {
            let shown = quoted(&format!("{}{}", "x".repeat(lead), "\u{202e}".repeat(40)));

            assert!(shown.len() <= MAX_FOUND_CHARS, "{shown}");
            assert!(shown.ends_with("\\u{202e}...\""), "{shown}");
        }
    }

    #[test]
    fn line_ends_and_foreign_letters_cannot_forge_a_log_line() {
        assert_eq!(quoted("a\n\"b\u{1b}\u{fc}'"), r#""a\n\"b\u{1b}\u{fc}'""#);
    }

    #[test]
    fn errors_past_the_cap_are_counted() {
        let mut errors = ConfigErrors::default();
        for n in 0..150 {
            errors.push(ConfigError::new(
                format!("k{n}"),
                "1".to_owned(),
                "2".to_owned(),
            ));
        }

        let text = errors.to_string();

        assert_eq!(errors.total(), 150);
        assert_eq!(text.lines().count(), 101);
        assert!(text.ends_with("\nand 50 more"), "{text}");
    }
}
