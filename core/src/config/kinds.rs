//! The kinds of fields: which values each accepts, and how errors and the reference describe them.

use std::fmt;
use std::time::Duration;

use super::duration::{Readable, parse_duration};
use crate::criticality::Criticality;
use crate::ratio::Ratio;

/// A row of the reference.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its path from the top of the document; `[]` marks list entries.
    pub path: &'static str,
    /// The values that it accepts.
    pub values: Values,
    /// Whether a rule under `upstreams` may set it too.
    pub is_per_upstream: bool,
    /// What it does.
    pub doc: &'static str,
}

/// The values that a field accepts, and its value when absent.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// `true` or `false`.
    Flag(Flag),
    /// One of some names.
    Choice {
        /// The names.
        names: fn() -> Vec<&'static str>,
        /// The name when absent; `None`: the field is required.
        default: Option<&'static str>,
    },
    /// A fraction.
    Fraction(Fraction),
    /// A whole number.
    Count(WholeNumber),
    /// A whole number that is not set by default.
    Bound(Bound),
    /// A duration.
    Span(Span),
    /// A text.
    Text {
        /// What the text must be.
        expected: &'static str,
        /// `None`: not set.
        default: Option<&'static str>,
    },
    /// A list of whole numbers.
    Numbers(Numbers),
    /// A list of texts.
    Texts {
        /// What an entry must be.
        expected: &'static str,
        /// The list when absent.
        default: &'static [&'static str],
    },
}

/// A switch.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    pub(super) key: &'static str,
    /// When absent.
    pub default: bool,
}

/// An integer and its range, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct WholeNumber {
    pub(super) key: &'static str,
    /// Least.
    pub min: u32,
    /// Greatest.
    pub max: u32,
    /// When absent.
    pub default: u32,
}

/// An integer that may be left out, and its range, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub(super) key: &'static str,
    /// Least.
    pub min: u32,
    /// Greatest.
    pub max: u32,
}

/// A list of integers, and the range of each, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    pub(super) key: &'static str,
    /// Least.
    pub min: u32,
    /// Greatest.
    pub max: u32,
    /// The list when absent.
    pub default: &'static [u32],
}

/// A ratio and its range, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Fraction {
    pub(super) key: &'static str,
    /// Least.
    pub min: Ratio,
    /// Greatest.
    pub max: Ratio,
    /// When absent; `None`: required.
    pub default: Option<Ratio>,
}

/// A duration and its range, both ends included.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub(super) key: &'static str,
    /// Shortest.
    pub min: Duration,
    /// Longest.
    pub max: Duration,
    /// When absent; `None`: required.
    pub default: Option<Duration>,
}

/// A closed set of names.
pub trait Choice: Copy + 'static {
    /// Every value.
    const ALL: &'static [Self];
    /// As written in the document.
    fn name(self) -> &'static str;
}

/// The names of a choice.
#[must_use]
pub fn names<T: Choice>() -> Vec<&'static str> {
    T::ALL.iter().map(|choice| choice.name()).collect()
}

impl Choice for Criticality {
    const ALL: &'static [Self] = &Self::ALL;
    fn name(self) -> &'static str {
        self.name()
    }
}

impl fmt::Display for WholeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.min, self.max)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.min, self.max)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {} to {}", self.min, self.max)
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number from {} to {}", self.min, self.max)
    }
}

impl Span {
    /// A duration in the range; `None` for any other text.
    #[must_use]
    pub fn parse(&self, text: &str) -> Option<Duration> {
        parse_duration(text).filter(|value| (self.min..=self.max).contains(value))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a duration from {} to {} such as \"250ms\"",
            Readable(self.min),
            Readable(self.max)
        )
    }
}

/// Names as an error lists them: `"a", "b" or "c"`.
#[derive(Clone, Copy, Debug)]
pub struct OneOf(
    /// The names.
    pub fn() -> Vec<&'static str>,
);

impl fmt::Display for OneOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = (self.0)();
        for (position, name) in names.iter().enumerate() {
            let lead = match names.len().saturating_sub(position) {
                _ if position == 0 => "",
                1 => " or ",
                _ => ", ",
            };
            write!(f, "{lead}\"{name}\"")?;
        }
        Ok(())
    }
}
