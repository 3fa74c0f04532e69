//! The schema and the rules of the definition, tested on the API server that evaluates them.
//!
//! `control/tests/definition.rs` tests without a server that the schema agrees with core. Here the tests show that a
//! server accepts the definition within its budget for rules, and that each rule rejects the policies that it should
//! reject. They also show that the error for a wrong policy says what was expected, and where.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_control::document::{documents, value_of};
use tidegate_control::resource::reference::{KUBERNETES_EXAMPLE, STANDALONE_EXAMPLE};
use tidegate_core::config::Config;
use tidegate_core::config::schema::{FIELDS, Field, Values};

use crate::policies::{Cause, at, spec, try_create};
use crate::world::TestCluster;

/// Every CEL rule of a schema, with the path of the value that it checks, such as `upstreams[].limit`.
fn rules(schema: &Value, path: &str, found: &mut BTreeSet<(String, String)>) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let message = rule["message"].as_str().unwrap();
        found.insert((path.to_owned(), message.to_owned()));
    }
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        rules(below, &format!("{path}.{key}"), found);
    }
    if let Some(items) = schema.get("items") {
        rules(items, &format!("{path}[]"), found);
    }
}

/// Policies that break one rule each, at the top level and in `upstreams`.
fn broken() -> Vec<Value> {
    let refs = |refs: Value| json!({"selector": null, "targetRefs": refs});
    let gateway = |group: &str| json!({"kind": "Gateway", "name": "edge", "group": group});
    let mut broken = vec![
        json!({"selector": null}),
        json!({"proxies": [{"id": "edge-*"}]}),
        json!({"targetRefs": [{"kind": "Service", "name": "web"}]}),
        refs(json!([{"kind": "Gateway", "name": "edge"}])),
        refs(json!([gateway("apps")])),
        refs(json!([{"kind": "Service", "name": "web", "group": "apps"}])),
        refs(json!([{"kind": "Namespace", "name": "default", "group": "apps"}])),
        refs(
            json!([{"kind": "Service", "name": "web"}, {"kind": "Service", "name": "web", "group": "core"}]),
        ),
        // These break a bound that the policy does not set, but that has a default.
        json!({"limit": {"min": 10_001}}),
        json!({"limit": {"initial": 10_001}}),
        json!({"breaker": {"minOpen": "61s"}}),
        json!({"breaker": {"maxOpen": "249ms"}}),
    ];
    for both in [
        json!({"limit": {"min": 10, "max": 9}}),
        json!({"limit": {"min": 10, "initial": 9}}),
        json!({"limit": {"initial": 11, "max": 10}}),
        json!({"limit": {"min": 10, "maxOpen": 9}}),
        json!({"breaker": {"minOpen": "1s", "maxOpen": "999ms"}}),
        json!({"breaker": {"minOpen": "49ms"}}),
        json!({"breaker": {"maxOpen": "3601s", "minOpen": "601s"}}),
        json!({"slo": {"latency": {"quantile": 0.9, "target": "999us"}}}),
        json!({"slo": {"latency": {"quantile": 0.9, "target": "10m1us"}}}),
        json!({"slo": {"latency": {"quantile": 0.4999, "target": "1s"}}}),
        json!({"slo": {"latency": {"quantile": 1, "target": "1s"}, "successRate": 1}}),
        json!({"breaker": {"tripRatio": 0.0499}}),
        json!({"shed": {"maxShare": 1.001}}),
        json!({"enforcement": -0.001}),
    ] {
        let mut rule = both.clone();
        rule["match"] = json!({"service": "web.shop"});
        broken.push(json!({"upstreams": [rule]}));
        broken.push(both);
    }
    broken
}

/// The path without the positions in lists.
fn general(field: &str) -> String {
    let mut path = String::new();
    let mut is_position = false;
    for c in field.chars() {
        is_position = is_position && c != ']';
        if !is_position {
            path.push(c);
        }
        is_position = is_position || c == '[';
    }
    path
}

pub(crate) async fn every_rule_rejects_and_says_what_is_expected(world: Arc<TestCluster>) {
    let definition = world.definition().await;
    let mut rules_there = BTreeSet::new();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    rules(
        definition.pointer(schema).unwrap(),
        "spec",
        &mut rules_there,
    );

    let mut rules_seen = BTreeSet::new();
    for more in broken() {
        let rejected = try_create(&world.admin, &spec(&more)).await;
        let causes = rejected.expect_err(&format!("{more} is accepted"));
        for Cause { field, message } in causes {
            let rule = rules_there.iter().find(|(path, expected)| {
                *path == general(&field) && message.ends_with(expected.as_str())
            });
            let rule = rule.unwrap_or_else(|| panic!("{more}: {field}: {message}"));
            rules_seen.insert(rule.clone());
        }
    }

    assert_eq!(rules_seen, rules_there, "every rule rejects something");
}

/// The server reports all errors of one document, as the filter and the command line do. If a word is unknown, the
/// server does not check the order of values, and says so.
pub(crate) async fn every_error_of_one_policy_is_reported(world: Arc<TestCluster>) {
    const UNCHECKED: &str = "some validation rules were not checked";
    let in_rule = |rule: Value| json!([merged(&rule)]);
    // A policy, the fields in which the server finds errors, and the number of errors that the filter finds.
    let table: [(Value, &[&str], usize); 4] = [
        (
            json!({
                "slo": {"latency": {"until": "body"}},
                "limit": {"min": 0, "maxOpen": 0},
                "upstreams": in_rule(json!({"slo": {"latency": {"until": "first_byte"}}, "limit": {"maxOpen": 100_001}})),
            }),
            &[
                UNCHECKED,
                "spec.limit.maxOpen",
                "spec.limit.min",
                "spec.slo.latency.until",
                "spec.upstreams[0].limit.maxOpen",
                "spec.upstreams[0].slo.latency.until",
            ],
            5,
        ),
        (
            json!({
                "limit": {"min": 10, "max": 9, "maxOpen": 8},
                "upstreams": in_rule(json!({"limit": {"min": 3, "max": 2, "maxOpen": 1}})),
            }),
            &[
                "spec.limit",
                "spec.limit",
                "spec.upstreams[0].limit",
                "spec.upstreams[0].limit",
            ],
            4,
        ),
        // The server compares values even if one of them is out of range.
        (
            json!({"limit": {"min": 10, "max": 9, "maxOpen": 0}}),
            &["spec.limit", "spec.limit", "spec.limit.maxOpen"],
            2,
        ),
        (
            json!({"slo": {"latency": {"until": "body"}}, "limit": {"min": 10, "max": 9}}),
            &[UNCHECKED, "spec.slo.latency.until"],
            2,
        ),
    ];
    for (more, expected, in_core) in table {
        let document = spec(&more);
        let rejected = try_create(&world.admin, &document).await;
        let causes = rejected.expect_err(&format!("{more} is accepted"));
        let told = causes.iter().map(|cause| {
            let is_unchecked = cause.message.contains(UNCHECKED);
            if is_unchecked {
                UNCHECKED
            } else {
                &cause.field
            }
        });
        let mut told: Vec<&str> = told.collect();
        told.sort_unstable();
        assert_eq!(told, expected, "{causes:?}");

        let mut config = document;
        config.as_object_mut().unwrap().remove("selector");
        let errors = Config::from_json(config.to_string().as_bytes()).unwrap_err();
        assert_eq!(errors.total(), in_core, "{errors}");
    }
}

/// Values that a field does not accept.
fn outside(values: &Values) -> Vec<Value> {
    match values {
        Values::Flag(_) => vec![json!("yes"), json!(1)],
        Values::Choice { .. } => vec![json!("nonsense"), json!("")],
        Values::Fraction(range) => {
            let (least, most) = (range.min.as_f64(), range.max.as_f64());
            vec![json!(least - 0.001), json!(most + 0.001), json!("0.9")]
        }
        Values::Count(range) => beyond(range.min, range.max),
        Values::Numbers(range) => beyond(range.min, range.max),
        Values::Bound(range) => beyond(range.min, range.max),
        // Durations that are too short or too long are cases of the rules.
        Values::Span(_) => vec![
            json!("soon"),
            json!("1 s"),
            json!("-1s"),
            json!(1),
            json!(""),
        ],
        Values::Text { .. } | Values::Texts { .. } => vec![json!(7), json!("x".repeat(5_000))],
    }
}

fn beyond(min: u32, max: u32) -> Vec<Value> {
    vec![
        json!(i64::from(min) - 1),
        json!(i64::from(max) + 1),
        json!(1.5),
        json!("many"),
    ]
}

/// A value for a field, with the other fields that it needs.
fn placed(field: &Field, value: &Value) -> Value {
    let path = field.path;
    match path.rsplit_once('.') {
        // An entry of a list of rules needs at least one more key.
        Some((list, key)) if list == "criticality.rules[]" => {
            let mut entry = json!({"path": "/", "criticality": "critical"});
            entry[key] = value.clone();
            at(list, &entry)
        }
        _ => at(path, value),
    }
}

pub(crate) async fn a_value_outside_its_range_is_rejected_at_its_path(world: Arc<TestCluster>) {
    for field in FIELDS {
        for value in outside(&field.values) {
            let at_top = placed(field, &value);
            let rule = at("upstreams[]", &merged(&at_top));
            let levels = [
                Some((at_top, "spec.")),
                field.is_per_upstream.then_some((rule, "spec.upstreams[].")),
            ];
            for (more, prefix) in levels.into_iter().flatten() {
                let document = spec(&more);
                let rejected = try_create(&world.admin, &document).await;
                let causes = rejected.expect_err(&format!("{more} is accepted"));
                let path = format!("{prefix}{}", field.path);
                assert!(
                    causes.iter().any(|cause| general(&cause.field) == path),
                    "{path}: {causes:?}"
                );
                let mut config = document;
                config.as_object_mut().unwrap().remove("selector");
                assert!(
                    Config::from_json(config.to_string().as_bytes()).is_err(),
                    "core takes {more}"
                );
            }
        }
    }
}

/// A rule for an upstream with these settings.
fn merged(what: &Value) -> Value {
    let mut rule = what.clone();
    rule["match"] = json!({"service": "web.shop"});
    rule
}

pub(crate) async fn what_is_missing_or_unknown_is_rejected_by_name(world: Arc<TestCluster>) {
    for (more, field, message) in [
        (json!({"slo": null}), "spec.slo", "Required value"),
        (
            json!({"slo": {"latency": null}}),
            "spec.slo.latency",
            "Required value",
        ),
        (
            json!({"slo": {"latency": {"target": null}}}),
            "spec.slo.latency.target",
            "Required value",
        ),
        (
            json!({"selector": {"matchLabels": null}}),
            "spec.selector.matchLabels",
            "Required value",
        ),
        (
            json!({"upstreams": [{"limit": {"max": 1}}]}),
            "spec.upstreams[0].match",
            "Required value",
        ),
        (
            json!({"upstreams": [{"match": {}}]}),
            "spec.upstreams[0].match",
            "at least 1 properties",
        ),
        (
            json!({"selector": null, "proxies": [{}]}),
            "spec.proxies[0]",
            "at least 1 properties",
        ),
        (
            json!({"selector": null, "proxies": []}),
            "spec.proxies",
            "at least 1 items",
        ),
        (
            json!({"criticality": {"rules": [{"criticality": "critical"}]}}),
            "spec.criticality.rules[0]",
            "at least 2",
        ),
        (
            json!({"limt": {"max": 1}}),
            "",
            "unknown field \"spec.limt\"",
        ),
        (
            json!({"limit": {"maximum": 1}}),
            "",
            "unknown field \"spec.limit.maximum\"",
        ),
        (
            json!({"upstreams": [{"match": {"host": "a"}}]}),
            "",
            "unknown field \"spec.upstreams[0].match.host\"",
        ),
    ] {
        let rejected = try_create(&world.admin, &spec(&more)).await;
        let causes = rejected.expect_err(&format!("{more} is accepted"));
        let is_told = |cause: &Cause| cause.field == field && cause.message.contains(message);
        assert!(causes.iter().any(is_told), "{more}: {causes:?}");
    }
}

/// The policies in the pages of `docs/` and in the files of `examples/` and `manifests/`.
fn shown() -> Vec<(String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<_> = ["docs", "examples", "manifests"]
        .map(|name| root.join(name))
        .into();
    let mut shown = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let kind = path
                .extension()
                .and_then(|kind| kind.to_str())
                .unwrap_or_default();
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            let texts: Vec<&str> = match kind {
                "yaml" | "yml" => vec![&text],
                "md" => text
                    .split("```")
                    .skip(1)
                    .step_by(2)
                    .filter_map(|block| block.strip_prefix("yaml\n"))
                    .collect(),
                _ => continue,
            };
            for text in texts
                .into_iter()
                .filter(|text| text.contains("kind: BreakerPolicy\n"))
            {
                for document in documents(text.as_bytes()).0 {
                    let document = value_of(document.root());
                    if document["kind"] == "BreakerPolicy" {
                        shown.push((path.display().to_string(), document["spec"].clone()));
                    }
                }
            }
        }
    }
    shown
}

pub(crate) async fn what_the_documents_show_is_accepted(world: Arc<TestCluster>) {
    let mut shown = shown();
    for example in [STANDALONE_EXAMPLE, KUBERNETES_EXAMPLE] {
        let document = value_of(documents(example.as_bytes()).0[0].root());
        shown.push(("the reference".to_owned(), document["spec"].clone()));
    }
    assert!(shown.len() > 2, "docs/ shows policies");
    for (place, spec) in shown {
        assert_eq!(try_create(&world.admin, &spec).await, Ok(()), "{place}");
    }
}

pub(crate) async fn values_at_the_bounds_are_accepted(world: Arc<TestCluster>) {
    for more in [
        json!({}),
        json!({"limit": {"min": 5, "initial": 5, "max": 5}}),
        json!({"limit": {"initial": 1_000}}),
        json!({"limit": {"min": 1_000}}),
        json!({"limit": {"maxOpen": 1}}),
        json!({"limit": {"min": 7, "maxOpen": 7}}),
        json!({"limit": {"initial": 50, "max": 60, "maxOpen": 100_000}}),
        json!({"slo": {"latency": {"quantile": 0.9, "target": "1s", "until": "firstByte"}}}),
        json!({"breaker": {"minOpen": "1m", "maxOpen": "60s"}}),
        json!({"breaker": {"minOpen": "50ms", "maxOpen": "1h"}}),
        json!({"slo": {"latency": {"quantile": 0.999, "target": "10m"}, "successRate": 0.99999}}),
        json!({"slo": {"latency": {"quantile": 0.5, "target": "1ms"}, "successRate": 0.5}}),
        json!({"shed": {"body": "", "maxShare": 0, "status": 599}}),
        json!({"selector": null, "targetRefs": [{"kind": "Service", "name": "a"}, {"kind": "Service", "name": "b", "group": "core"}]}),
        json!({"selector": null, "proxies": [{"metadata": {"region": {"zone": "a*"}}}]}),
        // The rule does not know what an upstream inherits. The service reports such errors in the status.
        json!({"upstreams": [{"match": {"service": "a.b"}, "limit": {"min": 2_000}}]}),
        json!({"limit": {"maxOpen": 5}, "upstreams": [{"match": {"service": "a.b"}, "limit": {"min": 6}}]}),
    ] {
        assert_eq!(
            try_create(&world.admin, &spec(&more)).await,
            Ok(()),
            "{more}"
        );
    }
    let upstreams: Vec<Value> = (0..1_000)
        .map(|n| json!({"match": {"service": format!("s{n}.shop")}, "limit": {"max": n + 1}, "breaker": {"minOpen": "1s"}}))
        .collect();
    assert_eq!(
        try_create(&world.admin, &spec(&json!({"upstreams": upstreams}))).await,
        Ok(())
    );
    let mut one_more = upstreams;
    one_more.push(json!({"match": {"service": "last.shop"}}));
    let rejected = try_create(&world.admin, &spec(&json!({"upstreams": one_more}))).await;
    assert!(
        rejected
            .unwrap_err()
            .iter()
            .any(|cause| cause.field == "spec.upstreams")
    );
}
