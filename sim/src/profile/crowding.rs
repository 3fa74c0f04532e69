//! Effects of many requests at once on an endpoint: lock contention, and a limit of connections.

use serde::{Deserialize, Serialize};

/// Lock contention: beyond some concurrency each request takes longer.
///
/// The factor is worked out when a request gets its slot, with itself counted, and stays for its whole service.
/// Throughput falls above `above` where `slope` x `above` is more than 1; with less it only grows more slowly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contention {
    /// Up to this many requests in slots do not slow each other down.
    pub above: u32,
    /// The share of its service time by which each further request slows a request down; 0: none.
    pub slope: f64,
}

impl Contention {
    /// How many times as long service takes with `busy` requests in slots.
    #[must_use]
    pub fn factor(&self, busy: f64) -> f64 {
        1.0 + self.slope * (busy - f64::from(self.above)).max(0.0)
    }
}

/// A limit of connections, each of which carries one request at a time.
///
/// A request is accepted until its response has ended. Where its caller goes away first, it is accepted until its
/// work is over, or is dropped as [`super::Abandoned`] has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Most requests of an endpoint that are accepted: in the line, in a slot, or with a body under way.
    pub max: u32,
    /// How many more wait in order to be accepted; beyond them connections are refused.
    pub backlog: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_hinder_each_other_only_above_the_bound() {
        let contention = Contention {
            above: 16,
            slope: 0.25,
        };
        assert!((contention.factor(16.0) - 1.0).abs() < 1e-12);
        assert!((contention.factor(20.0) - 2.0).abs() < 1e-12);
    }
}
