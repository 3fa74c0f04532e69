//! How a policy is applied, and what the API server says when it rejects one.

use http::Request;
use kube::{Client, Resource as _};
use serde_json::{Map, Value, json};
use tidegate_control::resource::BreakerPolicy;

/// A reason why a policy is rejected: the field, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cause {
    pub(crate) field: String,
    pub(crate) message: String,
}

/// A valid `spec` with `more` in it; the keys of `more` take precedence.
pub(crate) fn spec(more: &Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": "web"}},
        "slo": {"latency": {"quantile": 0.99, "target": "250ms"}},
    });
    merge(&mut spec, more);
    spec
}

/// A valid `spec` for other workloads than those of `spec(&json!({}))`.
pub(crate) fn for_others() -> Value {
    spec(&json!({"selector": {"matchLabels": {"app": "other"}}}))
}

/// Merges `more` into `into`, object by object. A null removes a key.
fn merge(into: &mut Value, more: &Value) {
    let (Value::Object(found), Value::Object(new)) = (&mut *into, more) else {
        into.clone_from(more);
        return;
    };
    for (key, value) in new {
        if value.is_null() {
            found.remove(key);
        } else {
            let below = found
                .entry(key)
                .or_insert_with(|| Value::Object(Map::new()));
            merge(below, value);
        }
    }
}

/// `value` at a path such as `criticality.rules[].method`.
pub(crate) fn at(path: &str, value: &Value) -> Value {
    path.rsplit('.')
        .fold(value.clone(), |value, step| match step.strip_suffix("[]") {
            Some(key) => json!({key: [value]}),
            None => json!({step: value}),
        })
}

/// Checks whether a policy would be accepted, as `kubectl create --dry-run=server` does. Unknown fields are errors.
///
/// # Errors
/// Every reason why the API server rejects it.
pub(crate) async fn try_create(client: &Client, spec: &Value) -> Result<(), Vec<Cause>> {
    let document = json!({
        "apiVersion": BreakerPolicy::api_version(&()), "kind": BreakerPolicy::kind(&()),
        "metadata": {"name": "tried"}, "spec": spec,
    });
    let path = BreakerPolicy::url_path(&(), Some("default"));
    let request = Request::post(format!("{path}?dryRun=All&fieldValidation=Strict"))
        .header("content-type", "application/json")
        .body(document.to_string().into_bytes())
        .unwrap();
    match client.request::<Value>(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(causes(&status)),
        Err(error) => panic!("the API server does not answer: {error}"),
    }
}

/// The causes that the server lists, or else its message.
fn causes(status: &kube::core::Status) -> Vec<Cause> {
    let detailed = status.details.iter().flat_map(|details| &details.causes);
    let causes: Vec<Cause> = detailed
        .map(|cause| Cause {
            field: cause.field.clone(),
            message: cause.message.clone(),
        })
        .collect();
    if causes.is_empty() {
        vec![Cause {
            field: String::new(),
            message: status.message.clone(),
        }]
    } else {
        causes
    }
}
