//! Reading by schema: one method for each kind of field.
//!
//! If the key is absent, a rule takes the inherited value, and else the default.
//! A required field has neither, and its absence is an error.

use std::fmt;
use std::time::Duration;

use super::document::Node;
use super::kinds::{Bound, Choice, Flag, Fraction, Numbers, OneOf, Span, WholeNumber, names};
use super::number_set::NumberSet;
use super::reader::Section;
use super::schema::MAX_ENTRIES;
use crate::ratio::Ratio;

/// The expected value of a required field.
struct Required<'a>(&'a dyn fmt::Display);

impl fmt::Display for Required<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (the objective has no default)", self.0)
    }
}

impl Section<'_> {
    pub(super) fn flag(&mut self, flag: Flag, inherited: Option<bool>) -> bool {
        self.value(flag.key, &"true or false", |node| match node {
            Node::Bool(value) => Some(*value),
            _ => None,
        })
        .or(inherited)
        .unwrap_or(flag.default)
    }

    pub(super) fn count(&mut self, count: WholeNumber, inherited: Option<u32>) -> u32 {
        self.value(count.key, &count, |node| {
            whole(node).filter(|value| (count.min..=count.max).contains(value))
        })
        .or(inherited)
        .unwrap_or(count.default)
    }

    pub(super) fn bound(&mut self, bound: Bound, inherited: Option<u32>) -> Option<u32> {
        self.value(bound.key, &bound, |node| {
            whole(node).filter(|value| (bound.min..=bound.max).contains(value))
        })
        .or(inherited)
    }

    pub(super) fn numbers(&mut self, numbers: Numbers, inherited: NumberSet) -> NumberSet {
        let mut set = NumberSet::empty(numbers.min);
        let is_there = self.entries(numbers.key, MAX_ENTRIES, &numbers, &mut |node| {
            let number = whole(node).filter(|it| (numbers.min..=numbers.max).contains(it));
            number.map(|number| set.add(number)).is_some()
        });
        if is_there { set } else { inherited }
    }

    pub(super) fn fraction(&mut self, fraction: Fraction, inherited: Option<Ratio>) -> Ratio {
        let read = self.value(fraction.key, &fraction, |node| {
            number(node)
                .and_then(Ratio::new)
                .filter(|value| (fraction.min..=fraction.max).contains(value))
        });
        let fallback = inherited.or(fraction.default);
        if fallback.is_none() && !self.has(fraction.key) {
            self.require(fraction.key, &Required(&fraction));
        }
        read.or(fallback).unwrap_or(fraction.min)
    }

    pub(super) fn span(&mut self, span: Span, inherited: Option<Duration>) -> Duration {
        let read = self.text(span.key, &span, |text| span.parse(text));
        let fallback = inherited.or(span.default);
        if fallback.is_none() && !self.has(span.key) {
            self.require(span.key, &Required(&span));
        }
        read.or(fallback).unwrap_or(span.min)
    }

    /// Like [`Self::choice`], with a default.
    pub(super) fn choice_or<T: Choice>(
        &mut self,
        (key, default): (&'static str, T),
        inherited: Option<T>,
    ) -> T {
        self.choice(key).or(inherited).unwrap_or(default)
    }

    /// One of a closed set of names; `None` when absent or wrong.
    pub fn choice<T: Choice>(&mut self, key: &'static str) -> Option<T> {
        self.text(key, &OneOf(names::<T>), |text| {
            T::ALL.iter().copied().find(|choice| choice.name() == text)
        })
    }
}

fn number(node: &Node) -> Option<f64> {
    match node {
        #[expect(
            clippy::cast_precision_loss,
            reason = "every range ends far below 2^53, where the cast is exact"
        )]
        Node::Whole(value) => Some(*value as f64),
        Node::Number(value) => Some(*value),
        _ => None,
    }
}

/// An integer, which may be written as `20.0` or `2e1`: control planes carry this
/// document in a protobuf `Struct`, and all numbers in it are doubles.
fn whole(node: &Node) -> Option<u32> {
    match node {
        Node::Whole(value) => u32::try_from(*value).ok(),
        Node::Number(value)
            if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(value) =>
        {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the guard keeps to integers from 0 to u32::MAX"
            )]
            Some(*value as u32)
        }
        _ => None,
    }
}
