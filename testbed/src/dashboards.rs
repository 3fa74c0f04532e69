//! What the dashboard and the alerting rules in `dashboards/` ask Prometheus for.
//!
//! A query for a missing metric is not an error: its panel stays empty, or its alert never fires. So tests collect every name
//! in these files and look for it where Prometheus would.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use serde_json::{Value, json};

use crate::envoy::repository;

/// What every name of ours begins with.
const OURS: &str = "tidegate";
/// Metrics of the control service; all others are the filter's.
const CONTROL: &str = "tidegate_control_";
/// Suffixes of the series that Prometheus makes from one histogram.
const HISTOGRAM: [&str; 3] = ["_bucket", "_sum", "_count"];

/// Names in the dashboard and the rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DashboardNames {
    /// Metrics of the filter, with their prefix.
    pub filter: BTreeSet<String>,
    /// Metrics of the control service, without the endings of histograms.
    pub control: BTreeSet<String>,
    /// Labels of the filter's metrics that the queries use.
    pub labels: BTreeSet<String>,
    /// Recorded series that the queries use.
    pub records: BTreeSet<String>,
    /// Recorded series that the rules make.
    pub recorded: BTreeSet<String>,
}

impl DashboardNames {
    /// Reads `dashboards/`.
    ///
    /// # Errors
    /// When a file cannot be read, or the dashboard is not JSON.
    pub fn read() -> io::Result<Self> {
        let folder = repository().join("dashboards");
        let board = fs::read_to_string(folder.join("grafana/tidegate.json"))?;
        let rules = fs::read_to_string(folder.join("prometheus/rules.yaml"))?;
        let tags = fs::read_to_string(folder.join("stats-tags/envoy.yaml"))?;
        let mut names = Self::default();
        let labels = values(&tags, "- tag_name:");
        let board: Value = serde_json::from_str(&board)?;
        strings(&board, &mut |text| names.add(text, &labels));
        for line in rules.lines().filter(|line| !line.trim().starts_with('#')) {
            names.add(line, &labels);
        }
        names.recorded = values(&rules, "- record:");
        Ok(names)
    }

    fn add(&mut self, text: &str, labels: &BTreeSet<String>) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        for name in text.split(|c| !is_part(c)) {
            let Some(rest) = name.strip_prefix(OURS) else {
                continue;
            };
            if labels.contains(name) {
                self.labels.insert(name.to_owned());
            } else if rest.starts_with(':') {
                self.records.insert(name.to_owned());
            } else if name.starts_with(CONTROL) {
                let ending = HISTOGRAM.iter().find_map(|end| name.strip_suffix(end));
                self.control.insert(ending.unwrap_or(name).to_owned());
            } else if rest.starts_with('_') {
                self.filter.insert(name.to_owned());
            }
        }
    }
}

/// The names of the labels that `dashboards/stats-tags` makes, in the order of `file`: `envoy`, `istio-mesh`.
///
/// # Errors
/// When the file cannot be read.
pub fn tags(file: &str) -> io::Result<Vec<String>> {
    let path = repository().join(format!("dashboards/stats-tags/{file}.yaml"));
    let text = fs::read_to_string(path)?;
    let lines = text.lines().map(str::trim);
    let name = |line: &str| {
        let name = line
            .strip_prefix("- tag_name: ")
            .or_else(|| line.strip_prefix("- "))?;
        name.starts_with(OURS).then(|| name.to_owned())
    };
    Ok(lines.filter_map(name).collect())
}

/// The published `stats_config` of a bootstrap: the `stats_tags` that make labels.
///
/// # Errors
/// When the file cannot be read.
pub fn stats_config() -> io::Result<Value> {
    let text = fs::read_to_string(repository().join("dashboards/stats-tags/envoy.yaml"))?;
    let value_of = |key: &str, line: &str| {
        let value = line.trim().trim_start_matches("- ").strip_prefix(key)?;
        let value = value.trim();
        // A quoted text in YAML is one in JSON.
        Some(serde_json::from_str(value).unwrap_or_else(|_| value.to_owned()))
    };
    let names = text.lines().filter_map(|line| value_of("tag_name:", line));
    let regexes = text.lines().filter_map(|line| value_of("regex:", line));
    let tags: Vec<Value> = names
        .zip(regexes)
        .map(|(name, regex): (String, String)| json!({"tag_name": name, "regex": regex}))
        .collect();
    Ok(json!({"stats_tags": tags}))
}

/// The values of `key` in the lines of a text.
fn values(text: &str, key: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix(key))
        .map(|value| value.trim().to_owned())
        .collect()
}

/// Calls `each` with every text in a document.
fn strings(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, each)),
        Value::Object(members) => members.values().for_each(|member| strings(member, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let labels = BTreeSet::from(["tidegate_upstream".to_owned()]);
        let mut names = DashboardNames::default();
        names.add(
            "max by (tidegate_upstream) (tidegate_limit) / tidegate:shed:rate5m, see `tidegate status`",
            &labels,
        );
        names.add("rate(tidegate_control_push_seconds_bucket[5m])", &labels);
        let set = |name: &str| BTreeSet::from([name.to_owned()]);
        assert_eq!(names.filter, set("tidegate_limit"));
        assert_eq!(names.labels, set("tidegate_upstream"));
        assert_eq!(names.records, set("tidegate:shed:rate5m"));
        assert_eq!(names.control, set("tidegate_control_push_seconds"));
    }

    #[test]
    fn every_recorded_series_that_is_asked_for_is_made() {
        let names = DashboardNames::read().unwrap();
        let missing: Vec<_> = names.records.difference(&names.recorded).collect();
        assert!(missing.is_empty(), "no rule records {missing:?}");
        assert!(
            names.filter.len() > 20 && names.control.len() > 3,
            "{names:?}"
        );
    }

    #[test]
    fn every_metric_of_the_filter_that_is_asked_for_is_documented() {
        let page = fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
        let names = DashboardNames::read().unwrap();
        let is_there = |name: &&String| page.contains(&format!("| `{name}` |"));
        let missing: Vec<_> = names.filter.iter().filter(|name| !is_there(name)).collect();
        assert!(missing.is_empty(), "not in docs/metrics.md: {missing:?}");
    }

    #[test]
    fn all_files_make_the_same_labels() {
        let envoy = tags("envoy").unwrap();
        assert_eq!(envoy, tags("istio-mesh").unwrap());
        assert!(envoy.len() > 4, "{envoy:?}");
        let config = stats_config().unwrap();
        let listed = config.pointer("/stats_tags").and_then(Value::as_array);
        assert_eq!(listed.map(Vec::len), Some(envoy.len()));
    }
}
