//! What the service says of itself to Prometheus.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::fleet::Arrival;

/// Shortest push that has a bucket of its own, in seconds, and by how much each bucket grows.
const PUSH_BUCKETS: (f64, f64, u16) = (0.001, 2.0, 16);

/// All metrics; see [`Metrics::text`].
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    streams: Family<StreamLabels, Gauge>,
    pushes: Counter,
    answers: Family<AnswerLabels, Counter>,
    push_seconds: Histogram,
    policies: Family<SourceLabels, Gauge>,
    problems: Family<SourceLabels, Gauge>,
    proxies: Family<StateLabels, Gauge>,
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

impl Default for Metrics {
    fn default() -> Self {
        let (first, factor, count) = PUSH_BUCKETS;
        let mut registry = Registry::with_prefix("tidegate_control");
        let metrics = Self {
            registry: Mutex::default(),
            streams: Family::default(),
            pushes: Counter::default(),
            answers: Family::default(),
            push_seconds: Histogram::new(exponential_buckets(first, factor, count)),
            policies: Family::default(),
            problems: Family::default(),
            proxies: Family::default(),
        };
        registry.register(
            "streams",
            "Connected discovery streams",
            metrics.streams.clone(),
        );
        registry.register("pushes", "Configurations pushed", metrics.pushes.clone());
        registry.register(
            "answers",
            "What proxies said to pushes",
            metrics.answers.clone(),
        );
        registry.register(
            "push_seconds",
            "From a change of policy, or a proxy's arrival, to the proxy's acceptance",
            metrics.push_seconds.clone(),
        );
        registry.register("policies", "Policies in force", metrics.policies.clone());
        registry.register("problems", "Errors in policies", metrics.problems.clone());
        registry.register(
            "resources",
            "Resources of proxies by state",
            metrics.proxies.clone(),
        );
        Self {
            registry: Mutex::new(registry),
            ..metrics
        }
    }
}

impl Metrics {
    /// Everything in Prometheus' text format (OpenMetrics).
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// How many resources of proxies are in which state.
    pub(crate) fn resources(&self, states: [(&'static str, usize); 3]) {
        for (state, number) in states {
            let labels = StateLabels { state };
            self.proxies.get_or_create(&labels).set(count(number));
        }
    }

    fn answer(&self, verdict: &'static str) {
        self.answers.get_or_create(&AnswerLabels { verdict }).inc();
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
