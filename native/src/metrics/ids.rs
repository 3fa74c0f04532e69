//! Metrics as Envoy knows them.
//!
//! Envoy wants labels by name, all defined before a configuration is in force. So each metric is defined once for each set of
//! labels that it can have.

use std::collections::HashMap;

use tidegate_worker::api::MetricKind;
use tidegate_worker::metrics::description::Metric;
use tidegate_worker::metrics::table::{ALL, INFO, INFO_LABELS, OF_HOSTS, PREFIX};

use crate::abi::{self, Buffer, EnvoyPtr, METRICS_SUCCESS, log, log_level};
use crate::descriptions::signature;

/// Envoy's numbers for all metrics of a configuration, by name and labels.
#[derive(Debug, Default)]
pub(crate) struct MetricIds(pub(super) HashMap<String, usize>);

impl MetricIds {
    /// Defines all metrics. Only while Envoy makes the configuration.
    pub(crate) fn define(config: EnvoyPtr) -> Self {
        let mut ids = HashMap::new();
        for metric in ALL.iter().chain(&OF_HOSTS) {
            for labels in label_sets(metric) {
                let name = format!("{PREFIX}{}", metric.name);
                let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                match define(config, metric.kind, &name, &labels) {
                    Some(id) => {
                        ids.insert(signature(&name, &labels), id);
                    }
                    None => log(
                        log_level::WARN,
                        &format!("tidegate: Envoy rejects the metric {name}"),
                    ),
                }
            }
        }
        Self(ids)
    }
}

/// The labels that a metric can have, in the order in which they stand in names.
pub(crate) fn label_sets(metric: &Metric) -> Vec<Vec<String>> {
    let label = |name: &str| format!("{PREFIX}{name}");
    let upstreams: &[&[&str]] = if metric.per_upstream {
        &[&["upstream"], &["upstream", "route"]]
    } else if metric.name == INFO.name {
        &[&INFO_LABELS]
    } else {
        &[&[]]
    };
    let plugins: &[&[&str]] = &[&[], &["plugin"]];
    upstreams
        .iter()
        .flat_map(|upstream| {
            plugins.iter().map(|plugin| {
                let own = metric.label.iter().map(|label| label.name);
                let all = upstream
                    .iter()
                    .copied()
                    .chain(own)
                    .chain(plugin.iter().copied());
                all.map(label).collect()
            })
        })
        .collect()
}

fn define(config: EnvoyPtr, kind: MetricKind, name: &str, labels: &[&str]) -> Option<usize> {
    let labels: Vec<Buffer> = labels.iter().map(|it| Buffer::of(it.as_bytes())).collect();
    let name = Buffer::of(name.as_bytes());
    let mut id = 0;
    // SAFETY: the hook under way gave the configuration; Envoy reads the names during the call.
    let result = unsafe {
        match kind {
            MetricKind::Counter => {
                abi::envoy_dynamic_module_callback_http_filter_config_define_counter(
                    config,
                    name,
                    labels.as_ptr(),
                    labels.len(),
                    &raw mut id,
                )
            }
            MetricKind::Gauge => {
                abi::envoy_dynamic_module_callback_http_filter_config_define_gauge(
                    config,
                    name,
                    labels.as_ptr(),
                    labels.len(),
                    &raw mut id,
                )
            }
        }
    };
    (result == METRICS_SUCCESS).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptions::{Descriptions, NameParts};
    use tidegate_core::UpstreamKey;
    use tidegate_worker::metrics::name::{Naming, upstream_labels};

    #[test]
    fn every_name_has_a_signature_that_is_defined() {
        let key = |route: Option<&str>| UpstreamKey {
            cluster: "outbound|80||web.shop".to_owned(),
            route: route.map(str::to_owned),
        };
        for plugin in ["tidegate", "other"] {
            for metric in ALL.iter().chain(&OF_HOSTS) {
                let upstreams = if metric.per_upstream {
                    vec![
                        upstream_labels(&key(None)),
                        upstream_labels(&key(Some("r"))),
                    ]
                } else if metric.name == INFO.name {
                    vec!["tidegate_version=.=1;.;tidegate_config=.=2;.;".to_owned()]
                } else {
                    vec![String::new()]
                };
                for upstream in upstreams {
                    let value = metric
                        .label
                        .map(|label| *label.values.first().unwrap_or(&"[::1]:80"));
                    let name = Naming::of_plugin(plugin).name(metric, &upstream, value);
                    let found = NameParts::of(&name);
                    let number = Descriptions::default().number(metric.kind, &name, |_| true);
                    assert!(number.is_some(), "{name}");
                    let known = label_sets(metric).into_iter().any(|labels| {
                        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
                        let name = format!("{PREFIX}{}", metric.name);
                        signature(&name, &labels) == found.signature()
                    });
                    assert!(known, "{name}: {found:?}");
                }
            }
        }
    }
}
