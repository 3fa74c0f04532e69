//! What the service says of itself to Prometheus.
//!
//! What events change is counted when they happen; what can be read off the fleet (states, versions) is
//! worked out when somebody asks, under one lock, so that an answer holds the world of one moment.

mod kube;
pub mod reference;
mod registration;
pub mod table;
mod versions;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use self::kube::KubeMetrics;
use self::registration::register;
use crate::event::EventSink;
use crate::fleet::{DiscoveryApi, FleetEvent, ProxyRecord};
use crate::kube::KubeEvent;
use crate::net::{PortEvent, ReloadOutcome};
use crate::source::SourceEvent;

/// Shortest push that has a bucket of its own, in seconds, by how much each bucket grows, and how many.
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
    render_errors: Counter,
    certificates: Family<CertificateLabels, Gauge>,
    reloads: Family<ReloadLabels, Counter>,
    outdated: Family<FileLabels, Gauge>,
    turned: Family<TurnedLabels, Counter>,
    kube: KubeMetrics,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StreamLabels {
    api: &'static str,
    dialect: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    verdict: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    source: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VersionLabels {
    version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CertificateLabels {
    certificate: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReloadLabels {
    file: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FileLabels {
    file: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TurnedLabels {
    port: &'static str,
    reason: &'static str,
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
            render_errors: Counter::default(),
            certificates: Family::default(),
            reloads: Family::default(),
            outdated: Family::default(),
            turned: Family::default(),
            kube: KubeMetrics::default(),
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
        let version = env!("CARGO_PKG_VERSION");
        build.get_or_create(&BuildLabels { version }).set(1);
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
        register(to, &table::RENDER_ERRORS, &self.render_errors);
        register(to, &table::CERTIFICATES, &self.certificates);
        register(to, &table::RELOADS, &self.reloads);
        register(to, &table::OUTDATED, &self.outdated);
        register(to, &table::TURNED, &self.turned);
        self.kube.register(to);
        registry
    }

    /// Counts what happens on discovery streams.
    #[must_use]
    pub fn fleet(self: &Arc<Self>) -> EventSink<FleetEvent> {
        let metrics = Arc::clone(self);
        EventSink::new(move |event| metrics.record_fleet(event))
    }

    /// Counts what the sources of policies hold.
    #[must_use]
    pub fn sources(self: &Arc<Self>) -> EventSink<SourceEvent> {
        let metrics = Arc::clone(self);
        EventSink::new(move |event| metrics.record_source(event))
    }

    /// Counts connections that are closed without being served.
    #[must_use]
    pub fn ports(self: &Arc<Self>) -> EventSink<PortEvent> {
        let metrics = Arc::clone(self);
        EventSink::new(move |event| metrics.record_port(event))
    }

    /// Counts the work in Kubernetes.
    #[must_use]
    pub fn kube(&self) -> EventSink<KubeEvent> {
        let metrics = self.kube.clone();
        EventSink::new(move |event| metrics.record(event))
    }

    /// Everything in Prometheus' text format (OpenMetrics), with these proxies connected.
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
        // Versions that nobody runs any more must go.
        self.running.clear();
        for (version, number) in versions::most_run(proxies, table::MAX_VERSIONS) {
            let labels = VersionLabels { version };
            self.running.get_or_create(&labels).set(count(number));
        }
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }

    fn record_fleet(&self, event: FleetEvent) {
        match event {
            FleetEvent::Connected { api, dialect } => self.count_streams(api, dialect, 1),
            FleetEvent::Disconnected { api, dialect } => self.count_streams(api, dialect, -1),
            FleetEvent::Pushed => {
                self.pushes.inc();
            }
            FleetEvent::Accepted { waited } => {
                self.count_answer("accepted");
                if let Some(waited) = waited {
                    self.push_seconds.observe(waited.as_secs_f64());
                }
            }
            FleetEvent::Rejected => self.count_answer("rejected"),
            FleetEvent::Stale => self.count_answer("stale"),
        }
    }

    fn count_streams(&self, api: DiscoveryApi, dialect: &'static str, change: i64) {
        let labels = StreamLabels {
            api: api.name(),
            dialect,
        };
        self.streams.get_or_create(&labels).inc_by(change);
    }

    fn count_answer(&self, verdict: &'static str) {
        self.answers.get_or_create(&AnswerLabels { verdict }).inc();
    }

    fn record_source(&self, event: SourceEvent) {
        match event {
            SourceEvent::Counted {
                source,
                policies,
                problems,
            } => {
                let labels = SourceLabels { source };
                self.policies.get_or_create(&labels).set(count(policies));
                self.problems.get_or_create(&labels).set(count(problems));
            }
            SourceEvent::RenderError => {
                self.render_errors.inc();
            }
        }
    }

    fn record_port(&self, event: PortEvent) {
        let PortEvent::TurnedAway { port, reason } = event;
        let reason = reason.name();
        let labels = TurnedLabels { port, reason };
        self.turned.get_or_create(&labels).inc();
    }

    /// When the first of some certificates expires, in seconds since 1970; `None`: there are none.
    pub(crate) fn certificate(&self, certificate: &'static str, not_after: Option<i64>) {
        let labels = CertificateLabels { certificate };
        match not_after {
            Some(seconds) => {
                self.certificates.get_or_create(&labels).set(seconds);
            }
            None => {
                self.certificates.remove(&labels);
            }
        }
    }

    /// A look at a file that is read again while the service runs.
    pub(crate) fn reloaded(&self, file: &'static str, outcome: ReloadOutcome) {
        let outdated = self.outdated.get_or_create(&FileLabels { file });
        let result = match outcome {
            ReloadOutcome::Unchanged => return,
            ReloadOutcome::Accepted => "accepted",
            ReloadOutcome::Rejected => "rejected",
        };
        outdated.set(i64::from(outcome == ReloadOutcome::Rejected));
        let labels = ReloadLabels { file, result };
        self.reloads.get_or_create(&labels).inc();
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::ResourceRecord;
    use crate::net::TurnedAway;

    /// The text when every metric has something to say.
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
    fn what_is_served_is_what_the_table_says() {
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
    fn labels_are_those_of_the_table() {
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
    fn a_certificate_that_is_no_more_has_no_series() {
        let metrics = ControlMetrics::default();
        let series = "certificate_not_after_timestamp_seconds{certificate=\"authority\"} 7";
        metrics.certificate("authority", Some(7));
        assert!(metrics.text(&[]).contains(series));

        metrics.certificate("authority", None);

        assert!(!metrics.text(&[]).contains("authority"));
    }
}
