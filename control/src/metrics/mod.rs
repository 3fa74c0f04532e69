//! The metrics of the service for Prometheus.
//!
//! The other modules report events, which are counted when they happen. The states and versions of proxies are computed
//! for each scrape, under one lock, so that a scrape is consistent.

mod kube;
mod labels;
mod record;
pub mod reference;
mod registration;
pub mod table;
mod traffic;
mod versions;

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use self::kube::KubeMetrics;
use self::labels::{
    AnswerLabels, BuildLabels, CertificateLabels, FileLabels, ReloadLabels, SourceLabels,
    StateLabels, StreamLabels, TurnedLabels, VersionLabels,
};
use self::registration::register;
use self::traffic::TrafficMetrics;
use crate::about;
use crate::fleet::ProxyRecord;

/// The buckets of push times: the smallest in seconds, their growth factor, and their number.
const PUSH_BUCKETS: (f64, f64, u16) = (0.001, 2.0, 16);

/// All metrics; see [`ControlMetrics::text`].
#[derive(Debug)]
pub struct ControlMetrics {
    registry: Mutex<Registry>,
    streams: Family<StreamLabels, Gauge>,
    proxies: Gauge,
    resources: Family<StateLabels, Gauge>,
    running: Family<VersionLabels, Gauge>,
    pushes: Counter,
    answers: Family<AnswerLabels, Counter>,
    push_seconds: Histogram,
    policies: Family<SourceLabels, Gauge>,
    problems: Family<SourceLabels, Gauge>,
    disabled: Gauge,
    policies_disabled: Gauge,
    render_errors: Counter,
    certificates: Family<CertificateLabels, Gauge>,
    reloads: Family<ReloadLabels, Counter>,
    outdated: Family<FileLabels, Gauge>,
    turned: Family<TurnedLabels, Counter>,
    kube: KubeMetrics,
    traffic: TrafficMetrics,
}

impl Default for ControlMetrics {
    fn default() -> Self {
        let (first, factor, count) = PUSH_BUCKETS;
        let metrics = Self {
            registry: Mutex::default(),
            streams: Family::default(),
            proxies: Gauge::default(),
            resources: Family::default(),
            running: Family::default(),
            pushes: Counter::default(),
            answers: Family::default(),
            push_seconds: Histogram::new(exponential_buckets(first, factor, count)),
            policies: Family::default(),
            problems: Family::default(),
            disabled: Gauge::default(),
            policies_disabled: Gauge::default(),
            render_errors: Counter::default(),
            certificates: Family::default(),
            reloads: Family::default(),
            outdated: Family::default(),
            turned: Family::default(),
            kube: KubeMetrics::default(),
            traffic: TrafficMetrics::default(),
        };
        let registry = metrics.registered();
        Self {
            registry: Mutex::new(registry),
            ..metrics
        }
    }
}

impl ControlMetrics {
    fn registered(&self) -> Registry {
        let mut registry = Registry::with_prefix(table::PREFIX);
        let build = Family::<BuildLabels, Gauge>::default();
        let labels = BuildLabels {
            version: about::VERSION,
            commit: about::COMMIT,
        };
        build.get_or_create(&labels).set(1);
        let to = &mut registry;
        register(to, &table::BUILD, &build);
        register(to, &table::STREAMS, &self.streams);
        register(to, &table::PROXIES, &self.proxies);
        register(to, &table::RESOURCES, &self.resources);
        register(to, &table::VERSIONS, &self.running);
        register(to, &table::PUSHES, &self.pushes);
        register(to, &table::ANSWERS, &self.answers);
        register(to, &table::PUSH_SECONDS, &self.push_seconds);
        register(to, &table::POLICIES, &self.policies);
        register(to, &table::PROBLEMS, &self.problems);
        register(to, &table::DISABLED, &self.disabled);
        register(to, &table::POLICIES_DISABLED, &self.policies_disabled);
        register(to, &table::RENDER_ERRORS, &self.render_errors);
        register(to, &table::CERTIFICATES, &self.certificates);
        register(to, &table::RELOADS, &self.reloads);
        register(to, &table::OUTDATED, &self.outdated);
        register(to, &table::TURNED, &self.turned);
        self.traffic.register(to);
        self.kube.register(to);
        registry
    }

    /// All metrics in OpenMetrics text format; `proxies` are the connected ones.
    #[must_use]
    pub fn text(&self, proxies: &[ProxyRecord]) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let ids: BTreeSet<&str> = proxies.iter().map(|proxy| proxy.id.as_str()).collect();
        self.proxies.set(count(ids.len()));
        for (state, number) in ProxyRecord::states(proxies) {
            let labels = StateLabels { state };
            self.resources.get_or_create(&labels).set(count(number));
        }
        // Remove the series of versions that no proxy runs now.
        self.running.clear();
        for (version, number) in versions::most_frequent(proxies, table::MAX_VERSIONS) {
            let labels = VersionLabels { version };
            self.running.get_or_create(&labels).set(count(number));
        }
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::fleet::{DiscoveryApi, FleetEvent, ResourceRecord};
    use crate::net::{PortEvent, ReloadOutcome, TurnedAway};
    use crate::source::SourceEvent;

    /// A text in which every metric has a series.
    fn full() -> String {
        let metrics = Arc::new(ControlMetrics::default());
        metrics.fleet().send(FleetEvent::Connected {
            api: DiscoveryApi::Ecds,
            dialect: "sotw",
        });
        metrics.sources().send(SourceEvent::Counted {
            source: "files",
            policies: 1,
            problems: 1,
        });
        metrics.certificate("served", Some(1));
        metrics.reloaded("token", ReloadOutcome::Accepted);
        metrics.ports().send(PortEvent::TurnedAway {
            port: "xds",
            reason: TurnedAway::Silent,
        });
        metrics.fleet().send(FleetEvent::Accepted { waited: None });
        let resource = ("tidegate".to_owned(), ResourceRecord::default());
        let proxy = ProxyRecord {
            resources: [resource].into(),
            ..ProxyRecord::default()
        };
        metrics.text(&[proxy])
    }

    #[test]
    fn served_metrics_match_the_table() {
        let text = full();
        let described: Vec<String> = table::TABLE
            .iter()
            .flat_map(|meaning| {
                let name = format!("{}_{}", table::PREFIX, meaning.name);
                [
                    format!("# HELP {name} {}.", meaning.help),
                    format!("# TYPE {name} {}", meaning.kind.name()),
                ]
            })
            .collect();

        let served: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("# HELP") || line.starts_with("# TYPE"))
            .collect();

        for line in &described {
            assert!(
                served.contains(&line.as_str()),
                "not served: {line}\n{text}"
            );
        }
        for line in &served {
            let is_described = described.iter().any(|known| known == line);
            assert!(is_described, "not in control/src/metrics/table.rs: {line}");
        }
    }

    #[test]
    fn served_labels_match_the_table() {
        let text = full();

        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let found: BTreeSet<&str> = line
                .split_once('{')
                .and_then(|(_, rest)| rest.split_once('}'))
                .map(|(labels, _)| labels.split(','))
                .into_iter()
                .flatten()
                .filter_map(|label| label.split_once('='))
                .map(|(label, _)| label)
                .filter(|label| *label != "le")
                .collect();
            let meaning = table::TABLE
                .iter()
                .filter(|m| name.starts_with(&format!("{}_{}", table::PREFIX, m.name)))
                .max_by_key(|m| m.name.len());
            let expected: BTreeSet<&str> = meaning
                .map(|m| m.labels.iter().map(|(label, _)| *label).collect())
                .unwrap_or_default();
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn a_removed_certificate_has_no_series() {
        let metrics = ControlMetrics::default();
        let series = "certificate_not_after_timestamp_seconds{certificate=\"authority\"} 7";
        metrics.certificate("authority", Some(7));
        assert!(metrics.text(&[]).contains(series));

        metrics.certificate("authority", None);

        assert!(!metrics.text(&[]).contains("authority"));
    }
}
