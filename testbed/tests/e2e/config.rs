//! The plugin's document for tests: the smallest one, and the additions of a case.

use serde_json::{Value, json};

/// A document with the objective and `members`.
pub(crate) fn config(members: Value) -> Value {
    let mut config = json!({"slo": {"latency": {"quantile": 0.99, "target": "300ms"}}});
    let fields = config.as_object_mut().unwrap();
    match members {
        Value::Object(members) => fields.extend(members),
        other => panic!("found {other}, expected an object"),
    }
    config
}

/// A fixed limit without a breaker: `limit` requests may be in flight, and the next one is shed.
pub(crate) fn fixed_limit(limit: u32, members: Value) -> Value {
    let mut fixed = config(json!({
        "limit": {"min": limit, "max": limit},
        "breaker": {"enabled": false},
    }));
    let fields = fixed.as_object_mut().unwrap();
    fields.extend(config(members).as_object().unwrap().clone());
    fixed
}

/// A breaker that, once open, stays open for longer than any test.
pub(crate) fn open_for_long(members: Value) -> Value {
    let mut config = config(members);
    let breaker = json!({"minOpen": "5m", "maxOpen": "10m"});
    config
        .as_object_mut()
        .unwrap()
        .insert("breaker".to_owned(), breaker);
    config
}
