//! The plugin's metrics, parsed from names that carry their labels.
//!
//! The native module has Envoy's own labels: `tidegate_<metric>`, then `.tidegate_<label>.<value>` for each.
//! Envoy's WebAssembly metrics have no labels, so the filter writes
//! `tidegate_<label>=.=<value>;.;` for each label, then `tidegate_<metric>`, and Envoy puts `wasmcustom.` in front.

use std::collections::BTreeMap;

/// One metric of the plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TidegateMetric {
    /// Name without prefix, for example `requests_shed_total`.
    pub name: String,
    /// Upstream and other labels.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: u64,
}

/// All metrics of the plugin at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics {
    metrics: Vec<TidegateMetric>,
}

impl Metrics {
    /// Picks the plugin's metrics out of Envoy's stats.
    #[must_use]
    pub fn parse(stats: &BTreeMap<String, u64>) -> Self {
        Self {
            metrics: stats
                .iter()
                .filter_map(|(name, value)| parse(name, *value))
                .collect(),
        }
    }

    /// Every metric.
    pub fn iter(&self) -> impl Iterator<Item = &TidegateMetric> {
        self.metrics.iter()
    }

    /// Whether there is any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.metrics.is_empty()
    }

    /// Sum of the metric `name` over all labels, of one `upstream` or (empty) of all; 0 without any.
    #[must_use]
    pub fn sum(&self, name: &str, upstream: &str) -> u64 {
        self.matching(name, upstream)
            .map(|metric| metric.value)
            .sum()
    }

    /// The value of `name` for `upstream` with exactly these further labels.
    #[must_use]
    pub fn value(&self, name: &str, upstream: &str, labels: &[(&str, &str)]) -> Option<u64> {
        let has = |metric: &&TidegateMetric| {
            labels
                .iter()
                .all(|(key, value)| metric.labels.get(*key).is_some_and(|found| found == value))
        };
        self.matching(name, upstream)
            .find(has)
            .map(|metric| metric.value)
    }

    fn matching(&self, name: &str, upstream: &str) -> impl Iterator<Item = &TidegateMetric> {
        self.metrics.iter().filter(move |metric| {
            let found = metric.labels.get("upstream").map(String::as_str);
            metric.name == name && (upstream.is_empty() || found == Some(upstream))
        })
    }
}

fn parse_native(stat: &str, value: u64) -> Option<TidegateMetric> {
    // A label's name is between two dots; a value may contain dots.
    let mut parts = stat.split(".tidegate_");
    let name = parts.next()?.strip_prefix("tidegate_")?.to_owned();
    let labels = parts
        .filter_map(|part| part.split_once('.'))
        .map(|(label, value)| (label.to_owned(), value.to_owned()))
        .collect();
    Some(TidegateMetric {
        name,
        labels,
        value,
    })
}

fn parse(stat: &str, value: u64) -> Option<TidegateMetric> {
    if let Some(stat) = stat.strip_prefix("dynamicmodulescustom.") {
        return parse_native(stat, value);
    }
    let mut parts: Vec<&str> = stat.strip_prefix("wasmcustom.")?.split(";.;").collect();
    let name = parts.pop()?.strip_prefix("tidegate_")?.to_owned();
    let labels = parts
        .into_iter()
        .filter_map(|part| part.strip_prefix("tidegate_")?.split_once("=.="))
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
    Some(TidegateMetric {
        name,
        labels,
        value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_back_out_of_the_name() {
        let stats = BTreeMap::from([
            ("wasmcustom.tidegate_upstream=.=outbound|80||web.svc;.;tidegate_reason=.=limit;.;tidegate_requests_shed_total".to_owned(), 3),
            ("wasmcustom.tidegate_upstream=.=outbound|80||web.svc;.;tidegate_reason=.=retry;.;tidegate_requests_shed_total".to_owned(), 4),
            ("cluster.main.upstream_rq".to_owned(), 9),
        ]);
        let metrics = Metrics::parse(&stats);
        let web = "outbound|80||web.svc";
        assert_eq!(metrics.sum("requests_shed_total", web), 7);
        assert_eq!(
            metrics.value("requests_shed_total", web, &[("reason", "retry")]),
            Some(4)
        );
        assert_eq!(metrics.value("limit", web, &[]), None);
    }
}
