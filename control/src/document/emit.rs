//! Writes JSON values as readable YAML.
//!
//! Block style, two spaces per level. A text is quoted only where it would be
//! read as something else; JSON's quotes are used, which YAML reads the same way.
//! The keys that open a Kubernetes object come first, the rest is sorted.

use serde_json::{Map, Value};
use tidegate_core::config::Node;

use super::scalar::plain;

/// The usual order of the first keys of a Kubernetes object.
const FIRST_KEYS: [&str; 5] = ["apiVersion", "kind", "metadata", "name", "spec"];

/// `value` as one YAML document, with a final line break.
#[must_use]
pub fn yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(entries) if !entries.is_empty() => object(&mut out, entries, 0, true),
        Value::Array(items) if !items.is_empty() => list(&mut out, items, 0),
        _ => {
            scalar(&mut out, value);
            out.push('\n');
        }
    }
    out
}

/// Writes an object. `is_started`: the first entry continues the current line.
fn object(out: &mut String, entries: &Map<String, Value>, indent: usize, is_started: bool) {
    let mut sorted: Vec<(&String, &Value)> = entries.iter().collect();
    sorted.sort_by_key(|(key, _)| {
        let first = FIRST_KEYS.iter().position(|first| first == key);
        (first.unwrap_or(FIRST_KEYS.len()), *key)
    });
    for (position, (key, value)) in sorted.into_iter().enumerate() {
        if position > 0 || !is_started {
            pad(out, indent);
        }
        text(out, key);
        out.push(':');
        below(out, value, indent);
    }
}

fn list(out: &mut String, items: &[Value], indent: usize) {
    for item in items {
        pad(out, indent);
        out.push('-');
        match item {
            Value::Object(entries) if !entries.is_empty() => {
                out.push(' ');
                object(out, entries, indent.saturating_add(2), true);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                list(out, items, indent.saturating_add(2));
            }
            _ => {
                out.push(' ');
                scalar(out, item);
                out.push('\n');
            }
        }
    }
}

/// Writes the value of a key. A list has the indentation of its key.
fn below(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            out.push('\n');
            object(out, entries, indent.saturating_add(2), false);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            list(out, items, indent);
        }
        _ => {
            out.push(' ');
            scalar(out, value);
            out.push('\n');
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn scalar(out: &mut String, value: &Value) {
    match value {
        Value::String(value) => text(out, value),
        // Numbers, booleans, null, and empty collections.
        _ => out.push_str(&value.to_string()),
    }
}

fn text(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        out.push_str(&Value::from(text).to_string());
    }
}

/// Whether `text` needs no quotes, not even for readers of YAML 1.1.
fn is_plain(text: &str) -> bool {
    /// Booleans of YAML 1.1.
    const BOOLEANS: [&str; 6] = ["y", "n", "yes", "no", "on", "off"];
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "/._".contains(c));
    let has_only = |c: char| c.is_ascii_graphic() || c == ' ';
    starts_well
        && text.chars().all(has_only)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([' ', ':'])
        && !text.starts_with("---")
        && !text.starts_with("...")
        // In YAML 1.1, 2026-01-31 is a date and 1:30 a number.
        && !(text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['-', ':', '_']))
        && !BOOLEANS.contains(&text.to_ascii_lowercase().as_str())
        && plain(text) == Node::Text(text.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::document::{documents, value_of};

    #[test]
    fn objects_look_like_a_manifest() {
        let value = json!({
            "spec": {"limits": [{"max": 1, "a": {"b": "c"}}, [1, [2]], "x", {}], "none": [], "at": "1:30"},
            "kind": "BreakerPolicy", "apiVersion": "tidegate.dev/v1alpha1", "metadata": {"name": "a b"},
        });

        let expected = "\
apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata:
  name: a b
spec:
  at: \"1:30\"
  limits:
  - a:
      b: c
    max: 1
  -
    - 1
    -
      - 2
  - x
  - {}
  none: []
";
        assert_eq!(yaml(&value), expected);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            "[ -~]{0,8}",
            "\\PC{0,4}",
            prop::sample::select(vec![
                "",
                "~",
                "null",
                "true",
                "yes",
                "0x1",
                "1e3",
                "-",
                "---",
                "...",
                "a: b",
                "a #b",
                "#",
                "a\nb",
                "\t",
                "*a",
                "&a",
                "!a",
                "? a",
                "2026-01-31",
                "1:30",
                "{",
                "[",
                "'",
                "\"",
                "@",
            ])
            .prop_map(str::to_owned),
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e6..1e6).prop_map(|value: f64| Value::from(value)),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_values_are_read_back_unchanged(value in any_value()) {
            let text = yaml(&value);

            let (documents, malformed) = documents(text.as_bytes());

            prop_assert_eq!(malformed, None, "{}", text);
            let read = documents.first().map_or(Value::Null, |document| value_of(document.root()));
            prop_assert_eq!(crate::document::canonical(&wrap(read)), crate::document::canonical(&wrap(value)), "{}", text);
        }
    }

    fn wrap(value: Value) -> Map<String, Value> {
        [("value".to_owned(), value)].into_iter().collect()
    }
}
