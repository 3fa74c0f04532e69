//! The definition for Kubernetes agrees with core.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tidegate_control::document::{documents, value_of, yaml};
use tidegate_control::policy::{CheckedPolicy, MODULE_KEY, TARGET_KEYS, gather};
use tidegate_control::resource::reference::{KUBERNETES_EXAMPLE, STANDALONE_EXAMPLE};
use tidegate_control::resource::{BreakerPolicy, definition};
use tidegate_core::config::Config;
use tidegate_core::config::schema::{FIELDS, Values};

fn spec() -> Value {
    definition()
        .unwrap()
        .pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")
        .cloned()
        .unwrap()
}

/// The schema of the field at `path`. For a list, the schema of its entries.
fn at<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(schema, |schema, step| {
        let below = schema.get("properties")?.get(step.trim_end_matches("[]"))?;
        if step.ends_with("[]") {
            below.get("items")
        } else {
            Some(below)
        }
    })
}

#[test]
fn the_manifest_matches_the_types() {
    let manifest = include_str!("../../manifests/crd.yaml");
    let (_, manifest) = manifest.split_once('\n').unwrap();
    let text = yaml(&definition().unwrap());

    // Compare line by line, so that a difference is readable.
    for (found, expected) in manifest.lines().zip(text.lines()) {
        assert_eq!(found, expected, "make docs writes a new one");
    }
    assert_eq!(manifest.len(), text.len(), "make docs writes a new one");
}

#[test]
fn every_field_of_the_filter_is_in_the_schema_at_both_levels() {
    let spec = spec();
    for field in FIELDS {
        let leaf = at(&spec, field.path).unwrap();
        let kind = match field.values {
            Values::Flag(_) => "boolean",
            Values::Count(_) | Values::Bound(_) | Values::Numbers(_) => "integer",
            Values::Fraction(_) => "number",
            _ => "string",
        };
        assert_eq!(leaf["type"], kind, "{}", field.path);
        let in_rule = at(&spec, &format!("upstreams[].{}", field.path));
        assert_eq!(in_rule.is_some(), field.is_per_upstream, "{}", field.path);
    }
}

#[test]
fn the_schema_has_no_key_that_the_reader_does_not_know() {
    let spec = spec();
    let in_schema: BTreeSet<&str> = spec["properties"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let known: BTreeSet<&str> = FIELDS
        .iter()
        .map(|field| field.path.split(['.', '[']).next().unwrap())
        .chain(TARGET_KEYS)
        .chain([MODULE_KEY])
        .collect();

    assert_eq!(in_schema, known);
}

#[test]
fn only_the_objective_and_what_makes_an_entry_is_required() {
    let spec = spec();
    for (path, required) in [
        ("slo", json!(["latency"])),
        ("slo.latency", json!(["quantile", "target"])),
        ("upstreams[]", json!(["match"])),
        ("upstreams[].slo", Value::Null),
        ("upstreams[].slo.latency", Value::Null),
        ("criticality", Value::Null),
        ("criticality.rules[]", json!(["criticality"])),
        ("targetRefs[]", json!(["kind", "name"])),
        ("proxies[]", Value::Null),
        ("selector", json!(["matchLabels"])),
    ] {
        let found = at(&spec, path)
            .unwrap()
            .get("required")
            .cloned()
            .unwrap_or_default();
        assert_eq!(found, required, "{path}");
    }
    assert_eq!(spec["required"], json!(["slo"]));
}

#[test]
fn nothing_in_the_spec_may_be_null() {
    assert!(!spec().to_string().contains("nullable"));
}

/// A valid document with `text` at `path`.
fn document_with(path: &str, text: &str) -> String {
    let mut value = json!(text);
    let mut steps: Vec<&str> = path.split('.').collect();
    if !path.ends_with("[]") && (path.contains("rules[]") || path.contains("match")) {
        let key = steps.pop().unwrap();
        value = if path.contains("rules[]") {
            json!({key: text, "criticality": "critical"})
        } else {
            json!({key: text})
        };
    }
    for step in steps.into_iter().rev() {
        value = match step.strip_suffix("[]") {
            Some(key) => json!({key: [value]}),
            None => json!({step: value}),
        };
    }
    let slo = json!({"latency": {"quantile": 0.99, "target": "1s"}});
    value.as_object_mut().unwrap().insert("slo".to_owned(), slo);
    value.to_string()
}

#[test]
fn the_patterns_of_the_schema_accept_what_core_accepts_and_little_else() {
    let texts = [
        "",
        "a",
        "A",
        "/",
        "/a*",
        "*",
        "/a?b",
        "/a b",
        "a.b-c_*",
        "GET",
        "get",
        "M-SEARCH",
        "x-criticality",
        "X-Criticality",
        "x y",
        "x:y",
        "kube-probe/",
        "spiffe://a/b*",
        "a\"b",
        "~",
        "#a",
        "/#",
    ];
    let spec = spec();
    for field in FIELDS {
        let (Values::Text { .. } | Values::Texts { .. }) = field.values else {
            continue;
        };
        let schema = at(&spec, field.path).unwrap();
        let pattern = schema
            .get("pattern")
            .map(|p| regex::Regex::new(p.as_str().unwrap()).unwrap());
        let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
        for text in texts {
            let fits =
                text.len() as u64 >= least && pattern.as_ref().is_none_or(|p| p.is_match(text));
            let document = document_with(field.path, text);
            let taken = Config::from_json(document.as_bytes());
            assert_eq!(fits, taken.is_ok(), "{} {text:?} {taken:?}", field.path);
        }
    }
}

#[test]
fn durations_of_the_schema_are_durations_of_core() {
    let spec = spec();
    let pattern = at(&spec, "slo.latency.target").unwrap()["pattern"]
        .as_str()
        .unwrap();
    let pattern = regex::Regex::new(pattern).unwrap();
    for text in [
        "1s",
        "1.5s",
        "250ms",
        "1m30s",
        "1h2m3s4ms5us",
        "0.25s",
        "1",
        "s",
        "1s1m",
        "1s1s",
        "-1s",
        "1 s",
        ".5s",
        "1.s",
        "1d",
        "1ns",
        "1S",
        "1ms1s",
    ] {
        let is_core = tidegate_core::config::parse_duration(text).is_some();
        assert_eq!(pattern.is_match(text), is_core, "{text}");
    }
}

#[test]
fn the_examples_of_the_reference_are_valid_and_survive_the_api_server() {
    for example in [STANDALONE_EXAMPLE, KUBERNETES_EXAMPLE] {
        let gathered = gather([("example", example.as_bytes())]);
        assert_eq!(gathered.problems, []);
        let (found, _) = documents(example.as_bytes());
        let resource: BreakerPolicy = serde_json::from_value(value_of(found[0].root())).unwrap();

        let policy = CheckedPolicy::of_resource(&resource).unwrap();

        assert_eq!(&policy, &**gathered.policies.iter().next().unwrap());
    }
}

#[test]
fn errors_that_the_schema_misses_are_reported() {
    let text = format!(
        "{KUBERNETES_EXAMPLE}  upstreams: [{{match: {{service: a.b}}, limit: {{min: 20000}}}}]\n"
    );
    let (found, _) = documents(text.as_bytes());
    let resource: BreakerPolicy = serde_json::from_value(value_of(found[0].root())).unwrap();

    let errors = CheckedPolicy::of_resource(&resource).unwrap_err();

    assert_eq!(
        errors.to_string(),
        "spec.upstreams[0].limit.min: found 20000, expected at most limit.max (10000)"
    );
}
