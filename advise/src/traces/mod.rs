//! Which calls of a service are made at the same time, learned from traces.
//!
//! Two calls of the same request overlap if their spans do. If they overlap in most of the requests that make both, and there
//! are enough of these, they count as made at the same time. In a group, each pair of services does so.
//!
//! Traces name services as their programs do. A name is that of a vertex if it is its name or that of its service, with or without
//! `.namespace`, and all vertices of that name are in one namespace.
//!
//! Edges: the clocks of hosts differ, so the callers' spans are compared if there are any: all of them are by the caller's
//! clock.

mod read;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_graph::{ServiceGraph, VertexKey};

use crate::split::ParallelCalls;
pub use read::{TraceSpan, TraceTextError, read_traces};

/// With fewer requests that make both calls there is not enough evidence.
const MIN_REQUESTS: u32 = 5;
/// If at least this share of them overlaps, the calls are made at the same time on purpose.
const MIN_OVERLAPPING: f64 = 0.5;
/// Most ancestors of a span that are followed: a damaged trace may have a cycle.
const MAX_DEPTH: usize = 1_000;

/// The order of calls, as traces show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearnedCalls {
    /// Calls that are made at the same time.
    pub parallel: Vec<ParallelCalls>,
    /// Names in the traces that are not in the graph, or are ambiguous.
    pub unknown: BTreeSet<String>,
}

/// A span by its trace and its own id.
type SpanKey<'a> = (&'a str, &'a str);

/// A call: the service, and its begin and end in nanoseconds.
type TracedCall<'a> = (&'a str, u64, u64);

/// Two services that the same one calls: how many requests call both, and in how many the calls overlap.
type PairCounts<'a> = BTreeMap<(&'a str, &'a str, &'a str), (u32, u32)>;

/// The calls of a graph that traces show to be made at the same time.
#[must_use]
pub fn learned_calls(graph: &ServiceGraph, spans: &[TraceSpan]) -> LearnedCalls {
    let mut learned = LearnedCalls::default();
    let mut parallel: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for ((caller, a, b), (both, overlapping)) in pairs(spans) {
        if both >= MIN_REQUESTS && f64::from(overlapping) > f64::from(both) * MIN_OVERLAPPING {
            parallel.entry(caller).or_default().insert((a, b));
        }
    }
    for (caller, pairs) in parallel {
        for group in groups(&pairs) {
            let mut upstreams = BTreeSet::new();
            for name in group {
                match vertices(graph, name) {
                    Some(found) => upstreams.extend(found),
                    None => {
                        learned.unknown.insert(name.to_owned());
                    }
                }
            }
            match vertices(graph, caller) {
                Some(callers) => {
                    learned
                        .parallel
                        .extend(callers.into_iter().map(|caller| ParallelCalls {
                            caller,
                            upstreams: upstreams.clone(),
                        }))
                }
                None => {
                    learned.unknown.insert(caller.to_owned());
                }
            }
        }
    }
    learned
}

/// How often each pair of calls is made by the same request, and overlaps.
fn pairs(spans: &[TraceSpan]) -> PairCounts<'_> {
    let by_key: BTreeMap<SpanKey<'_>, &TraceSpan> = spans
        .iter()
        .map(|span| ((span.trace.as_str(), span.id.as_str()), span))
        .collect();
    let parent = |span: &TraceSpan| {
        let parent = span.parent.as_deref()?;
        by_key.get(&(span.trace.as_str(), parent)).copied()
    };
    let mut requests: BTreeMap<SpanKey<'_>, (&str, Vec<TracedCall<'_>>)> = BTreeMap::new();
    for span in spans {
        let Some(above) = parent(span).filter(|above| above.service != span.service) else {
            continue;
        };
        // The request of the caller: its first span in the caller's service.
        let mut first = above;
        for _ in 0..MAX_DEPTH {
            match parent(first).filter(|next| next.service == above.service) {
                Some(next) => first = next,
                None => break,
            }
        }
        // The caller's own span of the call, unless it is that of the whole request.
        let call = if first.id == above.id { span } else { above };
        requests
            .entry((first.trace.as_str(), first.id.as_str()))
            .or_insert_with(|| (above.service.as_str(), Vec::new()))
            .1
            .push((span.service.as_str(), call.start_ns, call.end_ns));
    }
    let mut counts = PairCounts::new();
    for (caller, calls) in requests.values() {
        let mut seen: BTreeMap<(&str, &str), bool> = BTreeMap::new();
        for (number, a) in calls.iter().enumerate() {
            for b in calls.iter().skip(number + 1).filter(|b| b.0 != a.0) {
                let overlaps = a.1.max(b.1) < a.2.min(b.2);
                *seen.entry((a.0.min(b.0), a.0.max(b.0))).or_default() |= overlaps;
            }
        }
        for ((a, b), overlaps) in seen {
            let (both, overlapping) = counts.entry((caller, a, b)).or_default();
            *both += 1;
            *overlapping += u32::from(overlaps);
        }
    }
    counts
}

/// Disjoint sets of services in which each pair is in `pairs`.
fn groups<'a>(pairs: &BTreeSet<(&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let names: BTreeSet<&str> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let mut groups: Vec<BTreeSet<&str>> = Vec::new();
    for name in names {
        let fits = |group: &&mut BTreeSet<&'a str>| {
            group
                .iter()
                .all(|other| pairs.contains(&(name.min(*other), name.max(*other))))
        };
        match groups.iter_mut().find(fits) {
            Some(group) => {
                group.insert(name);
            }
            None => groups.push(BTreeSet::from([name])),
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// The vertices with the name of a service in a trace; `None` if there are none, or in several namespaces.
fn vertices(graph: &ServiceGraph, name: &str) -> Option<Vec<String>> {
    let is_one = |key: &VertexKey| {
        key.name == name
            || name
                .strip_prefix(&key.name)
                .is_some_and(|rest| rest.strip_prefix('.') == Some(key.namespace.as_str()))
    };
    let found: Vec<&VertexKey> = graph
        .vertices()
        .filter(|(_, vertex)| is_one(&vertex.key) || vertex.services.iter().any(is_one))
        .map(|(_, vertex)| &vertex.key)
        .collect();
    let first = found.first()?;
    let is_in_one = found.iter().all(|key| key.namespace == first.namespace);
    is_in_one.then(|| found.iter().map(ToString::to_string).collect())
}
