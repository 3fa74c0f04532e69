//! A policy means the same to the control service as to the filter. `src/fuzz/policies.rs` tests arbitrary text.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tidegate_control::document::{node_of, yaml};
use tidegate_control::policy::{CheckedPolicy, PolicyName, PolicyTargets, gather};
use tidegate_control::render::PluginConfig;
use tidegate_core::config::Config;
use tidegate_core::config::schema::{FIELDS, Field, Values};

/// A value for the field, in its range or just outside of it.
fn any_value(field: &Field) -> BoxedStrategy<Value> {
    match field.values {
        Values::Flag(_) => any::<bool>().prop_map(Value::from).boxed(),
        Values::Choice { names, .. } => {
            let known = prop::sample::select(names());
            prop_oneof![20 => known, 1 => Just("nonsense")]
                .prop_map(Value::from)
                .boxed()
        }
        Values::Fraction(fraction) => {
            let (min, max) = (fraction.min.as_f64(), fraction.max.as_f64());
            prop_oneof![20 => min..=max, 1 => Just(max + 0.1)]
                .prop_map(Value::from)
                .boxed()
        }
        Values::Count(count) => any_count(count.min, count.max),
        Values::Bound(bound) => any_count(bound.min, bound.max),
        Values::Span(_) => {
            let texts = vec!["100ms", "1s", "1.5s", "1m", "soon"];
            prop::sample::select(texts).prop_map(Value::from).boxed()
        }
        Values::Numbers(numbers) => {
            prop::collection::vec(any_count(numbers.min, numbers.max), 0..3)
                .prop_map(Value::from)
                .boxed()
        }
        Values::Text { .. } => any_text().prop_map(Value::from).boxed(),
        Values::Texts { .. } => prop::collection::vec(any_text(), 0..3)
            .prop_map(Value::from)
            .boxed(),
    }
}

fn any_count(min: u32, max: u32) -> BoxedStrategy<Value> {
    let outside = [min - 1, max + 1];
    prop_oneof![20 => min..=max, 1 => prop::sample::select(outside.to_vec())]
        .prop_map(Value::from)
        .boxed()
}

fn any_text() -> impl Strategy<Value = String> {
    let texts = vec![
        "a", "a*", "/a*", "*", "x-class", "GET", "yes", "0x1", "ü", "a b",
    ];
    prop::sample::select(texts).prop_map(str::to_owned)
}

fn insert(object: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            object.insert(path.trim_end_matches("[]").to_owned(), value);
        }
        Some((step, rest)) if step.ends_with("[]") => {
            let list = object
                .entry(step.trim_end_matches("[]"))
                .or_insert_with(|| json!([{}]));
            if let Some(Value::Object(entry)) = list.get_mut(0) {
                insert(entry, rest, value);
            }
        }
        Some((step, rest)) => {
            if let Value::Object(below) = object.entry(step).or_insert_with(|| json!({})) {
                insert(below, rest, value);
            }
        }
    }
}

/// A configuration of some fields, valid or not.
fn any_config() -> impl Strategy<Value = Map<String, Value>> {
    let fields: Vec<&Field> = FIELDS.iter().collect();
    let some = prop::sample::subsequence(fields, 0..8);
    let values = some.prop_flat_map(|fields| {
        fields
            .into_iter()
            .map(|field| any_value(field).prop_map(|value| (field.path, value)))
            .collect::<Vec<_>>()
    });
    (values, any::<bool>()).prop_map(|(values, in_rule)| {
        let mut config = Map::new();
        insert(
            &mut config,
            "slo",
            json!({"latency": {"quantile": 0.9, "target": "1s"}}),
        );
        for (path, value) in values {
            let is_free = !path.contains('[') && in_rule;
            let path = if is_free {
                format!("upstreams[].{path}")
            } else {
                path.to_owned()
            };
            insert(&mut config, &path, value);
        }
        config
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// The service accepts a policy exactly if the filter accepts its configuration. The rendered configuration means
    /// the same to the filter as the policy.
    #[test]
    fn the_filter_accepts_every_valid_policy(config in any_config()) {
        let mut spec = config.clone();
        insert(&mut spec, "proxies", json!([{"id": "*"}]));
        let policy = json!({
            "apiVersion": "tidegate.dev/v1alpha1", "kind": "BreakerPolicy",
            "metadata": {"name": "a"}, "spec": spec,
        });
        let filter = Config::from_json(Value::Object(config.clone()).to_string().as_bytes());

        let read = CheckedPolicy::read(&node_of(&policy));
        let text = yaml(&policy);
        let gathered = gather([("yaml", text.as_bytes())]);

        match (filter, read) {
            (Ok(filter), Ok(read)) => {
                let rendered = PluginConfig::of(&read);
                prop_assert_eq!(&Config::from_json(rendered.config.as_bytes()), &Ok(filter));
                let from_yaml = gathered.policies.iter().next().map(|policy| PluginConfig::of(policy));
                prop_assert_eq!(from_yaml, Some(rendered.clone()));
                let name = PolicyName::new(None, "a".to_owned());
                let built = CheckedPolicy::new(name, None, PolicyTargets::Proxies(Vec::new()), config);
                prop_assert_eq!(built.map(|policy| PluginConfig::of(&policy)), Ok(rendered));
            }
            (Err(filter), Err(read)) => {
                let prefixed: Vec<String> = filter.iter().map(|error| format!("spec.{error}")).collect();
                let told: Vec<String> = read.iter().map(ToString::to_string).collect();
                prop_assert_eq!(told, prefixed);
                prop_assert_eq!(gathered.problems.len(), filter.total());
            }
            (filter, read) => prop_assert!(false, "{:?} {:?}", filter, read),
        }
    }
}
