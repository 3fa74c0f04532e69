//! The schema of the filter's configuration, generated from core's table of fields.
//!
//! Ranges, choices and meanings come from [`FIELDS`]; this module only translates
//! them to OpenAPI. The API server does not fill in defaults: otherwise a rule
//! under `upstreams` would no longer inherit, and a new version's defaults would
//! have no effect on existing policies. Descriptions state the defaults.
//!
//! Edge cases: where OpenAPI counts characters and core counts bytes, the schema is
//! less strict than core; it never rejects what core accepts.

use serde_json::{Map, Value, json};
use tidegate_core::config::Readable;
use tidegate_core::config::schema::{self, FIELDS, Field, Fraction, Span, Values};

use super::orders;
use super::rules::rule;

/// Longest accepted duration, in characters; longer ones do not occur in practice.
const MAX_DURATION_CHARS: usize = 64;

/// Durations as core reads them: larger units first, each at most once.
const DURATION_PATTERN: &str = r"^([0-9]+(\.[0-9]+)?h)?([0-9]+(\.[0-9]+)?m)?([0-9]+(\.[0-9]+)?s)?([0-9]+(\.[0-9]+)?ms)?([0-9]+(\.[0-9]+)?us)?$";

/// The list of rules for upstreams.
const RULES: &str = "upstreams";

/// The schema of everything in `spec` except the targets.
#[must_use]
pub fn config_schema() -> Map<String, Value> {
    let mut root = object();
    for field in FIELDS {
        let is_required = is_required(&field.values);
        insert(
            &mut root,
            field.path,
            leaf(field, Absent::Default),
            is_required,
        );
    }
    for field in FIELDS.iter().filter(|field| field.is_per_upstream) {
        let path = format!("{RULES}[].{}", field.path);
        insert(&mut root, &path, leaf(field, Absent::Inherited), false);
    }
    let mut root = Value::Object(root);
    for (below, is_top_level) in [("", true), ("/properties/upstreams/items", false)] {
        for object in ["limit", "breaker"] {
            let rules = orders::rules(object, is_top_level);
            let place = format!("{below}/properties/{object}");
            set(&mut root, &place, "x-kubernetes-validations", rules.into());
        }
    }
    let rule = "/properties/upstreams/items";
    set(&mut root, rule, "required", json!(["match"]));
    set(
        &mut root,
        &format!("{rule}/properties/match"),
        "minProperties",
        1.into(),
    );
    // The class and at least one condition.
    let rule = "/properties/criticality/properties/rules/items";
    set(&mut root, rule, "minProperties", 2.into());
    match root {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn object() -> Map<String, Value> {
    let object = [("type", json!("object")), ("properties", json!({}))];
    object
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
}

fn list(most: usize) -> Map<String, Value> {
    let list = [
        ("type", json!("array")),
        ("maxItems", most.into()),
        ("items", object().into()),
    ];
    list.map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
}

fn set(root: &mut Value, place: &str, key: &str, value: Value) {
    if let Some(Value::Object(schema)) = root.pointer_mut(place) {
        schema.insert(key.to_owned(), value);
    }
}

/// Puts `leaf` at `path` below the object `schema`; creates objects and lists on
/// the way.
fn insert(schema: &mut Map<String, Value>, path: &str, leaf: Value, is_required: bool) {
    let (step, rest) = match path.split_once('.') {
        Some((step, rest)) => (step, Some(rest)),
        None => (path, None),
    };
    let key = step.trim_end_matches("[]");
    // A field that an entry of a list requires is not required in the document.
    if is_required && !path.contains("[].") {
        require(schema, key);
    }
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return;
    };
    let Some(rest) = rest else {
        properties.insert(key.to_owned(), leaf);
        return;
    };
    let is_list = step.ends_with("[]");
    let property = properties
        .entry(key)
        .or_insert_with(|| match (is_list, key) {
            (false, _) => object().into(),
            (true, RULES) => list(schema::MAX_RULES).into(),
            (true, _) => list(schema::MAX_ENTRIES).into(),
        });
    let below = if is_list {
        property.get_mut("items")
    } else {
        Some(property)
    };
    if let Some(Value::Object(below)) = below {
        insert(below, rest, leaf, is_required);
    }
}

fn require(schema: &mut Map<String, Value>, key: &str) {
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(keys) = required
        && !keys.contains(&key.into())
    {
        keys.push(key.into());
    }
}

const fn is_required(values: &Values) -> bool {
    match values {
        Values::Fraction(fraction) => fraction.default.is_none(),
        Values::Span(span) => span.default.is_none(),
        Values::Choice { default, .. } => default.is_none(),
        _ => false,
    }
}

/// The effective value of an absent field.
#[derive(Clone, Copy)]
enum Absent {
    Default,
    Inherited,
}

/// The schema of one field, with its meaning and its default.
fn leaf(field: &Field, absent: Absent) -> Value {
    let (schema, default) = match &field.values {
        Values::Flag(flag) => (json!({"type": "boolean"}), Some(flag.default.to_string())),
        Values::Choice { names, default } => (
            json!({"type": "string", "enum": names()}),
            default.map(str::to_owned),
        ),
        Values::Fraction(fraction) => (
            share(fraction),
            fraction.default.map(|default| default.to_string()),
        ),
        Values::Count(count) => (
            whole_number(count.min, count.max),
            Some(count.default.to_string()),
        ),
        Values::Bound(bound) => (
            whole_number(bound.min, bound.max),
            Some("no bound".to_owned()),
        ),
        Values::Span(span) => (
            duration(span),
            span.default.map(|default| Readable(default).to_string()),
        ),
        Values::Text { expected, default } => (
            text(expected),
            default.filter(|text| !text.is_empty()).map(str::to_owned),
        ),
        Values::Numbers(numbers) => (
            json!({
                "type": "array",
                "maxItems": schema::MAX_ENTRIES,
                "items": whole_number(numbers.min, numbers.max),
            }),
            Some(joined(numbers.default)),
        ),
        Values::Texts { expected, default } => (
            json!({"type": "array", "maxItems": schema::MAX_ENTRIES, "items": text(expected)}),
            (!default.is_empty()).then(|| default.join(", ")),
        ),
    };
    let default = match (default, absent) {
        (_, Absent::Inherited) => " Default: the value at the top level.".to_owned(),
        (Some(default), Absent::Default) => format!(" Default: {default}."),
        (None, Absent::Default) => String::new(),
    };
    let mut described = schema;
    set(
        &mut described,
        "",
        "description",
        format!("{}{default}", field.doc).into(),
    );
    described
}

fn joined(numbers: &[u32]) -> String {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    texts.join(", ")
}

fn whole_number(min: u32, max: u32) -> Value {
    json!({"type": "integer", "format": "int64", "minimum": min, "maximum": max})
}

/// The schema of a fraction, with a rule instead of `minimum` and `maximum`: in errors about those, the
/// API server prints only the integer part, so that a maximum of 0.999 would read "at most 0".
fn share(fraction: &Fraction) -> Value {
    let (min, max) = (fraction.min.as_f64(), fraction.max.as_f64());
    json!({
        "type": "number",
        "x-kubernetes-validations": [rule(
            &format!("self >= {min:?} && self <= {max:?}"),
            &fraction.to_string(),
        )],
    })
}

fn duration(span: &Span) -> Value {
    let (min, max) = (Readable(span.min), Readable(span.max));
    json!({
        "type": "string",
        "minLength": 2,
        "maxLength": MAX_DURATION_CHARS,
        "pattern": DURATION_PATTERN,
        "x-kubernetes-validations": [rule(
            &format!("duration(self) >= duration('{min}') && duration(self) <= duration('{max}')"),
            &span.to_string(),
        )],
    })
}

/// The schema of a text that `expected` describes.
fn text(expected: &str) -> Value {
    let name = json!({"type": "string", "minLength": 1, "maxLength": 512});
    let patterned = |pattern: &str, most: u32| json!({"type": "string", "minLength": 1, "maxLength": most, "pattern": pattern});
    match expected {
        schema::BODY_EXPECTED => json!({"type": "string", "maxLength": 4096}),
        schema::HEADER_EXPECTED => patterned(r"^[a-z0-9!#$%&'*+.^_`|~-]+$", 64),
        // Core checks that it is not one of Envoy's headers.
        schema::REASON_HEADER_EXPECTED => patterned(r"^x-[a-z0-9!#$%&'*+.^_`|~-]*$", 64),
        schema::METHOD_EXPECTED => patterned("^[A-Z-]+$", 64),
        schema::PATH_EXPECTED => patterned("^[/*][^?# ]*$", 512),
        schema::HOST_EXPECTED => patterned("^[a-z0-9._*-]+$", 512),
        schema::AGENT_EXPECTED | schema::KEY_EXPECTED => {
            json!({"type": "string", "minLength": 1, "maxLength": 128})
        }
        _ => name,
    }
}
