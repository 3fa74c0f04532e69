//! `tidegate score` agrees with what the callers of a live Envoy counted.

use std::sync::Arc;

use serde_json::Value;
use tidegate_graph::MetricsSource;

use crate::World;
use crate::score_world::ScoredLoad;
use crate::steady::near;

/// The tolerance for a share of the requests, as a part of that share. The window has 15 bursts, and a burst at its
/// edge may be inside or outside.
const EDGES: f64 = 0.15;
/// The tolerance for a score. A score is such a share divided by a budget of 5 % to 18 %.
const SCORE: f64 = 0.12;
/// The names of the parts, in the order of the output.
const PARTS: [&str; 5] = ["latency", "success", "needless", "cpu", "memory"];
/// The weight of each part, as in `advise/src/score/terms.toml`.
const WEIGHTS: [f64; 5] = [1.0, 1.0, 1.0, 0.5, 0.5];

pub(crate) async fn score_counts_the_requests_that_callers_sent(world: Arc<World>) {
    for upstream in ["mixed", "bursts", "watched", "busy"] {
        let found = number(world.scored.scored(upstream), "requests");
        let counted = world.scored.counted(upstream).requests;
        assert!(counted > 500.0, "{upstream}: {counted} requests");
        near(upstream, Some(found), counted, 0.1, 0.0);
    }
}

pub(crate) async fn score_of_latency_is_that_of_late_answers(world: Arc<World>) {
    let (value, score) = part(&world.scored, "mixed", "latency");
    let counted = world.scored.counted("mixed");
    let late = counted.late / counted.answers;

    assert!(late > 0.04, "one of 16 was late: {counted:?}");
    near("late answers", value, late, EDGES, 0.0);
    // The policy's rule for `mixed` allows 2 % late answers.
    near(
        "score of latency",
        score,
        cost(late, 0.02, 0.18),
        0.0,
        SCORE,
    );
}

pub(crate) async fn score_of_success_is_that_of_failed_answers(world: Arc<World>) {
    let (value, score) = part(&world.scored, "mixed", "success");
    let counted = world.scored.counted("mixed");
    let failed = counted.failed / counted.answers;

    assert!(failed > 0.02, "one of 25 failed: {counted:?}");
    near("failed answers", value, failed, EDGES, 0.0);
    // The policy allows 1 % failed answers.
    near(
        "score of success",
        score,
        cost(failed, 0.01, 0.09),
        0.0,
        SCORE,
    );
}

pub(crate) async fn what_bursts_shed_of_an_idle_upstream_is_needless(world: Arc<World>) {
    let (value, score) = part(&world.scored, "bursts", "needless");
    let counted = world.scored.counted_in_stretch("bursts");
    let shed = counted.shed / counted.requests;

    assert!(shed > 0.01, "bursts are above the limit: {counted:?}");
    near("needless sheds", value, shed, EDGES, 0.0);
    near(
        "score of needless",
        score,
        cost(shed, 0.0, 0.05),
        0.0,
        SCORE,
    );
}

pub(crate) async fn what_observe_would_shed_counts_as_if_it_were_shed(world: Arc<World>) {
    let (value, score) = part(&world.scored, "watched", "needless");
    let counted = world.scored.counted_in_stretch("watched");
    let beyond = counted.beyond / counted.requests;

    assert!(counted.shed < 1.0, "observe sheds nothing: {counted:?}");
    assert!(beyond > 0.01, "bursts are above the limit: {counted:?}");
    // The caller sees requests end a little later than the proxy.
    near("needless sheds", value, beyond, 2.0 * EDGES, 0.0);
    near(
        "score of needless",
        score,
        cost(value.unwrap(), 0.0, 0.05),
        0.0,
        1e-6,
    );
}

pub(crate) async fn what_an_overloaded_upstream_sheds_is_not_needless(world: Arc<World>) {
    let (value, score) = part(&world.scored, "busy", "needless");
    let counted = world.scored.counted("busy");

    let shed = counted.shed / counted.requests;
    assert!(shed > 0.3, "it gets twice what it can serve: {counted:?}");
    assert_eq!((value, score), (Some(0.0), Some(1.0)));
    // The reason contains the share of all requests that were shed.
    let reason = text(part_of(&world.scored, "busy", "needless"), "reason");
    let (_, all) = reason.split_once(", of ").unwrap();
    let all: f64 = all.trim_end_matches(" % in all").parse().unwrap();
    near("all sheds", Some(all / 100.0), shed, 0.1, 0.0);
}

pub(crate) async fn an_upstream_that_sheds_nothing_has_no_needless_sheds(world: Arc<World>) {
    assert!(world.scored.counted("mixed").shed < 1.0);
    let needless = part(&world.scored, "mixed", "needless");
    assert_eq!(needless, (Some(0.0), Some(1.0)));
}

pub(crate) async fn cpu_and_memory_are_those_of_the_proxy(world: Arc<World>) {
    let scored = &world.scored;
    for upstream in ["mixed", "bursts", "watched", "busy"] {
        let (cpu, cpu_score) = part(scored, upstream, "cpu");
        near("CPU of a request", cpu, scored.cpu_us, 0.15, 0.0);
        let expected = cost(cpu.unwrap(), 200.0, 800.0);
        near("score of CPU", cpu_score, expected, 0.0, 1e-6);
        let (memory, memory_score) = part(scored, upstream, "memory");
        near("memory", memory, scored.memory_mib, 0.15, 0.0);
        let expected = cost(memory.unwrap(), 150.0, 350.0);
        near("score of memory", memory_score, expected, 0.0, 1e-6);
    }
}

pub(crate) async fn the_score_is_the_mean_of_its_parts_and_the_worst_comes_first(
    world: Arc<World>,
) {
    let all = world.scored.score.get("upstreams").unwrap();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), 4);
    for one in all {
        let name = text(one, "upstream");
        let scores = PARTS.map(|part| number(part_in(one, part), "score"));
        let sum: f64 = scores.iter().zip(WEIGHTS).map(|(one, by)| one * by).sum();
        let mean = sum / WEIGHTS.iter().sum::<f64>();
        near(name, Some(number(one, "score")), mean, 0.0, 1e-6);
    }
    let scores: Vec<f64> = all.iter().map(|one| number(one, "score")).collect();
    assert!(scores.is_sorted(), "{scores:?}");
}

pub(crate) async fn the_graph_of_our_own_metrics_is_what_callers_saw(world: Arc<World>) {
    let graph = &world.scored.graph;
    assert_eq!(graph.edges.len(), 4, "{:?}", graph.edges);
    for edge in &graph.edges {
        let name = |id: &str| {
            let vertex = graph.vertices.iter().find(|vertex| vertex.id == id);
            vertex.unwrap().name.clone()
        };
        let (upstream, traffic) = (name(&edge.upstream), &edge.traffic);
        let counted = world.scored.counted(&upstream);
        let good = (counted.answers - counted.failed) / counted.answers;
        let what = |figure: &str| format!("{figure} of {upstream}");

        assert_eq!(name(&edge.caller), "edge");
        assert_eq!(traffic.source, MetricsSource::Tidegate);
        let rate = counted.answers / f64::from(graph.window_seconds);
        near(&what("rate"), traffic.rate, rate, 0.1, 0.0);
        near(&what("success"), traffic.success, good, 0.0, 0.02);
        let concurrency = counted.loaded / f64::from(graph.window_seconds);
        near(
            &what("concurrency"),
            traffic.concurrency,
            concurrency,
            0.3,
            0.3,
        );
    }
}

/// The formula of the score, implemented a second time.
fn cost(found: f64, target: f64, budget: f64) -> f64 {
    (1.0 - (found - target) / budget).clamp(0.0, 1.0)
}

/// The value and the score of a part.
fn part(scored: &ScoredLoad, upstream: &str, name: &str) -> (Option<f64>, Option<f64>) {
    let part = part_of(scored, upstream, name);
    let number = |field: &str| part.get(field).and_then(Value::as_f64);
    (number("value"), number("score"))
}

fn part_of<'a>(scored: &'a ScoredLoad, upstream: &str, name: &str) -> &'a Value {
    part_in(scored.scored(upstream), name)
}

fn part_in<'a>(upstream: &'a Value, name: &str) -> &'a Value {
    let parts = upstream.get("parts").unwrap().as_array().unwrap();
    parts
        .iter()
        .find(|part| text(part, "name") == name)
        .unwrap()
}

fn number(value: &Value, field: &str) -> f64 {
    value.get(field).unwrap().as_f64().unwrap()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).unwrap().as_str().unwrap()
}
