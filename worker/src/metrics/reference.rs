//! The metrics reference and Envoy's `stats_tags`, generated from the table.

use std::fmt::Write as _;

use super::description::Metric;
use super::table::{ALL, INFO, INFO_LABELS, OF_HOSTS, PREFIX};
use crate::api::MetricKind;

/// The prefix of the plugin's metrics in Envoy.
const ENVOY_PREFIX: &str = "wasmcustom.";

/// Labels that stand in names.
fn labels() -> Vec<&'static str> {
    let mut labels = vec!["upstream", "route", "plugin"];
    for metric in &ALL {
        let label = metric.label.iter().map(|label| label.name);
        for name in label.chain(free_labels(metric).iter().copied()) {
            if !labels.contains(&name) {
                labels.push(name);
            }
        }
    }
    labels
}

/// Labels of a metric whose values are no closed set, but for its upstream.
fn free_labels(metric: &Metric) -> &'static [&'static str] {
    if metric.name == INFO.name {
        &INFO_LABELS
    } else {
        &[]
    }
}

/// The tag of a label, which is also its name in Prometheus.
fn tag(label: &str) -> String {
    format!("{PREFIX}{label}")
}

/// The regular expression that takes a label out of a metric's name: Envoy removes the first group from the name
/// and takes the second as the value. Istio makes the same of a tag's name, without the anchor.
fn regex(label: &str) -> String {
    format!("^wasmcustom\\\\..*?({}=\\\\.=(.*?);\\\\.;)", tag(label))
}

/// A generated file with labels for Envoy or Istio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagsFile {
    /// `stats_tags` for the bootstrap of an Envoy.
    Envoy,
    /// `extraStatTags` in the mesh configuration of Istio: all its proxies.
    IstioMesh,
    /// The annotation for the pods of one workload.
    IstioPod,
}

impl TagsFile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Envoy, Self::IstioMesh, Self::IstioPod];

    /// The name by which it is asked for.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Envoy => "envoy",
            Self::IstioMesh => "istio-mesh",
            Self::IstioPod => "istio-pod",
        }
    }

    /// What stands in it, as YAML.
    #[must_use]
    pub fn text(self) -> String {
        let (purpose, members) = match self {
            Self::Envoy => (
                "Labels for Tidegate's metrics: put this into the bootstrap of an Envoy, at the top level.",
                stats_tags(),
            ),
            Self::IstioMesh => (
                "Labels for Tidegate's metrics in all proxies of a mesh, gateways and waypoints too: values for istiod's chart.\n# Proxies read it when they start.",
                mesh_config(),
            ),
            Self::IstioPod => (
                "Labels for Tidegate's metrics in the sidecars of one workload: for the template of its pods.",
                annotation(),
            ),
        };
        let name = self.name();
        format!(
            "# {purpose}\n# Generated from worker/src/metrics; refresh with\n#   cargo run -p tidegate-worker --example metrics -- {name} > dashboards/stats-tags/{name}.yaml\n{members}"
        )
    }
}

fn stats_tags() -> String {
    let mut text = String::from("stats_config:\n  stats_tags:\n");
    for label in labels() {
        let (tag, regex) = (tag(label), regex(label));
        let _ = writeln!(text, "  - tag_name: {tag}\n    regex: \"{regex}\"");
    }
    text
}

fn mesh_config() -> String {
    let mut text = String::from("meshConfig:\n  defaultConfig:\n    extraStatTags:\n");
    for label in labels() {
        let _ = writeln!(text, "    - {}", tag(label));
    }
    text
}

fn annotation() -> String {
    let tags: Vec<String> = labels().into_iter().map(tag).collect();
    format!(
        "metadata:\n  annotations:\n    sidecar.istio.io/extraStatTags: {}\n",
        tags.join(",")
    )
}

/// The reference as Markdown.
#[must_use]
pub fn markdown() -> String {
    let rows: String = ALL.iter().map(row).collect();
    let host_rows: String = OF_HOSTS.iter().map(row).collect();
    format!(
        "\
# Metrics

<!-- Generated from worker/src/metrics. Do not edit; refresh with
     cargo run -p tidegate-worker --example metrics -- reference > docs/metrics.md -->

The filter publishes its metrics through Envoy: they are in `/stats` and `/stats/prometheus` of the admin interface
and go wherever Envoy's own go. Envoy's WebAssembly metrics have no labels, so the labels are part of the name:

```text
{ENVOY_PREFIX}tidegate_upstream=.=outbound|80||web.shop.svc.cluster.local;.;tidegate_reason=.=limit;.;tidegate_requests_shed_total
```

With the `stats_tags` of `dashboards/stats-tags/envoy.yaml` in the bootstrap, Envoy removes them from the name and
Prometheus sees
`tidegate_requests_shed_total{{tidegate_upstream=\"outbound|80||web.shop.svc.cluster.local\",tidegate_reason=\"limit\"}}`:
the prefix goes too. In Istio the same comes from `dashboards/stats-tags/istio-mesh.yaml` for the whole mesh, or from
`dashboards/stats-tags/istio-pod.yaml` for one workload. All labels begin with `tidegate_`; the table leaves that out.

- `upstream` is the name of the Envoy cluster. Where the configuration matches on routes, `route` is the route's name.
- `plugin` is the plugin's name, where that is not `tidegate`: two plugins that guard the same upstream keep
  counts and limits of their own.
- A counter is the sum over all workers. A metric appears when it first has a value, so a missing counter is 0. Values
  are published ten times a second, by the native module twice, and Envoy flushes them to its sinks like its own.
- Envoy never removes a metric. At most `maxUpstreams` upstreams ever get metrics of their own in the life of a
  process; the rest count as the upstream `_overflow`.
- `tidegate_info` says what runs. `config` is the digest of the configuration; `tidegate render` and `tidegate status` print
  the same one. It does not depend on the order of keys, nor on how a control plane writes numbers.
- The destinations of a cluster with `keyBy: authority` share the counters of their cluster and have no gauges: no
  metric name contains what a caller sent.
- The native module can also publish the histograms `tidegate_latency_ms` and `tidegate_queue_ms`, by `upstream`
  ([how](native.md#histograms)).

| metric | kind | labels | meaning |
|---|---|---|---|
{rows}
## By upstream host

Only the native module has these, with its option `native.hosts` ([how](native.md#upstream-hosts)). The label `tidegate_host` is the address as Envoy has it, or
`_overflow` for all hosts of an upstream beyond that number.

| metric | kind | labels | meaning |
|---|---|---|---|
{host_rows}"
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
    labels.extend(free_labels(metric).iter().map(|label| format!("`{label}`")));
    if let Some(label) = metric.label {
        let values: Vec<_> = label
            .values
            .iter()
            .map(|value| format!("`{value}`"))
            .collect();
        labels.push(if values.is_empty() {
            format!("`{}`", label.name)
        } else {
            format!("`{}`: {}", label.name, values.join(", "))
        });
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
            "refresh with: cargo run -p tidegate-worker --example metrics -- reference > docs/metrics.md"
        );
    }

    #[test]
    fn the_published_tags_are_the_tables() {
        for file in TagsFile::ALL {
            let path = format!("dashboards/stats-tags/{}.yaml", file.name());
            assert_eq!(
                committed(&path),
                file.text(),
                "refresh {path} with: make docs"
            );
        }
    }
}
