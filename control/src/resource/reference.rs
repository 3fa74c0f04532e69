//! The reference of `BreakerPolicy`, generated from its definition.
//!
//! `ci/generate.sh` writes `docs/policy.md`, and a check keeps it up to date:
//! fields, ranges and meanings cannot differ from what the API server and the
//! command line accept.

use std::fmt::Write as _;

use serde_json::Value;

use super::definition;
use crate::render::UNMATCHED;

/// A policy for standalone proxies.
pub const STANDALONE_EXAMPLE: &str = "\
apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata:
  name: edge
spec:
  proxies:
  - cluster: edge
    metadata: {zone: eu-1*}
  - id: canary-7
  slo: {latency: {quantile: 0.99, target: 250ms}, successRate: 0.999}
  stance: failFast
  limit: {max: 500}
  criticality: {header: x-criticality}
  upstreams:
  - match: {service: payments.*}
    slo: {latency: {target: 80ms}}
";

/// A policy for a waypoint in Kubernetes.
pub const KUBERNETES_EXAMPLE: &str = "\
apiVersion: tidegate.dev/v1alpha1
kind: BreakerPolicy
metadata:
  name: checkout
  namespace: shop
spec:
  targetRefs:
  - group: gateway.networking.k8s.io
    kind: Gateway
    name: waypoint
  slo: {latency: {quantile: 0.99, target: 250ms}}
  mode: observe
";

/// The reference as Markdown.
///
/// # Errors
/// When the definition cannot be written as JSON, which does not happen.
pub fn markdown() -> Result<String, serde_json::Error> {
    let definition = definition()?;
    let schema = definition
        .pointer("/spec/versions/0/schema/openAPIV3Schema/properties")
        .cloned()
        .unwrap_or_default();
    let mut spec = String::new();
    let mut status = String::new();
    if let (Some(of_spec), Some(of_status)) = (schema.get("spec"), schema.get("status")) {
        rows(&mut spec, "spec", of_spec);
        rows(&mut status, "status", of_status);
    }
    let mut rules = String::new();
    list_rules(
        &mut rules,
        "spec",
        schema.get("spec").unwrap_or(&Value::Null),
    );
    Ok(format!(
        "\
# BreakerPolicy

<!-- Generated from control/src/resource. Do not edit; refresh with make docs -->

A `BreakerPolicy` states an objective for requests and the proxies it applies to. The same document can be
applied to Kubernetes, put into a directory, or sent to the control service; `tidegate validate` checks it anywhere.
Everything in `spec` except the targets is the filter's configuration, key for key: see
[configuration](configuration.md) for its meaning and its rules for upstreams.

For standalone proxies:

```yaml
{STANDALONE_EXAMPLE}```

For a waypoint or a gateway in Kubernetes:

```yaml
{KUBERNETES_EXAMPLE}```

A file may contain several documents. An invalid document is rejected with all errors at once, each with file,
line, path, what was found and what was expected; the last valid version remains in force.

## Which policy a proxy gets

A policy has targets of one kind: `proxies` for standalone Envoys, `selector` or `targetRefs` for Kubernetes.
One policy wins a proxy; policies are not merged. The order of precedence:

1. **The most specific.** For standalone proxies the `id` is compared first: a policy that names it beats one that
   does not, a complete id beats a pattern, and a pattern with more characters beats one with fewer. Then the
   policy that names more metadata values wins. Then the `cluster` is compared like the id. If several entries of a
   policy match, the best one counts. In Kubernetes: a `selector` with more labels beats one with a subset of them, and
   any selector beats the Namespace. There, a narrower target does not remove the filter of the wider one: the
   proxy has both, the narrower first, and both must admit a request
   ([why](decisions/0007-two-policies-one-workload.md)).
2. **The oldest**, by `metadata.creationTimestamp`. A policy without it counts as the youngest.
3. **The name**, in alphabetical order.

`tidegate render FILE --node-id ...` shows which policy wins and which are overruled; `GET /v1/proxies` and the
status in Kubernetes show it as well. A standalone proxy that no policy matches gets a configuration that sheds
nothing and counts what would have been shed:

```json
{UNMATCHED}
```

In `proxies`, `*` stands for any text. All conditions of an entry must hold, and one entry must match. `metadata`
is compared in part: objects key by key, texts as patterns, numbers and booleans for equality. In Kubernetes,
`proxies` is valid only in policies of the control service's own namespace and of the namespaces that its operator names
([why](kubernetes.md)).

## Fields

In a rule under `upstreams` every field that the [configuration](configuration.md) marks *per upstream*
may be set again.

| field | values | meaning |
|---|---|---|
{spec}
## Status

| field | values | meaning |
|---|---|---|
{status}
## What Kubernetes rejects immediately

In addition to types and ranges, the API server checks these rules. The control service finds what they cannot see, such
as a rule under `upstreams` that contradicts what it inherits, and reports it in the condition `Accepted`.

| at | rule |
|---|---|
{rules}"
    ))
}

/// A row for every field below `path` that has a value.
fn rows(out: &mut String, path: &str, schema: &Value) {
    if let Some(items) = schema.get("items") {
        let path = format!("{path}[]");
        // Kubernetes defines the fields of a condition.
        if items.get("properties").is_some() && path != "status.conditions[]" {
            rows(out, &path, items);
        } else {
            let meaning = schema
                .get("description")
                .or_else(|| items.get("description"));
            row(out, &path, meaning, items);
        }
        return;
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        row(out, path, schema.get("description"), schema);
        return;
    };
    let required = schema.get("required").and_then(Value::as_array);
    for (key, property) in properties {
        let is_inherited = path == "spec.upstreams[]" && key != "match";
        if !is_inherited {
            let is_required = required.is_some_and(|keys| keys.contains(&key.as_str().into()));
            let mark = if is_required { "!" } else { "" };
            rows(out, &format!("{path}.{key}{mark}"), property);
        }
    }
}

fn row(out: &mut String, path: &str, meaning: Option<&Value>, schema: &Value) {
    // A field is required if it and all objects on the way to it are required.
    let is_required =
        !path.contains("[]") && path.split('.').skip(1).all(|step| step.ends_with('!'));
    let required = if is_required { " **Required.**" } else { "" };
    let meaning = meaning.and_then(Value::as_str).unwrap_or_default();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "| `{}` | {} | {meaning}{required} |",
        path.replace('!', ""),
        takes(schema)
    );
}

fn takes(schema: &Value) -> String {
    let number = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        let names: Vec<String> = names
            .iter()
            .map(|name| format!("`{}`", name.as_str().unwrap_or_default()))
            .collect();
        return names.join(", ");
    }
    if let Some(message) = schema
        .pointer("/x-kubernetes-validations/0/message")
        .and_then(Value::as_str)
    {
        return message.to_owned();
    }
    let kind = schema
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match (kind, number("minimum"), number("maximum")) {
        ("integer", Some(min), Some(max)) => format!("a whole number from {min} to {max}"),
        ("number", Some(min), Some(max)) => format!("a number from {min} to {max}"),
        ("integer", ..) => "a whole number".to_owned(),
        ("boolean", ..) => "true or false".to_owned(),
        ("object", ..) => "an object".to_owned(),
        _ => match number("maxLength") {
            Some(most) => format!("a text of at most {most} characters"),
            None => "a text".to_owned(),
        },
    }
}

fn list_rules(out: &mut String, path: &str, schema: &Value) {
    let rules = schema
        .get("x-kubernetes-validations")
        .and_then(Value::as_array);
    let is_leaf = schema.get("properties").is_none() && schema.get("items").is_none();
    for rule in rules.into_iter().flatten().filter(|_| !is_leaf) {
        let message = rule
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let _ = writeln!(out, "| `{path}` | {message} |");
    }
    if let Some(items) = schema.get("items") {
        list_rules(out, &format!("{path}[]"), items);
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        list_rules(out, &format!("{path}.{key}"), property);
    }
}
