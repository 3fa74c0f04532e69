//! The metrics reference and Envoy's `stats_tags`, generated from the table.

use std::fmt::Write as _;

use super::table::{ALL, Metric, PREFIX};
use crate::api::MetricKind;

/// The prefix of the plugin's metrics in Envoy.
const ENVOY_PREFIX: &str = "wasmcustom.";

/// Labels that stand in names.
fn labels() -> Vec<&'static str> {
    let mut labels = vec!["upstream", "route", "plugin"];
    for label in ALL.iter().filter_map(|metric| metric.label) {
        if !labels.contains(&label.name) {
            labels.push(label.name);
        }
    }
    labels
}

/// The regular expression that takes a label out of a metric's name: Envoy removes the first group from the name
/// and takes the second as the value. What two labels share, the semicolon between them, is removed once.
fn regex(label: &str) -> String {
    format!("^wasmcustom\\\\.{PREFIX}.*?(;{label}=(.*?);)")
}

/// `stats_tags` for a bootstrap, as YAML.
#[must_use]
pub fn stats_tags() -> String {
    let mut text = String::from(
        "\
# Labels for Tidegate's metrics: put this into the bootstrap, at the top level.
# Generated from filter/src/metrics; refresh with
#   cargo run -p tidegate-filter --example metrics -- stats-tags > examples/envoy/stats-tags.yaml
stats_config:
  stats_tags:
",
    );
    for label in labels() {
        let _ = writeln!(
            text,
            "  - tag_name: tidegate.{label}\n    regex: \"{}\"",
            regex(label)
        );
    }
    text
}

/// The reference as Markdown.
#[must_use]
pub fn markdown() -> String {
    let rows: String = ALL.iter().map(row).collect();
    format!(
        "\
# Metrics

<!-- Generated from filter/src/metrics. Do not edit; refresh with
     cargo run -p tidegate-filter --example metrics -- reference > docs/metrics.md -->

The filter publishes its metrics through Envoy: they are in `/stats` and `/stats/prometheus` of the admin interface
and go wherever Envoy's own go. Envoy's WebAssembly metrics carry no labels, so labels stand in the name:

```text
{ENVOY_PREFIX}{PREFIX}requests_shed_total;upstream=outbound|80||web.shop.svc.cluster.local;reason=limit;
```

With the `stats_tags` of `examples/envoy/stats-tags.yaml` in the bootstrap, Envoy takes them out of the name and
Prometheus sees `tidegate_requests_shed_total{{tidegate_upstream=\"web\",tidegate_reason=\"limit\"}}`: the prefix goes too.

- `upstream` is the name of the Envoy cluster. Where the configuration matches on routes, `route` is the route's name.
- `plugin` is the plugin's name, where that is not `tidegate`: two plugins that guard the same upstream keep
  counts and limits of their own.
- A counter is the sum over all workers. A metric appears when it first has something to say, so a missing counter
  is 0. Values are published ten times a second, and Envoy flushes them to its sinks as it does its own.
- Envoy never forgets a metric. At most `maxUpstreams` upstreams ever get metrics of their own in the life of a
  process; the rest count as the upstream `_overflow`.

| metric | kind | labels | meaning |
|---|---|---|---|
{rows}"
    )
}

fn row(metric: &Metric) -> String {
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
    };
    let mut labels = Vec::new();
    if metric.per_upstream {
        labels.push("`upstream`".to_owned());
    }
    if let Some(label) = metric.label {
        let values: Vec<_> = label
            .values
            .iter()
            .map(|value| format!("`{value}`"))
            .collect();
        labels.push(format!("`{}`: {}", label.name, values.join(", ")));
    }
    format!(
        "| `{PREFIX}{}` | {kind} | {} | {} |\n",
        metric.name,
        labels.join("; "),
        metric.help
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, fs};

    fn committed(path: &str) -> String {
        let root = env!("CARGO_MANIFEST_DIR");
        fs::read_to_string(format!("{root}/../{path}")).unwrap_or_default()
    }

    #[test]
    fn the_reference_in_docs_is_the_tables() {
        assert_eq!(
            committed("docs/metrics.md"),
            markdown(),
            "refresh with: cargo run -p tidegate-filter --example metrics -- reference > docs/metrics.md"
        );
    }

    #[test]
    fn the_published_stats_tags_are_the_tables() {
        assert_eq!(
            committed("examples/envoy/stats-tags.yaml"),
            stats_tags(),
            "refresh with: cargo run -p tidegate-filter --example metrics -- stats-tags > examples/envoy/stats-tags.yaml"
        );
    }
}
