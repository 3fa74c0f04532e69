//! Turns readings into edges with one reporter each, and notes doubts.
//!
//! The caller's proxy is preferred: it sees what the caller sees, with retries, timeouts and requests that reached no service.
//! A waypoint comes next, and the upstream's proxy last. The readings of the others are not added, because they are of the same
//! requests.

use std::collections::BTreeMap;

use super::readings::{EdgeKey, EdgeReading, LatencyReading, ReadingKey, Readings};
use super::{BuildTerms, ObservationWindow};
use crate::model::{EdgeTraffic, MetricsSource, ServiceGraph, VertexKey, VertexKind};
use crate::queries::HistogramForm::Classic;
use crate::queries::QueryMeasure;
use crate::warning::{GraphWarning, WarningKind, WarningTally};

/// If another reporter saw this many times the requests of the chosen one, it saw other requests, such as those of
/// callers without a sidecar.
const DISAGREEMENT: f64 = 1.5;
/// Metrics that are older than this many steps at the end of the window have ended: `rate` looks back for one step, and
/// points are a step apart.
const ENDED_AFTER_STEPS: f64 = 2.0;

/// The graph of the chosen readings.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) graph: ServiceGraph,
    pub(super) warnings: Vec<GraphWarning>,
}

#[derive(Debug, Default)]
struct Doubts {
    gaps: WarningTally,
    ended: WarningTally,
    unknown_caller: WarningTally,
    unknown_upstream: WarningTally,
    differ: WarningTally,
    idle: WarningTally,
    no_latency: WarningTally,
    no_quantiles: WarningTally,
}

/// Builds the graph from `readings`.
pub(super) fn choose(readings: Readings, observed: ObservationWindow, terms: BuildTerms) -> Chosen {
    let mut edges: BTreeMap<EdgeKey, Vec<(ReadingKey, EdgeReading)>> = BTreeMap::new();
    for (key, reading) in readings.edges {
        let of_edge = edges.entry(key.edge.clone()).or_default();
        of_edge.push((key, reading));
    }
    let mut doubts = Doubts::default();
    let mut graph = ServiceGraph::default();
    for (edge, candidates) in edges {
        let vertex = |position: usize| readings.vertices.get(position);
        let (Some(caller), Some(upstream)) = (vertex(edge.caller), vertex(edge.upstream)) else {
            continue;
        };
        let name = || format!("{caller} -> {upstream}");
        let Some((key, reading)) = candidates.iter().find(|(_, reading)| reading.has_traffic())
        else {
            doubts.idle.add(name);
            continue;
        };
        let has_failures = readings
            .answered
            .contains(&(key.family, QueryMeasure::Failures));
        let has_latency = readings
            .answered
            .contains(&(key.family, QueryMeasure::P50(Classic)));
        let traffic = traffic(key, reading, observed, terms, has_failures);
        doubts.note(caller, upstream, &traffic, observed);
        if has_latency && traffic.p50_seconds.is_none() && key.source != MetricsSource::Tidegate {
            match traffic.mean_seconds {
                None => doubts.no_latency.add(name),
                Some(_) => doubts.no_quantiles.add(name),
            }
        }
        let seen = reading.requests.unwrap_or_default();
        let others = candidates
            .iter()
            .filter(|(other, _)| other.source == key.source);
        for (other, reading) in others {
            if reading
                .requests
                .is_some_and(|requests| requests > DISAGREEMENT * seen)
            {
                doubts.differ.add(|| {
                    let label = |key: &ReadingKey| {
                        key.reporter
                            .as_ref()
                            .map_or("?", |reporter| reporter.label())
                            .to_owned()
                    };
                    format!(
                        "{} ({} saw fewer requests than {})",
                        name(),
                        label(key),
                        label(other)
                    )
                });
            }
        }
        let from = graph.vertex(caller, key.source);
        let to = graph.vertex(upstream, key.source);
        graph.connect(from, to, traffic);
    }
    for (workload, service) in readings.services {
        graph.add_service(&workload, service);
    }
    Chosen {
        graph,
        warnings: doubts.warnings(readings.inbound),
    }
}

impl EdgeReading {
    fn has_traffic(&self) -> bool {
        match (self.rate, self.requests) {
            (None, None) => self.classic.p50.is_some() || self.native.p50.is_some(),
            (rate, requests) => rate.unwrap_or_default() + requests.unwrap_or_default() > 0.0,
        }
    }
}

/// The traffic of an edge by one reading. Native histograms are preferred: their buckets are narrower.
fn traffic(
    key: &ReadingKey,
    reading: &EdgeReading,
    observed: ObservationWindow,
    terms: BuildTerms,
    has_failures: bool,
) -> EdgeTraffic {
    let latency = |value: fn(&LatencyReading) -> Option<f64>| {
        value(&reading.native).or_else(|| value(&reading.classic))
    };
    let mean = latency(|form| form.mean);
    let by_littles_law = || Some(reading.rate? * mean?);
    let requests = reading
        .requests
        .filter(|requests| *requests > 0.0 && has_failures);
    let oldest = f64::from(observed.step_seconds) * ENDED_AFTER_STEPS;
    EdgeTraffic {
        source: key.source,
        reporter: key.reporter.clone(),
        cluster: key.edge.cluster.as_deref().map(str::to_owned),
        rate: reading.rate,
        success: requests.map(|requests| {
            (1.0 - reading.failures.unwrap_or_default() / requests).clamp(0.0, 1.0)
        }),
        mean_seconds: mean,
        p50_seconds: latency(|form| form.p50),
        p95_seconds: latency(|form| form.p95),
        p99_seconds: latency(|form| form.p99),
        concurrency: reading
            .in_flight
            .or_else(by_littles_law)
            .filter(|found| found.is_finite()),
        samples: reading.requests,
        // PromQL extrapolates: 99.6 may be 100 requests.
        too_few_samples: reading
            .requests
            .is_none_or(|requests| requests.round() < f64::from(terms.min_samples)),
        points: reading
            .points
            .map(|points| whole(points.min(f64::from(observed.points())))),
        has_ended: reading
            .last_seen
            .is_some_and(|last| seconds(observed.end) - last > oldest),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of points, not negative and at most the number of points of the window"
)]
const fn whole(points: f64) -> u32 {
    points as u32
}

#[expect(
    clippy::cast_precision_loss,
    reason = "seconds since 1970 are far below 2^53"
)]
const fn seconds(time: u64) -> f64 {
    time as f64
}

impl Doubts {
    fn note(
        &mut self,
        caller: &VertexKey,
        upstream: &VertexKey,
        traffic: &EdgeTraffic,
        observed: ObservationWindow,
    ) {
        let name = || format!("{caller} -> {upstream}");
        if traffic.has_ended {
            self.ended.add(name);
        } else if traffic
            .points
            .is_some_and(|points| points < observed.points())
        {
            self.gaps.add(name);
        }
        if caller.kind == VertexKind::Unknown {
            self.unknown_caller.add(name);
        }
        if upstream.kind == VertexKind::Unknown {
            self.unknown_upstream.add(name);
        }
    }

    fn warnings(self, inbound: WarningTally) -> Vec<GraphWarning> {
        [
            self.no_latency.warning(
                WarningKind::NoLatency,
                "edges without latency, because no histogram has requests of theirs",
            ),
            self.no_quantiles.warning(
                WarningKind::NoLatency,
                "edges with a mean latency but no quantiles, because their histogram has no bounds",
            ),
            self.gaps.warning(
                WarningKind::Gaps,
                "edges with data in a part of the window only, because they are new, were idle at first, or Prometheus has gaps",
            ),
            self.ended.warning(
                WarningKind::Ended,
                "edges that ended before the end of the window, because workloads were removed or renamed",
            ),
            self.unknown_caller.warning(
                WarningKind::UnknownCaller,
                "edges with callers that the metrics do not name, because they are outside the mesh or without a sidecar",
            ),
            self.unknown_upstream.warning(
                WarningKind::UnknownUpstream,
                "edges with upstreams that the metrics do not name, because they are no service of the mesh",
            ),
            self.differ.warning(
                WarningKind::ReportersDiffer,
                "edges that the chosen reporter sees only partly",
            ),
            self.idle.warning(WarningKind::LeftOut, "edges without requests in the window, which were left out"),
            inbound.warning(
                WarningKind::LeftOut,
                "rows of clusters that lead to the proxy's own workload, which were left out",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
