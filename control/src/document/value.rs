//! Between core's tree and `serde_json`'s.

use serde_json::{Map, Number, Value};
use tidegate_core::config::Node;

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

/// `node` as `serde_json` has it; of a key that stands twice the last.
#[must_use]
pub fn value_of(node: &Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(flag) => Value::Bool(*flag),
        Node::Whole(number) => Value::from(*number),
        Node::Number(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
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
