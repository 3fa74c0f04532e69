//! Converts between core's tree and `serde_json`'s.

use serde_json::{Map, Number, Value};
use tidegate_core::config::Node;

/// From this value on, a double cannot represent every integer.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// `value` as a tree for core's reader.
#[must_use]
pub fn node_of(value: &Value) -> Node {
    match value {
        Value::Null => Node::Null,
        Value::Bool(flag) => Node::Bool(*flag),
        Value::Number(number) => number
            .as_u64()
            .map(Node::Whole)
            .or_else(|| number.as_f64().map(Node::Number))
            .unwrap_or(Node::Null),
        Value::String(text) => Node::Text(text.clone()),
        Value::Array(items) => Node::List(items.iter().map(node_of).collect()),
        Value::Object(entries) => Node::Object(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), node_of(value)))
                .collect(),
        ),
    }
}

/// `node` as a `serde_json` value: whole numbers become integers, however they were
/// written, and the last value of a duplicate key wins.
#[must_use]
pub fn value_of(node: &Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(flag) => Value::Bool(*flag),
        Node::Whole(number) => Value::from(*number),
        Node::Number(number) => number_of(*number),
        Node::Text(text) => Value::from(text.as_str()),
        Node::List(items) => Value::Array(items.iter().map(value_of).collect()),
        Node::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, node)| (key.clone(), value_of(node)))
                .collect::<Map<_, _>>(),
        ),
    }
}

fn number_of(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < MAX_EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "an integer below 2^53, which both a double and an i64 can represent"
        )]
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}
