//! Names with `*` for any text, matched in linear time.
//!
//! `*` stands for any text, including an empty one, dots and slashes. Every
//! other character matches itself, and there is no escape. A pattern without
//! `*` must equal the whole name. Since `*` is the only wildcard, no match
//! is missed if each piece is matched at its leftmost place. So one pass over
//! the name suffices, and no pattern causes backtracking.

use std::fmt;

/// Longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 512;

/// A checked pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern(Box<str>);

impl Pattern {
    /// A pattern of 1 to 512 bytes without control characters, else `None`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.len() <= MAX_PATTERN_BYTES;
        (fits && !text.chars().any(char::is_control)).then(|| Self(text.into()))
    }

    /// A host name: lower-case letters, digits, dots, hyphens and underscores.
    pub(super) fn host(text: &str) -> Option<Self> {
        let is_host_byte =
            |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'*');
        Self::parse(text).filter(|_| text.bytes().all(is_host_byte))
    }

    /// A path without its query: starts with `/` or `*`.
    pub(super) fn path(text: &str) -> Option<Self> {
        let is_path = text.starts_with(['/', '*']) && !text.contains(['?', '#', ' ']);
        Self::parse(text).filter(|_| is_path)
    }

    /// Whether `name` matches. The time is linear in both lengths, and nothing is
    /// allocated.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let Some((prefix, rest)) = self.0.split_once('*') else {
            return *self.0 == *name;
        };
        let (middle, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
        let Some(mut name) = name
            .strip_prefix(prefix)
            .and_then(|name| name.strip_suffix(suffix))
        else {
            return false;
        };
        for piece in middle.split('*') {
            match name.split_once(piece) {
                Some((_, after)) => name = after,
                None => return false,
            }
        }
        true
    }

    /// The text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The part of a path that patterns match: without query and fragment.
pub(super) fn without_query(path: &str) -> &str {
    path.split(['?', '#']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(name)
    }

    #[test]
    fn a_pattern_without_star_is_compared_whole() {
        assert!(matches("payments", "payments"));
        assert!(!matches("payments", "payments.shop"));
        assert!(!matches("payments", ""));
    }

    #[test]
    fn a_star_stands_for_any_text_even_an_empty_one() {
        for (pattern, name) in [
            ("*", ""),
            ("*", "a.b/c"),
            ("payments.*", "payments.shop.svc"),
            ("*.shop", "payments.shop"),
            ("a*c", "ac"),
            ("a*b*c", "a-b-b-c"),
            ("*b*", "abc"),
            ("***", "x"),
            ("a**c", "abc"),
            ("*aab", "aaab"),
            ("a*a", "aa"),
            ("*ab*ab*", "abab"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn the_pieces_may_not_overlap_or_change_order() {
        for (pattern, name) in [
            ("a*a", "a"),
            ("ab*ba", "aba"),
            ("a*b*c", "acb"),
            ("*ab*ab*", "aab"),
            ("payments.*", "payments"),
            ("*.shop", "payments.shop.svc"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_do_not_backtrack() {
        let name = "a".repeat(100_000);
        let pattern = format!("{}b", "a*".repeat(200));

        // With backtracking this would not end.
        assert!(!matches(&pattern, &name));
    }

    #[test]
    fn other_dialects_are_not_host_patterns() {
        for text in [
            "",
            "payments.[a-z]+",
            "Payments",
            "a b",
            "a?c",
            "^a$",
            "a/b",
            "a\n",
            "\u{fc}",
        ] {
            assert_eq!(Pattern::host(text), None, "{text:?}");
        }
        assert!(Pattern::host("payments-2_x.*").is_some());
    }

    #[test]
    fn the_query_is_not_part_of_a_path() {
        assert_eq!(without_query("/a?b=/c"), "/a");
        assert_eq!(without_query("/a"), "/a");
        assert!(Pattern::path("/a?b").is_none());
        assert!(Pattern::path("a").is_none());
    }
}
