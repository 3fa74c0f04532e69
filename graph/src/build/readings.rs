//! The readings of each reporter for each edge, in seconds and requests.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{EdgeEnd, named};
use crate::model::{MetricsSource, TrafficReporter, VertexKey};
use crate::prometheus::AnswerSeries;
use crate::queries::HistogramForm::{Classic, Native};
use crate::queries::{Family, QueryMeasure};
use crate::warning::WarningTally;

/// The source of a reading. The order is the preference within an edge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReadingKey {
    pub(super) edge: EdgeKey,
    pub(super) source: MetricsSource,
    pub(super) reporter: Option<TrafficReporter>,
    /// The position of the family of metrics.
    pub(super) family: usize,
}

/// An edge; vertices by their position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EdgeKey {
    pub(super) caller: usize,
    pub(super) upstream: usize,
    pub(super) cluster: Option<Box<str>>,
}

/// The readings of one reporter for one edge, as [`QueryMeasure`] names them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EdgeReading {
    pub(super) rate: Option<f64>,
    pub(super) points: Option<f64>,
    pub(super) last_seen: Option<f64>,
    pub(super) requests: Option<f64>,
    pub(super) failures: Option<f64>,
    pub(super) in_flight: Option<f64>,
    pub(super) classic: LatencyReading,
    pub(super) native: LatencyReading,
}

/// The latency by one form of histogram, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatencyReading {
    pub(super) mean: Option<f64>,
    pub(super) p50: Option<f64>,
    pub(super) p95: Option<f64>,
    pub(super) p99: Option<f64>,
}

/// All readings.
#[derive(Debug, Default)]
pub(super) struct Readings {
    positions: BTreeMap<VertexKey, usize>,
    /// The vertices, by position.
    pub(super) vertices: Vec<VertexKey>,
    pub(super) edges: BTreeMap<ReadingKey, EdgeReading>,
    /// Workloads, and a service that leads to each.
    pub(super) services: BTreeSet<(VertexKey, VertexKey)>,
    /// Measures with an answer, by the position of the family.
    pub(super) answered: BTreeSet<(usize, QueryMeasure)>,
    /// Clusters that lead to the proxy's own workload.
    pub(super) inbound: WarningTally,
}

impl Readings {
    /// Takes the answer to one query.
    pub(super) fn take(
        &mut self,
        position: usize,
        family: &Family,
        measure: QueryMeasure,
        series: Vec<AnswerSeries>,
    ) {
        self.answered.insert((position, measure));
        for row in series {
            // Nothing that is measured can be negative.
            let value = row.value.filter(|value| *value >= 0.0);
            let Some(upstream) = named(&row.metric, &family.upstream, EdgeEnd::Upstream) else {
                self.inbound.add(|| {
                    row.metric
                        .get(&family.upstream.name)
                        .cloned()
                        .unwrap_or_default()
                });
                continue;
            };
            if measure == QueryMeasure::Services {
                let service = family.service.as_ref();
                let service =
                    service.and_then(|labels| named(&row.metric, labels, EdgeEnd::Upstream));
                self.services
                    .extend(service.map(|service| (upstream.key, service.key)));
                continue;
            }
            let Some(caller) = named(&row.metric, &family.caller, EdgeEnd::Caller) else {
                continue;
            };
            let reporter = family
                .reporter
                .as_ref()
                .and_then(|label| row.metric.get(label));
            let key = ReadingKey {
                edge: EdgeKey {
                    caller: self.position(caller.key),
                    upstream: self.position(upstream.key),
                    cluster: upstream.cluster.map(String::into_boxed_str),
                },
                source: family.metrics,
                reporter: reporter.map(|value| TrafficReporter::from_label(value)),
                family: position,
            };
            let reading = self.edges.entry(key).or_default();
            reading.note(measure, value, family.latency_unit_seconds);
        }
    }

    fn position(&mut self, key: VertexKey) -> usize {
        if let Some(position) = self.positions.get(&key) {
            return *position;
        }
        let position = self.vertices.len();
        self.vertices.push(key.clone());
        self.positions.insert(key, position);
        position
    }
}

impl EdgeReading {
    /// Several rows belong to the same edge if they differ only in labels with the same meaning, such as `unknown` and none.
    /// Their counts are added; other values cannot be added, so the larger one is used.
    fn note(&mut self, measure: QueryMeasure, value: Option<f64>, unit_seconds: f64) {
        let seconds = value.map(|value| value * unit_seconds);
        match measure {
            QueryMeasure::Rate => add(&mut self.rate, value),
            QueryMeasure::Requests => add(&mut self.requests, value),
            QueryMeasure::Failures => add(&mut self.failures, value),
            QueryMeasure::InFlight => add(&mut self.in_flight, value),
            QueryMeasure::Points => larger(&mut self.points, value),
            QueryMeasure::LastSeen => larger(&mut self.last_seen, value),
            QueryMeasure::Mean(form) => larger(&mut self.latency(form).mean, seconds),
            QueryMeasure::P50(form) => larger(&mut self.latency(form).p50, seconds),
            QueryMeasure::P95(form) => larger(&mut self.latency(form).p95, seconds),
            QueryMeasure::P99(form) => larger(&mut self.latency(form).p99, seconds),
            QueryMeasure::Services => {}
        }
    }

    const fn latency(&mut self, form: crate::queries::HistogramForm) -> &mut LatencyReading {
        match form {
            Classic => &mut self.classic,
            Native => &mut self.native,
        }
    }
}

fn add(sum: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or_default() + value);
    }
}

fn larger(found: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *found = Some(found.map_or(value, |old| old.max(value)));
    }
}
