//! What the service says of itself to Prometheus.
//!
//! What events change is counted when they happen; what can be read off the fleet (states, versions) is
//! worked out when somebody asks, under one lock, so that an answer holds the world of one moment.

pub mod reference;
pub mod table;
mod versions;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

use crate::fleet::{Arrival, ProxyRecord};
use crate::kube::Counts;
use crate::net::{Look, Turned};
use table::Meaning;

/// Shortest push that has a bucket of its own, in seconds, by how much each bucket grows, and how many.
const PUSH_BUCKETS: (f64, f64, u16) = (0.001, 2.0, 16);

/// All metrics; see [`Metrics::text`].
#[derive(Debug)]
pub struct Metrics {
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
    kube: Counts,
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

impl Default for Metrics {
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
            kube: Counts::default(),
        };
        let registry = metrics.registered();
        Self {
            registry: Mutex::new(registry),
            ..metrics
        }
    }
}

impl Metrics {
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

    /// What is counted of the work in Kubernetes.
    #[must_use]
    pub fn kube(&self) -> Counts {
        self.kube.clone()
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

    pub(crate) fn connected(&self, arrival: &Arrival, change: i64) {
        let labels = StreamLabels {
            api: arrival.api.name(),
            dialect: arrival.dialect,
        };
        self.streams.get_or_create(&labels).inc_by(change);
    }

    pub(crate) fn pushed(&self) {
        self.pushes.inc();
    }

    pub(crate) fn accepted(&self, waited: Option<Duration>) {
        self.answer("accepted");
        if let Some(waited) = waited {
            self.push_seconds.observe(waited.as_secs_f64());
        }
    }

    pub(crate) fn refused(&self) {
        self.answer("refused");
    }

    pub(crate) fn stale(&self) {
        self.answer("stale");
    }

    /// How many policies a source holds and how many errors it has.
    pub(crate) fn source(&self, source: &'static str, policies: usize, problems: usize) {
        let labels = SourceLabels { source };
        self.policies.get_or_create(&labels).set(count(policies));
        self.problems.get_or_create(&labels).set(count(problems));
    }

    /// An error has appeared that keeps something from being rendered.
    pub(crate) fn render_error(&self) {
        self.render_errors.inc();
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
    pub(crate) fn reloaded(&self, file: &'static str, look: Look) {
        let outdated = self.outdated.get_or_create(&FileLabels { file });
        let result = match look {
            Look::Same => return,
            Look::Taken => "taken",
            Look::Refused => "refused",
        };
        outdated.set(i64::from(look == Look::Refused));
        let labels = ReloadLabels { file, result };
        self.reloads.get_or_create(&labels).inc();
    }

    /// A connection that was not served, or no longer.
    pub(crate) fn turned(&self, port: &'static str, turned: Turned) {
        let reason = turned.name();
        let labels = TurnedLabels { port, reason };
        self.turned.get_or_create(&labels).inc();
    }

    fn answer(&self, verdict: &'static str) {
        self.answers.get_or_create(&AnswerLabels { verdict }).inc();
    }
}

pub(crate) fn register(registry: &mut Registry, meaning: &Meaning, metric: &(impl Metric + Clone)) {
    registry.register(meaning.name, meaning.help, metric.clone());
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::{Api, ResourceRecord};

    /// The text when every metric has something to say.
    fn full() -> String {
        let metrics = Metrics::default();
        let arrival = Arrival {
            api: Api::Ecds,
            dialect: "sotw",
            peer: String::new(),
        };
        metrics.connected(&arrival, 1);
        metrics.source("files", 1, 1);
        metrics.certificate("served", Some(1));
        metrics.reloaded("token", Look::Taken);
        metrics.turned("xds", Turned::Silent);
        metrics.accepted(None);
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
        let metrics = Metrics::default();
        let series = "certificate_not_after_timestamp_seconds{certificate=\"authority\"} 7";
        metrics.certificate("authority", Some(7));
        assert!(metrics.text(&[]).contains(series));

        metrics.certificate("authority", None);

        assert!(!metrics.text(&[]).contains("authority"));
    }
}
