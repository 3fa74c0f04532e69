//! Counts that every worker of a proxy shares.
//!
//! Envoy runs one VM per worker, with no memory in common; a metric gauge is the one process-wide atomic they
//! can all reach. Core only says what to count. The implementation of the trait owns the atomics: the filter with
//! gauges, the simulator with plain cells. A host may refuse a counter (a stats matcher that rejects the
//! gauge): then the answer is `None`, and the engine falls back to the worker's share of the limit.

use crate::upstream::UpstreamId;

/// What is counted for one upstream across the whole proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Requests admitted whose latency is not measured yet, without those that do not count as load.
    InFlight,
    /// Requests ever admitted of those that the leader grants one by one: probes, and requests under a limit below one. It only grows,
    /// so a ceiling on it grants an exact number to the whole proxy.
    Grants,
}

/// Process-wide counters. Every call is one host call: the engine makes as few as it can.
pub trait Counters {
    /// Adds one and returns the value after it, or `None` when the count is not shared.
    fn raise(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64>;

    /// Takes `by` away again.
    fn lower(&mut self, upstream: UpstreamId, counter: Counter, by: u64);

    /// The value now, or `None` when the count is not shared.
    fn value(&mut self, upstream: UpstreamId, counter: Counter) -> Option<u64>;
}

/// No counter is shared: every worker holds to its own share of the limit.
///
/// Right for an engine that serves a proxy alone, and what a worker falls back to when the host refuses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unshared;

impl Counters for Unshared {
    fn raise(&mut self, _upstream: UpstreamId, _counter: Counter) -> Option<u64> {
        None
    }

    fn lower(&mut self, _upstream: UpstreamId, _counter: Counter, _by: u64) {}

    fn value(&mut self, _upstream: UpstreamId, _counter: Counter) -> Option<u64> {
        None
    }
}
