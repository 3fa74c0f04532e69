//! Names of metrics, with their labels in them.
//!
//! Envoy's WebAssembly metrics carry no labels; `stats_tags` take them out of the name. The form is the one that Istio's
//! proxies have a `stats_tag` for when a label is named in `extraStatTags`: `<label>=.=<value>;.;`, before the metric. It
//! also splits where Envoy shares parts of names, at the dots, so that a label costs its text once and not in every name.

use std::fmt::Write as _;

use tidegate_core::UpstreamKey;

use super::description::Metric;
use super::table::PREFIX;

/// The plugin's name that needs no label.
const DEFAULT_PLUGIN: &str = "tidegate";
/// A longer value is cut, and told apart by a hash. Envoy's own limit for cluster names is 60 by default, but
/// names in a mesh are longer.
const MAX_VALUE_BYTES: usize = 200;
/// What is kept of it.
const KEPT_BYTES: usize = 180;

/// The labels of one upstream, as they stand in a name: `tidegate_upstream=.=<cluster>;.;`, and the same for a route.
#[must_use]
pub fn upstream_labels(key: &UpstreamKey) -> String {
    let mut text = String::with_capacity(key.cluster.len() + 32);
    push_label(&mut text, "upstream", &key.cluster);
    if let Some(route) = &key.route {
        push_label(&mut text, "route", route);
    }
    text
}

/// How the names of one plugin are made. Two plugins of one proxy may guard the same upstream, each with a limit
/// of its own, and must not count into the same gauge: a plugin that is not called `tidegate` says its name.
#[derive(Clone, Debug)]
pub struct Naming {
    plugin: String,
}

impl Naming {
    /// The names of the plugin that the proxy's configuration calls `plugin`.
    #[must_use]
    pub fn of_plugin(plugin: &str) -> Self {
        let mut label = String::new();
        if plugin != DEFAULT_PLUGIN && !plugin.is_empty() {
            push_label(&mut label, "plugin", plugin);
        }
        Self { plugin: label }
    }

    /// The full name of `metric`. `upstream` is what [`upstream_labels`] made, empty for metrics of the plugin;
    /// `value` is that of the metric's own label.
    #[must_use]
    pub fn name(&self, metric: &Metric, upstream: &str, value: Option<&str>) -> String {
        let mut name =
            String::with_capacity(PREFIX.len() + metric.name.len() + upstream.len() + 96);
        name.push_str(upstream);
        if let (Some(label), Some(value)) = (metric.label, value) {
            push_label(&mut name, label.name, value);
        }
        name.push_str(&self.plugin);
        name.push_str(PREFIX);
        name.push_str(metric.name);
        name
    }
}

/// Whether this character, or byte of one, separates labels. It is never a part of another character.
const fn is_separator(byte: u8) -> bool {
    matches!(byte, b';' | b'\0' | b'\n')
}

pub(super) fn push_label(text: &mut String, label: &str, value: &str) {
    text.push_str(PREFIX);
    text.push_str(label);
    text.push_str("=.=");
    // What separates labels cannot stand in a value. Most values have none of it, and are copied as a whole.
    let clean = |text: &mut String, part: &str| {
        if part.bytes().any(is_separator) {
            let is_separator = |c| u8::try_from(c).is_ok_and(is_separator);
            text.extend(part.chars().map(|c| if is_separator(c) { '_' } else { c }));
        } else {
            text.push_str(part);
        }
    };
    if value.len() <= MAX_VALUE_BYTES {
        clean(text, value);
    } else {
        let mut end = KEPT_BYTES;
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        clean(text, value.get(..end).unwrap_or_default());
        // Writing to a string cannot fail.
        let _ = write!(text, "~{:016x}", UpstreamKey::hash(value, None));
    }
    text.push_str(";.;");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::table;

    fn key(cluster: &str, route: Option<&str>) -> UpstreamKey {
        UpstreamKey {
            cluster: cluster.to_owned(),
            route: route.map(str::to_owned),
        }
    }

    #[test]
    fn labels_stand_in_the_name() {
        let naming = Naming::of_plugin("tidegate");
        let upstream = upstream_labels(&key("outbound|80||web.shop.svc.cluster.local", None));
        assert_eq!(
            naming.name(&table::SHED, &upstream, Some("limit")),
            "tidegate_upstream=.=outbound|80||web.shop.svc.cluster.local;.;tidegate_reason=.=limit;.;tidegate_requests_shed_total"
        );
        assert_eq!(
            naming.name(&table::UPSTREAMS, "", None),
            "tidegate_upstreams"
        );
    }

    #[test]
    fn routes_and_other_plugins_have_labels_of_their_own() {
        let naming = Naming::of_plugin("shop.edge");
        let upstream = upstream_labels(&key("web", Some("nightly")));
        assert_eq!(
            naming.name(&table::LIMIT, &upstream, None),
            "tidegate_upstream=.=web;.;tidegate_route=.=nightly;.;tidegate_plugin=.=shop.edge;.;tidegate_limit"
        );
    }

    #[test]
    fn hostile_values_keep_names_whole_short_and_apart() {
        assert_eq!(
            upstream_labels(&key("a;b\0", None)),
            "tidegate_upstream=.=a_b_;.;"
        );
        let (one, other) = ("é".repeat(150), "é".repeat(151));
        let (one, other) = (
            upstream_labels(&key(&one, None)),
            upstream_labels(&key(&other, None)),
        );
        assert!(one.len() < 240 && other.len() < 240);
        assert_ne!(one, other);
    }
}
