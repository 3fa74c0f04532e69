//! The settings of a story of one's own: their names in a link, their ranges, and their words on the page.

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_sim::scenario::AdversaryKind;

/// A setting.
#[derive(Debug, Clone, Serialize)]
pub struct Field {
    /// Its name in a link.
    pub key: &'static str,
    /// What it belongs to.
    pub group: &'static str,
    /// Its words.
    pub label: &'static str,
    /// What a number counts; empty: a plain number.
    pub unit: &'static str,
    /// Which values it may have.
    #[serde(flatten)]
    pub kind: FieldKind,
}

/// Which values a setting may have.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum FieldKind {
    /// A number.
    Number {
        /// The least.
        min: f64,
        /// The greatest.
        max: f64,
        /// The distance between two values; all are multiples of it.
        step: f64,
        /// The value where a link says nothing.
        start: f64,
    },
    /// One of several; the first where a link says nothing.
    Choice {
        /// Names in a link, and words.
        options: Vec<(&'static str, &'static str)>,
    },
}

/// A value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum FieldValue {
    /// A number.
    Number(f64),
    /// The name of a choice.
    Choice(&'static str),
}

impl Field {
    /// The value where a link says nothing.
    #[must_use]
    pub fn start(&self) -> FieldValue {
        match &self.kind {
            FieldKind::Number { start, .. } => FieldValue::Number(*start),
            FieldKind::Choice { options } => {
                FieldValue::Choice(options.first().map_or("", |(name, _)| name))
            }
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// With what is wrong.
    pub fn parse(&self, text: &str) -> Result<FieldValue, String> {
        let key = self.key;
        match &self.kind {
            FieldKind::Number { min, max, .. } => {
                let number = text.parse::<f64>().ok();
                let number = number.filter(|number| (*min..=*max).contains(number));
                let number = number.filter(|number| !self.is_count() || number.fract() == 0.0);
                let number = number.ok_or_else(|| {
                    let what = if self.is_count() {
                        "whole number"
                    } else {
                        "number"
                    };
                    format!("{key}: found {text}, expected a {what} from {min} to {max}")
                })?;
                Ok(FieldValue::Number(number))
            }
            FieldKind::Choice { options } => {
                let found = options.iter().find(|(name, _)| *name == text);
                let (name, _) = found.ok_or_else(|| {
                    let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
                    format!("{key}: found {text}, expected one of {}", names.join(", "))
                })?;
                Ok(FieldValue::Choice(name))
            }
        }
    }

    /// Whether only whole numbers have a meaning.
    fn is_count(&self) -> bool {
        matches!(self.kind, FieldKind::Number { step, .. } if step.fract() == 0.0)
    }
}

impl FieldValue {
    /// The text that reads back as this value.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Number(number) => format!("{number}"),
            Self::Choice(name) => (*name).to_owned(),
        }
    }
}

/// Values of all settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct FieldValues(BTreeMap<&'static str, FieldValue>);

impl FieldValues {
    /// Those of a link that says nothing.
    #[must_use]
    pub fn start() -> Self {
        let fields = all();
        Self(
            fields
                .iter()
                .map(|field| (field.key, field.start()))
                .collect(),
        )
    }

    /// Sets one.
    pub fn set(&mut self, key: &'static str, value: FieldValue) {
        self.0.insert(key, value);
    }

    /// A number by its key.
    #[must_use]
    pub fn number(&self, key: &str) -> f64 {
        match self.0.get(key) {
            Some(FieldValue::Number(number)) => *number,
            _ => 0.0,
        }
    }

    /// A choice by its key.
    #[must_use]
    pub fn choice(&self, key: &str) -> &'static str {
        match self.0.get(key) {
            Some(FieldValue::Choice(name)) => name,
            _ => "",
        }
    }

    /// Those that a link must say, with their texts.
    #[must_use]
    pub fn changed(&self) -> Vec<(&'static str, String)> {
        let start = Self::start();
        let own = self.0.iter();
        own.filter(|(key, value)| start.0.get(*key) != Some(*value))
            .map(|(key, value)| (*key, value.text()))
            .collect()
    }
}

/// The settings in the order of the page.
#[must_use]
pub fn all() -> Vec<Field> {
    let adversaries = std::iter::once(("none", "nobody"));
    let kinds = AdversaryKind::ALL.iter();
    let adversaries = adversaries.chain(kinds.map(|kind| (kind.name(), words(*kind))));
    vec![
        number(
            "Load",
            "len",
            "Length of the run",
            "s",
            [10.0, 120.0, 1.0, 60.0],
        ),
        number(
            "Load",
            "scale",
            "All of the load times",
            "×",
            [0.1, 5.0, 0.1, 1.0],
        ),
        number(
            "Service",
            "slots",
            "Requests it serves at once",
            "slots",
            [1.0, 64.0, 1.0, 16.0],
        ),
        number(
            "Service",
            "service",
            "Time it takes for one, on average",
            "ms",
            [2.0, 1_000.0, 1.0, 40.0],
        ),
        number(
            "Service",
            "spread",
            "Spread of that time (sigma of a log-normal law)",
            "",
            [0.0, 1.5, 0.1, 0.5],
        ),
        number(
            "Service",
            "body",
            "Time to send a response's body (0: no body)",
            "ms",
            [0.0, 5_000.0, 10.0, 0.0],
        ),
        choice(
            "Service",
            "holds",
            "While the body is sent, the slot is",
            vec![("no", "free"), ("yes", "taken")],
        ),
        number(
            "Service",
            "endpoints",
            "Endpoints that are alike",
            "",
            [1.0, 8.0, 1.0, 1.0],
        ),
        number(
            "Callers",
            "deadline",
            "A caller gives up after",
            "ms",
            [50.0, 10_000.0, 50.0, 1_000.0],
        ),
        number(
            "Callers",
            "retries",
            "Retries after a failure, at most",
            "",
            [0.0, 5.0, 1.0, 0.0],
        ),
        choice(
            "Callers",
            "stubborn",
            "Where the answer says not to retry",
            vec![("no", "they stop"), ("yes", "they retry anyway")],
        ),
        number(
            "Callers",
            "batch",
            "Share of the requests that is batch work (sheddable)",
            "%",
            [0.0, 100.0, 5.0, 0.0],
        ),
        number(
            "What goes wrong",
            "errors",
            "Requests that fail whatever the load",
            "%",
            [0.0, 90.0, 1.0, 0.0],
        ),
        choice(
            "What goes wrong",
            "incident",
            "For a time, the service",
            vec![
                ("none", "works as always"),
                ("slow", "takes three times as long"),
                ("half", "has half of its slots"),
                ("fail", "answers 500 at once"),
                ("hang", "never answers"),
                ("refuse", "refuses connections"),
            ],
        ),
        number(
            "What goes wrong",
            "from",
            "From",
            "s",
            [0.0, 115.0, 1.0, 20.0],
        ),
        number(
            "What goes wrong",
            "lasts",
            "For",
            "s",
            [1.0, 60.0, 1.0, 10.0],
        ),
        choice(
            "What goes wrong",
            "adversary",
            "An adversary",
            adversaries.collect(),
        ),
        number(
            "What goes wrong",
            "harm",
            "It sends, in multiples of the capacity",
            "×",
            [0.1, 5.0, 0.1, 1.0],
        ),
        number(
            "Proxies",
            "proxies",
            "Proxies in front of the service",
            "",
            [1.0, 12.0, 1.0, 1.0],
        ),
        number(
            "Proxies",
            "workers",
            "Workers of each",
            "",
            [1.0, 8.0, 1.0, 2.0],
        ),
        choice(
            "Objective",
            "quantile",
            "Share of the answers that must be in time",
            vec![
                ("0.99", "99 %"),
                ("0.95", "95 %"),
                ("0.9", "90 %"),
                ("0.5", "50 %"),
            ],
        ),
    ]
}

fn number(
    group: &'static str,
    key: &'static str,
    label: &'static str,
    unit: &'static str,
    [min, max, step, start]: [f64; 4],
) -> Field {
    let kind = FieldKind::Number {
        min,
        max,
        step,
        start,
    };
    Field {
        key,
        group,
        label,
        unit,
        kind,
    }
}

fn choice(
    group: &'static str,
    key: &'static str,
    label: &'static str,
    options: Vec<(&'static str, &'static str)>,
) -> Field {
    Field {
        key,
        group,
        label,
        unit: "",
        kind: FieldKind::Choice { options },
    }
}

const fn words(kind: AdversaryKind) -> &'static str {
    match kind {
        AdversaryKind::OverQuota => "sends more than its quota",
        AdversaryKind::CrashingPath => "asks for a path that always fails",
        AdversaryKind::ForgedAgent => "claims to be a health checker",
        AdversaryKind::StalledUpload => "begins uploads that never end",
        AdversaryKind::SlowReader => "reads bodies as slowly as it can",
        AdversaryKind::BulkReset => "cancels what it has just sent",
        AdversaryKind::ShortDeadline => "waits for a few milliseconds only",
        AdversaryKind::ForgedCriticality => "claims to be more important than all others",
        AdversaryKind::ForgedCohort => "has chosen a cohort that is served first",
        AdversaryKind::Flood => "floods, under a cohort of its own",
        AdversaryKind::EndlessRetries => "retries at once and without end",
        AdversaryKind::LyingUpstream => "gets the service to lie: come back in a year",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_where_a_link_says_nothing_is_a_valid_one() {
        for field in all() {
            let start = field.start();
            assert_eq!(field.parse(&start.text()), Ok(start), "{}", field.key);
        }
        assert!(FieldValues::start().changed().is_empty());
    }

    #[test]
    fn what_is_out_of_range_is_refused_with_the_range() {
        let fields = all();
        let slots = fields.iter().find(|field| field.key == "slots").unwrap();
        assert_eq!(slots.parse("8"), Ok(FieldValue::Number(8.0)));
        for wrong in ["0", "65", "1.5", "many", "NaN"] {
            let fault = slots.parse(wrong).unwrap_err();
            assert!(fault.ends_with("a whole number from 1 to 64"), "{fault}");
        }
        let incident = fields.iter().find(|field| field.key == "incident").unwrap();
        assert!(incident.parse("explode").is_err());
    }
}
