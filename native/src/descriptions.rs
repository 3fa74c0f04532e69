//! What Envoy is told of each metric, in few bytes: a thousand upstreams have ten thousand metrics.
//!
//! The names of metrics with those of their labels are kept once each, and so are the first values of labels, mostly upstreams, and all
//! combinations of other values. A description has their numbers.

use core::hash::BuildHasher as _;
use std::collections::HashMap;
use std::hash::RandomState;

use tidegate_worker::api::MetricKind;
use tidegate_worker::metrics::table::{OPEN_INTERVAL, PREFIX, STREAMS};

/// Most labels of a metric: cluster, route, one of its own, and the plugin.
const MOST_VALUES: usize = 4;
/// Descriptions are kept in chunks of so many: to double the room of all would leave half of it empty.
const CHUNK: usize = 1024;
/// Gauges that Envoy is first told of when they are more than 0, because most upstreams never have one that is.
const SELDOM: [&str; 2] = [STREAMS.name, OPEN_INTERVAL.name];

/// A metric's name, taken apart: `<label>=.=<value>;.;` for each label, then the metric.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NameParts<'a> {
    metric: &'a str,
    labels: Vec<&'a str>,
    /// Those of the labels.
    pub(crate) values: Vec<&'a str>,
}

impl<'a> NameParts<'a> {
    pub(crate) fn of(name: &'a str) -> Self {
        let (mut labels, mut values, mut rest) = (Vec::new(), Vec::new(), name);
        while let Some((label, more)) = rest.split_once("=.=")
            && let Some((value, after)) = more.split_once(";.;")
        {
            labels.push(label);
            values.push(value);
            rest = after;
        }
        Self {
            metric: rest,
            labels,
            values,
        }
    }

    /// How a metric with these labels is found.
    pub(crate) fn signature(&self) -> String {
        signature(self.metric, &self.labels)
    }

    fn is_seldom(&self) -> bool {
        let name = self.metric.strip_prefix(PREFIX);
        name.is_some_and(|name| SELDOM.contains(&name))
    }
}

/// How a metric with these labels is found.
pub(crate) fn signature(metric: &str, labels: &[&str]) -> String {
    format!("{metric} {}", labels.join(" "))
}

/// What Envoy is told of one metric, in twelve bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    first: u32,
    others: u32,
    signature: u16,
    pub(crate) kind: MetricKind,
    /// Whether it is one of [`SELDOM`].
    is_seldom: bool,
}

impl Description {
    const fn names(self) -> Names {
        Names {
            first: self.first,
            others: self.others,
            signature: self.signature,
        }
    }

    /// Whether Envoy, which does not know of it, need not be told that it has this value.
    pub(crate) const fn waits_at(&self, value: u64) -> bool {
        self.is_seldom && value == 0
    }
}

/// The numbers of texts. The first value is mostly the upstream, so in their order those of a new upstream are the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Names {
    /// Of the first label's value, or [`NO_TEXT`].
    first: u32,
    /// Of the others' values with [`BETWEEN_VALUES`] between them, or [`NO_TEXT`].
    others: u32,
    signature: u16,
}

const NO_TEXT: u32 = u32::MAX;
/// No value has this character: it would separate labels in names.
const BETWEEN_VALUES: char = '\0';

/// All descriptions, in the order of their metrics' numbers.
#[derive(Debug, Default)]
pub(crate) struct Descriptions {
    signatures: Texts,
    values: Texts,
    chunks: Vec<Vec<Description>>,
    /// The numbers of all metrics, in the order of their names.
    by_names: Vec<u32>,
}

impl Descriptions {
    pub(crate) const fn len(&self) -> usize {
        self.by_names.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Description> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    /// How a metric is found in a configuration.
    pub(crate) fn signature(&self, of: &Description) -> &str {
        let signature = self.signatures.get(of.signature.into());
        signature.unwrap_or_default()
    }

    /// The values of its labels.
    pub(crate) fn values(&self, of: &Description) -> impl Iterator<Item = &str> {
        let others = self.values.get(of.others).into_iter();
        let others = others.flat_map(|others| others.split(BETWEEN_VALUES));
        self.values.get(of.first).into_iter().chain(others)
    }

    /// The number of the metric with this name. If there is none, and `has_room` says yes to the next number, it gets that. True
    /// for one that is new.
    pub(crate) fn number(
        &mut self,
        kind: MetricKind,
        name: &str,
        has_room: impl FnOnce(u32) -> bool,
    ) -> Option<(u32, bool)> {
        let parts = NameParts::of(name);
        let is_seldom = parts.is_seldom();
        let names = self.names(&parts)?;
        let names_of = |number: &u32| {
            let at = usize::try_from(*number).ok();
            at.and_then(|at| self.get(at)).map(|known| known.names())
        };
        let found = self
            .by_names
            .binary_search_by(|number| names_of(number).cmp(&Some(names)));
        let place = match found {
            Ok(place) => return Some((*self.by_names.get(place)?, false)),
            Err(place) => place,
        };
        let number = u32::try_from(self.len()).ok()?;
        if !has_room(number) {
            return None;
        }
        if self.len() == self.by_names.capacity() {
            self.by_names.reserve_exact(CHUNK);
        }
        self.by_names.insert(place, number);
        let Names {
            first,
            others,
            signature,
        } = names;
        self.push(Description {
            first,
            others,
            signature,
            kind,
            is_seldom,
        });
        Some((number, true))
    }

    fn push(&mut self, description: Description) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(description),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(description);
                self.chunks.push(chunk);
            }
        }
    }

    /// `None` if there are too many labels or texts.
    fn names(&mut self, parts: &NameParts<'_>) -> Option<Names> {
        if parts.values.len() > MOST_VALUES {
            return None;
        }
        let signature = self.signatures.number(&parts.signature())?;
        let mut names = Names {
            signature: u16::try_from(signature).ok()?,
            first: NO_TEXT,
            others: NO_TEXT,
        };
        if let Some((first, others)) = parts.values.split_first() {
            names.first = self.values.number(first)?;
            if !others.is_empty() {
                let others = others.join(BETWEEN_VALUES.encode_utf8(&mut [0; 4]));
                names.others = self.values.number(&others)?;
            }
        }
        Some(names)
    }
}

/// Texts by number.
#[derive(Debug, Default)]
struct Texts {
    all: Vec<Box<str>>,
    /// The hasher has random keys, so nobody can choose texts that have one hash, and by chance it would take billions of them.
    by_hash: HashMap<u64, u32>,
    hasher: RandomState,
}

impl Texts {
    fn get(&self, number: u32) -> Option<&str> {
        let text = self.all.get(usize::try_from(number).ok()?)?;
        Some(text)
    }

    fn number(&mut self, text: &str) -> Option<u32> {
        let next = u32::try_from(self.all.len()).ok()?;
        let known = self.by_hash.entry(self.hasher.hash_one(text));
        let number = *known.or_insert(next);
        if number == next {
            self.all.push(text.into());
        }
        (number != NO_TEXT).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_metric_is_what_its_name_says() {
        let mut all = Descriptions::default();
        let name = "tidegate_upstream=.=web;.;tidegate_reason=.=limit;.;tidegate_shed";
        let other = "tidegate_upstream=.=web;.;tidegate_streams";
        let mut number = |name| all.number(MetricKind::Gauge, name, |_| true);
        assert_eq!(number(name), Some((0, true)));
        assert_eq!(number(other), Some((1, true)));
        assert_eq!(number(name), Some((0, false)));
        let (first, second) = (all.get(0).unwrap(), all.get(1).unwrap());
        let signature = "tidegate_shed tidegate_upstream tidegate_reason";
        assert_eq!(all.signature(first), signature);
        assert_eq!(all.values(first).collect::<Vec<_>>(), ["web", "limit"]);
        assert_eq!(all.values(second).collect::<Vec<_>>(), ["web"]);
        assert_eq!(size_of::<Description>(), 12);
        let waits = [first, second].map(|it| [0, 1].map(|value| it.waits_at(value)));
        assert_eq!(waits, [[false, false], [true, false]]);
    }

    #[test]
    fn without_room_and_with_too_many_labels_there_is_no_number() {
        let mut all = Descriptions::default();
        assert_eq!(all.number(MetricKind::Counter, "a", |_| false), None);
        let labels = "l=.=v;.;".repeat(MOST_VALUES + 1);
        let name = format!("{labels}a");
        assert_eq!(all.number(MetricKind::Counter, &name, |_| true), None);
        assert_eq!(all.len(), 0);
    }
}
