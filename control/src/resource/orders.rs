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

const ORDERS: [Order; 4] = [
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
            let (value, default) = self.value_and_default(key);
            // An initial limit that is not set is moved into the bounds.
            if is_top_level && key != "initial" {
                sides.push(format!("(has(self.{key}) ? {value} : {default})"));
            } else {
                alternatives.push(format!("!has(self.{key})"));
                sides.push(value);
            }
        }
        alternatives.push(sides.join(" <= "));
        alternatives.join(" || ")
    }

    /// The value of a key and its default, both as CEL sees them.
    fn value_and_default(&self, key: &str) -> (String, String) {
        let path = format!("{}.{key}", self.object);
        let field = FIELDS.iter().find(|field| field.path == path);
        match field.map(|field| field.values) {
            Some(Values::Span(span)) => (
                format!("duration(self.{key})"),
                format!("duration('{}')", Readable(span.default.unwrap_or(span.min))),
            ),
            Some(Values::Count(count)) => (format!("self.{key}"), count.default.to_string()),
            _ => (format!("self.{key}"), format!("self.{key}")),
        }
    }
}
