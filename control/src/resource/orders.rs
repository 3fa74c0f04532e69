//! CEL rules for pairs of values that must be in order.
//!
//! At the top level an unset value has its default, so a rule can check it.
//! Under `upstreams` it is inherited, which a rule cannot see there: the rule
//! compares only what is set, and core checks the rest.

use serde_json::Value;
use tidegate_core::config::Readable;
use tidegate_core::config::schema::{FIELDS, Values};

use super::rules::rule;

/// Two keys of one object: the value of `low` is at most that of `high`.
struct KeyOrder {
    object: &'static str,
    low: &'static str,
    high: &'static str,
}

const ORDERS: [KeyOrder; 5] = [
    KeyOrder {
        object: "limit",
        low: "min",
        high: "max",
    },
    KeyOrder {
        object: "limit",
        low: "min",
        high: "initial",
    },
    KeyOrder {
        object: "limit",
        low: "initial",
        high: "max",
    },
    KeyOrder {
        object: "limit",
        low: "min",
        high: "maxOpen",
    },
    KeyOrder {
        object: "breaker",
        low: "minOpen",
        high: "maxOpen",
    },
];

/// The rules for `object`, at the top level or in a rule under `upstreams`.
pub(super) fn rules(object: &str, is_top_level: bool) -> Vec<Value> {
    ORDERS
        .iter()
        .filter(|order| order.object == object)
        .map(|order| {
            let cel = order.cel(is_top_level);
            let (low, high) = (order.low, order.high);
            rule(
                &cel,
                &format!("{object}.{high} must be at least {object}.{low}"),
            )
        })
        .collect()
}

impl KeyOrder {
    fn cel(&self, is_top_level: bool) -> String {
        let mut sides: Vec<String> = Vec::new();
        let mut alternatives: Vec<String> = Vec::new();
        for key in [self.low, self.high] {
            let value = self.value(key);
            match self.default(key).filter(|_| is_top_level) {
                Some(default) => sides.push(format!("(has(self.{key}) ? {value} : {default})")),
                None => {
                    alternatives.push(format!("!has(self.{key})"));
                    sides.push(value);
                }
            }
        }
        alternatives.push(sides.join(" <= "));
        alternatives.join(" || ")
    }

    /// The value of a key, as CEL sees it.
    fn value(&self, key: &str) -> String {
        match self.values(key) {
            Some(Values::Span(_)) => format!("duration(self.{key})"),
            _ => format!("self.{key}"),
        }
    }

    /// The default at the top level in CEL, if it can contradict other values.
    fn default(&self, key: &str) -> Option<String> {
        match self.values(key)? {
            // The default of the initial limit is clamped to the bounds.
            Values::Count(_) if key == "initial" => None,
            Values::Count(count) => Some(count.default.to_string()),
            Values::Span(span) => span
                .default
                .map(|default| format!("duration('{}')", Readable(default))),
            _ => None,
        }
    }

    fn values(&self, key: &str) -> Option<Values> {
        let path = format!("{}.{key}", self.object);
        let field = FIELDS.iter().find(|field| field.path == path);
        field.map(|field| field.values)
    }
}
