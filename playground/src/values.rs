//! The values of all settings.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::field::FieldValue;
use crate::table;

/// Values of all settings.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct FieldValues(BTreeMap<&'static str, FieldValue>);

impl FieldValues {
    /// The defaults.
    #[must_use]
    pub fn start() -> Self {
        let fields = table::all();
        Self(
            fields
                .iter()
                .map(|field| (field.key, field.start()))
                .collect(),
        )
    }

    /// Sets a value.
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

    /// The values that differ from the defaults, with their texts.
    #[must_use]
    pub fn changed(&self) -> Vec<(&'static str, String)> {
        let start = Self::start();
        let own = self.0.iter();
        own.filter(|(key, value)| start.0.get(*key) != Some(*value))
            .map(|(key, value)| (*key, value.text()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_says_only_what_differs() {
        let mut values = FieldValues::start();
        assert!(values.changed().is_empty());
        values.set("slots", FieldValue::Number(8.0));
        values.set("incident", FieldValue::Choice("hang"));
        let expected = [("incident", "hang".to_owned()), ("slots", "8".to_owned())];
        assert_eq!(values.changed(), expected);
        assert!((values.number("slots") - 8.0).abs() < 1e-12);
        assert_eq!(values.choice("incident"), "hang");
    }
}
