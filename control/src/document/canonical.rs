//! Canonical JSON: documents with the same meaning have the same bytes.
//!
//! The version of a configuration is a hash of its bytes, so equal
//! configurations must have equal bytes: sorted keys, no blanks, and whole
//! numbers without a fraction (a protobuf `Struct` turns `20` into `20.0`).
//! It is written by hand because the order of `serde_json`'s maps depends on a
//! feature that any crate of the build may enable.

use serde_json::{Map, Number, Value};

/// From this value on, a double cannot represent every integer.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// `object` as canonical JSON.
#[must_use]
pub fn canonical(object: &Map<String, Value>) -> String {
    let mut out = String::new();
    write_object(&mut out, object);
    out
}

fn write_object(out: &mut String, object: &Map<String, Value>) {
    let mut entries: Vec<(&String, &Value)> = object.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    out.push('{');
    for (position, (key, value)) in entries.into_iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        write_text(out, key);
        out.push(':');
        write(out, value);
    }
    out.push('}');
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Object(object) => write_object(out, object),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::String(text) => write_text(out, text),
        Value::Number(number) => write_number(out, number),
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push_str(&Value::from(text).to_string());
}

fn write_number(out: &mut String, number: &Number) {
    match number.as_f64() {
        Some(value) if number.is_f64() && value.fract() == 0.0 && value.abs() < MAX_EXACT => {
            // Adding zero turns -0.0 into 0.0.
            out.push_str(&format!("{:.0}", value + 0.0));
        }
        _ => out.push_str(&number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical_of(text: &str) -> String {
        canonical(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn equal_documents_have_equal_bytes() {
        for (a, b) in [
            (
                r#"{"b":1,"a":{"d":2,"c":3}}"#,
                r#"{"a":{"c":3,"d":2},"b":1}"#,
            ),
            (r#"{"a": 20.0}"#, r#"{"a":20}"#),
            (r#"{"a": 5e-1}"#, r#"{"a":0.5}"#),
            (r#"{"a": -0.0}"#, r#"{"a":0}"#),
            (r#"{"a": "\u00fc\/"}"#, r#"{"a":"ü/"}"#),
        ] {
            assert_eq!(canonical_of(a), canonical_of(b), "{a}");
        }
    }

    #[test]
    fn lists_keep_their_order() {
        assert_eq!(
            canonical_of(r#"{"a": [2, 1, {"c": null, "b": true}]}"#),
            r#"{"a":[2,1,{"b":true,"c":null}]}"#
        );
    }
}
