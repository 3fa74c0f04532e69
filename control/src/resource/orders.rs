//! Pairs of values that must be in order, as rules in CEL.
//!
//! At the top level a value that is not set has its default, so the rule can
//! say all of it. Under `upstreams` it is inherited, which a rule there cannot
//! see: it compares only what stands there, and core finds the rest.

use serde_json::Value;
use tidegate_core::config::Readable;
use tidegate_core::config::schema::{FIELDS, Values};

use super::rules::rule;

/// Keys of one object, the first at most the second.
struct Order {
    object: &'static str,
    low: &'static str,
    high: &'static str,
}

const ORDERS: [Order; 5] = [
    Order {
        object: "limit",
        low: "min",
        high: "max",
    },
    Order {
        object: "limit",
        low: "min",
        high: "initial",
    },
    Order {
        object: "limit",
        low: "initial",
        high: "max",
    },
    Order {
        object: "limit",
        low: "min",
        high: "maxOpen",
    },
    Order {
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

impl Order {
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

    /// What holds at the top level where the key is not set and that contradicts others, as CEL sees it.
    fn default(&self, key: &str) -> Option<String> {
        match self.values(key)? {
            // An initial limit that is not set is moved into the bounds.
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
