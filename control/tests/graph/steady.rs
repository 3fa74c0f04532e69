//! The graph in a steady state.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_graph::{EdgeTraffic, MetricsSource, VertexKind, WarningKind};

use crate::World;
use crate::chain::{ABSENT, LONGEST, SLOW};
use crate::truth::{self, Ends, TrueTraffic};

/// Bounds of the buckets of Envoy's histograms, in seconds.
const BOUNDS: [f64; 13] = [
    0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
/// The share of requests that may be in only one of the two windows. The window of the graph ends with the last scrape.
const UNSEEN: f64 = 0.07;
/// The factor by which these requests may change a mean or a rate.
pub(crate) const NOISE: f64 = 1.2;
/// Envoy counts whole milliseconds.
const ROUNDED: f64 = 0.001;

pub(crate) async fn every_call_is_an_edge_and_there_is_no_other(world: Arc<World>) {
    let steady = &world.chain.steady;
    let found: BTreeSet<_> = steady.edges().into_keys().collect();
    let expected: BTreeSet<_> = steady.truth.keys().copied().collect();

    assert_eq!(found, expected);
    assert_eq!(found.len(), 10);
    assert_eq!(steady.graph.vertices.len(), 9);
    for vertex in &steady.graph.vertices {
        assert_eq!(vertex.kind, VertexKind::Service);
        assert_eq!(vertex.sources, [MetricsSource::Envoy]);
    }
}

pub(crate) async fn edges_join_to_the_chain(world: Arc<World>) {
    let edges = world.chain.steady.edges();
    for ends in LONGEST.windows(2) {
        let [caller, upstream] = ends else { continue };
        assert!(edges.contains_key(&(*caller, *upstream)), "{ends:?}");
    }
}

pub(crate) async fn rates_are_those_that_callers_sent(world: Arc<World>) {
    for (ends, edge, truth) in world.chain.steady.pairs() {
        near(
            &format!("rate of {ends:?}"),
            edge.rate,
            truth.rate,
            0.2,
            0.0,
        );
        near(
            &format!("samples of {ends:?}"),
            edge.samples,
            truth.requests,
            0.2,
            0.0,
        );
        assert!(!edge.too_few_samples, "{ends:?}: {:?}", edge.samples);
    }
}

pub(crate) async fn success_is_the_share_that_callers_saw(world: Arc<World>) {
    for (ends, edge, truth) in world.chain.steady.pairs() {
        near(
            &format!("success of {ends:?}"),
            edge.success,
            truth.success,
            0.0,
            0.03,
        );
        let fails = matches!(ends, ("pay", "ledger") | ("cart", "pay" | ABSENT));
        assert_eq!(
            edge.success < Some(1.0),
            fails,
            "{ends:?}: {:?}",
            edge.success
        );
    }
}

pub(crate) async fn latencies_are_between_those_of_upstream_and_caller(world: Arc<World>) {
    for (ends, edge, truth) in answered(&world) {
        let mean = edge.mean_seconds.unwrap();
        between(&format!("mean of {ends:?}"), mean, means(truth));
        for (quantile, found) in [(0.5, edge.p50_seconds), (0.95, edge.p95_seconds)] {
            // The graph knows only the bucket of a latency.
            let least = truth::quantile(&truth.handled, quantile - UNSEEN) - ROUNDED;
            let most = truth::quantile(&truth.waited, 1.0_f64.min(quantile + UNSEEN)) + ROUNDED;
            let below = BOUNDS.iter().rev().find(|bound| **bound <= least);
            let above = BOUNDS.iter().find(|bound| **bound >= most);
            let bucket = (*below.unwrap_or(&0.0), *above.unwrap_or(&f64::INFINITY));
            let found = found.unwrap_or_else(|| panic!("no quantile {quantile} of {ends:?}"));
            between(&format!("quantile {quantile} of {ends:?}"), found, bucket);
        }
        assert!(edge.p50_seconds <= edge.p95_seconds && edge.p95_seconds <= edge.p99_seconds);
    }
}

pub(crate) async fn the_slow_service_is_seen(world: Arc<World>) {
    let edges = world.chain.steady.edges();
    let p50 = |caller, upstream| edges.get(&(caller, upstream)).unwrap().p50_seconds.unwrap();

    assert!(p50("web", SLOW) > 0.1, "{}", p50("web", SLOW));
    assert!(p50("stock", "store") < p50("web", SLOW) / 2.0);
}

pub(crate) async fn concurrency_is_rate_times_mean_latency(world: Arc<World>) {
    for (ends, edge, truth) in answered(&world) {
        let what = format!("concurrency of {ends:?}");
        let product = edge.rate.unwrap() * edge.mean_seconds.unwrap();
        near(&what, edge.concurrency, product, 1e-9, 0.0);
        let (least, most) = means(truth);
        let bounds = (truth.rate / NOISE * least, truth.rate * NOISE * most);
        between(&what, edge.concurrency.unwrap(), bounds);
    }
}

pub(crate) async fn an_upstream_that_is_down_is_an_edge_that_fails(world: Arc<World>) {
    let edges = world.chain.steady.edges();
    let edge = edges.get(&("cart", ABSENT)).unwrap();

    assert_eq!(edge.success, Some(0.0));
    assert_eq!(
        (edge.mean_seconds, edge.p50_seconds, edge.concurrency),
        (None, None, None)
    );
}

pub(crate) async fn nothing_else_is_missing_or_in_doubt(world: Arc<World>) {
    let graph = &world.chain.steady.graph;
    let [warning] = graph.warnings.as_slice() else {
        panic!("{:?}", graph.warnings);
    };
    assert_eq!((warning.kind, warning.count), (WarningKind::NoLatency, 1));
    assert!(
        warning.message.ends_with("cart -> offers"),
        "{}",
        warning.message
    );
    for edge in &graph.edges {
        assert_eq!(edge.traffic.points, Some(graph.points));
        assert!(!edge.traffic.has_ended);
    }
}

pub(crate) async fn a_recording_gives_the_same_graph(world: Arc<World>) {
    for seen in [&world.chain.steady, &world.chain.changed] {
        assert_eq!(seen.graph, seen.again);
    }
}

/// The edges that have latencies.
fn answered(world: &World) -> Vec<(Ends, &EdgeTraffic, &TrueTraffic)> {
    let mut pairs = world.chain.steady.pairs();
    pairs.retain(|((_, upstream), _, _)| *upstream != ABSENT);
    assert_eq!(pairs.len(), 9);
    pairs
}

/// The smallest and the largest possible mean latency.
pub(crate) fn means(truth: &TrueTraffic) -> (f64, f64) {
    let least = truth::mean(&truth.handled) / NOISE - ROUNDED;
    (least, truth::mean(&truth.waited) * NOISE + ROUNDED)
}

pub(crate) fn between(what: &str, found: f64, (least, most): (f64, f64)) {
    assert!(
        found >= least && found <= most,
        "{what}: found {found}, expected {least} to {most}"
    );
}

/// Fails unless `found` is known and differs from `expected` by at most `share` of `expected` plus `beside`.
pub(crate) fn near(what: &str, found: Option<f64>, expected: f64, share: f64, beside: f64) {
    let found = found.unwrap_or_else(|| panic!("{what} is not known"));
    assert!(
        (found - expected).abs() <= expected * share + beside,
        "{what}: found {found}, expected {expected}"
    );
}
