//! The plugin's document for tests: the smallest one and what a case adds.

use serde_json::{Value, json};

/// The objective and these members.
pub(crate) fn config(members: Value) -> Value {
    let mut config = json!({"slo": {"latency": {"quantile": 0.99, "target": "300ms"}}});
    let fields = config.as_object_mut().unwrap();
    match members {
        Value::Object(members) => fields.extend(members),
        other => panic!("found {other}, expected an object"),
    }
    config
}

/// A limit that does not adapt, without a breaker: so many requests in flight, and then the next is shed.
pub(crate) fn fixed_limit(limit: u32, members: Value) -> Value {
    let mut fixed = config(json!({
        "limit": {"min": limit, "max": limit},
        "breaker": {"enabled": false},
    }));
    let fields = fixed.as_object_mut().unwrap();
    fields.extend(config(members).as_object().unwrap().clone());
    fixed
}

/// A breaker that, once open, stays so for longer than any test lasts.
pub(crate) fn open_for_long(members: Value) -> Value {
    let mut config = config(members);
    let breaker = json!({"minOpen": "5m", "maxOpen": "10m"});
    config
        .as_object_mut()
        .unwrap()
        .insert("breaker".to_owned(), breaker);
    config
}
