//! The configuration reference, generated from the schema.
//!
//! A page written by hand would differ from the code after the first change of
//! a default. `cargo run -p tidegate-core --example reference -- configuration`
//! prints it; a test compares that with `docs/configuration.md`.

use std::fmt;

use super::document::MAX_DOCUMENT_BYTES;
use super::duration::Readable;
use super::examples::{FULL_EXAMPLE, MINIMAL_EXAMPLE};
use super::fields::FIELDS;
use super::kinds::{Field, OneOf, Values};
use super::native::NATIVE_FIELDS;
use super::schema::{MAX_ENTRIES, MAX_RULES};

/// The reference as Markdown.
#[must_use]
pub fn markdown() -> String {
    let rows = |fields: &[Field]| -> String {
        let rows = fields.iter().map(|field| FieldRow(field).to_string());
        rows.collect()
    };
    format!(
        "\
# Configuration

<!-- Generated from core/src/config. Do not edit; refresh with
     cargo run -p tidegate-core --example reference -- configuration > docs/configuration.md -->

The filter's configuration is one JSON document. Keys are camelCase, durations are strings such as
`\"250ms\"`, `\"1.5s\"` or `\"1m30s\"` (units `h`, `m`, `s`, `ms`, `us`; the larger first), ratios are
numbers from 0 to 1, never percent. Only the objective has no default, so this is enough:

```json
{minimal}
```

A document with an unknown key, a duplicate key, a value out of range or a contradiction is
rejected as a whole, with every error at once (`limit.max: found 10, expected at least limit.min (20)`),
and the configuration before it stays in force. A document above {kib} KiB is rejected, too.

## Fields

*Per upstream* fields may also be set in a rule under `upstreams`. Lists take at most {entries} entries,
`upstreams` at most {rules}.

| field | takes | default | per upstream | meaning |
|---|---|---|---|---|
{rows}
## Options of the native module

Only the [native module](native.md) takes these. The WebAssembly filter and the control service reject them, each by name.

| field | takes | default | per upstream | meaning |
|---|---|---|---|---|
{native}
## Latency

`slo.latency.until` says which part of a request's life is its latency. The same part counts against the limit.
`limit.maxOpen` bounds what goes on after it: streams and downloads. [What counts as latency](latency.md) says which one
to choose, with examples.

## Rules for upstreams

`upstreams` is a list of rules. Each has a `match` with at least one of `service`, `cluster` and `route`
(all that are set must match) and any of the fields marked *per upstream*. The first rule that matches an upstream
applies, and no other: a field that it does not set comes from the top level, not from a later rule. So put the special
rules first. Two rules with the same `match` are rejected.

In a pattern `*` matches any text, also none, dots and slashes included. Every other character matches itself, and there
is no escape. A pattern without `*` must match the whole name. Case counts.

- `service` is the host of the service: in a mesh from the cluster's name
  (`outbound|9080|v2|reviews.shop.svc.cluster.local`). A Kubernetes service also goes by
  `reviews.shop` and `reviews.shop.svc`, so `reviews.shop` is that one service, `reviews.*` the service of
  that name in every namespace, and `*.shop` every service in the namespace `shop`. A bare `reviews`
  matches only a host with exactly this name, outside Kubernetes.
- `cluster` is the name of the Envoy cluster as it is, such as `outbound|9080||*`.
- `route` is the name of the Envoy route. A rule with it costs one more look-up for each request.

## Clusters that lead to several destinations

A dynamic forward proxy is one Envoy cluster for all hosts that requests name. A cluster of the type original
destination is similar. These hosts have nothing in common: if one is dead, the others need not be.
Envoy does not tell the filter what kind of cluster it is, so say it in a rule:

```json
{{\"match\": {{\"cluster\": \"dynamic_forward_proxy_cluster\"}}, \"keyBy\": \"authority\"}}
```

- `authority` keeps a state for each value of `:authority`, with its port, in lower case. Each worker learns and decides
  on its own, and the limit is the worker's: names that callers choose must not fill the memory that workers share. At
  most `maxDestinations` have a state in a worker; one that was idle for a minute is replaced. Requests to others pass
  without a decision and count in `tidegate_destinations_overflow_total`. All other counters are those of the cluster,
  and there are no gauges. For each request, the filter reads one more header.
- `none` lets all requests of the cluster pass. Nothing is learned and nothing counted.
- `auto`, the default, is `none` for those of Istio's clusters whose names say that they lead to several destinations:
  `PassthroughCluster`, `InboundPassthroughCluster`, `BlackHoleCluster`, `AllowAnyDynamicDNSCluster`, and services with a wildcard for
  a host (`outbound|443||*.example.com`). It is `cluster` for all others, including any other dynamic forward proxy.

The caller chooses the authority. A caller that uses many names for one destination is not shed there. A caller that
names more destinations than `maxDestinations` removes the protection of others, but does not cause their requests to
fail.

## Overload signals

An answer that says \"too busy\" does not mean that the upstream is dead, so it does not open the breaker. It lowers the
limit if such answers come with load, as failures do. By default these answers are 429, 503 with `retry-after`, and
gRPC's RESOURCE_EXHAUSTED; your service may use others. A status that is not in the lists has its usual meaning: a 5xx
is a failure; a 4xx and gRPC's RESOURCE_EXHAUSTED say nothing about the upstream. A list replaces the whole default;
with an empty list nothing is a signal. A service that answers 429 to a caller above its quota, whatever the load, gives
no such signal:

```json
{{\"match\": {{\"service\": \"quota.*\"}}, \"overload\": {{\"statuses\": []}}}}
```

## Criticality

The classes, from the first shed to the last, are `sheddable`, `sheddable_plus`, `critical` and
`critical_plus`. The header takes precedence, then the first rule whose conditions all hold (at least one is needed),
then the default. Only the inputs that are configured are read.

## Example

```json
{full}
```
",
        minimal = MINIMAL_EXAMPLE,
        rows = rows(FIELDS),
        native = rows(NATIVE_FIELDS),
        kib = MAX_DOCUMENT_BYTES / 1024,
        entries = MAX_ENTRIES,
        rules = MAX_RULES,
        full = FULL_EXAMPLE,
    )
}

struct FieldRow<'a>(&'a Field);

impl fmt::Display for FieldRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (takes, default) = takes_and_default(&self.0.values);
        writeln!(
            f,
            "| `{}` | {} | {} | {} | {} |",
            self.0.path,
            takes,
            default,
            if self.0.is_per_upstream { "yes" } else { "" },
            self.0.doc
        )
    }
}

/// The two middle columns. Expected values are shown as in error messages.
fn takes_and_default(values: &Values) -> (String, String) {
    match values {
        Values::Flag(flag) => ("true or false".to_owned(), code(&flag.default)),
        Values::Choice { names, default } => (OneOf(*names).to_string(), quoted_or_none(*default)),
        Values::Fraction(fraction) => (
            fraction.to_string(),
            fraction.default.map_or_else(required, |value| code(&value)),
        ),
        Values::Count(count) => (count.to_string(), code(&count.default)),
        Values::Bound(bound) => (bound.to_string(), "no bound".to_owned()),
        Values::Span(span) => (
            span.to_string(),
            span.default.map_or_else(required, |value| {
                quoted_or_none(Some(&Readable(value).to_string()))
            }),
        ),
        Values::Text { expected, default } => ((*expected).to_owned(), quoted_or_none(*default)),
        Values::Numbers(numbers) => (
            format!("each {numbers}"),
            match numbers.default {
                [] => "none".to_owned(),
                numbers => {
                    let shown: Vec<String> = numbers.iter().map(|number| code(number)).collect();
                    shown.join(", ")
                }
            },
        ),
        Values::Texts { expected, default } => (
            format!("each {expected}"),
            match default {
                [] => "none".to_owned(),
                texts => {
                    let shown: Vec<String> =
                        texts.iter().map(|t| quoted_or_none(Some(t))).collect();
                    shown.join(", ")
                }
            },
        ),
    }
}

fn required() -> String {
    "**required**".to_owned()
}

fn code(value: &dyn fmt::Display) -> String {
    format!("`{value}`")
}

fn quoted_or_none(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!("`\"{text}\"`"))
}
