//! Which upstream hosts have metrics of their own.
//!
//! Envoy never forgets the name of a metric. So only the first hosts have names, up to a configured number, for as long as the plugin
//! lives. Further ones count as the host [`OVERFLOW`](tidegate_core::OVERFLOW) of their upstream. A vanished host keeps its name: to give the place to another one
//! would not remove it.
//!
//! One mutex, taken on ticks for hosts that a worker has not seen before.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The hosts of one plugin that have names, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct HostNames(Mutex<Named>);

#[derive(Debug, Default)]
struct Named {
    hosts: HashMap<u64, HashMap<Box<[u8]>, usize>>,
    count: usize,
    /// Upstreams with a host [`OVERFLOW`](tidegate_core::OVERFLOW).
    overflowing: HashSet<u64>,
}

/// Whose names a host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostLabels {
    Own,
    /// Those of all hosts of its upstream beyond the bound.
    OfUpstream,
    /// Those of all hosts of upstreams beyond the bound.
    OfNone,
}

impl HostNames {
    /// Whose names a host has, if the first `most` hosts have names of their own.
    pub(crate) fn labels(&self, upstream: u64, address: &[u8], most: usize) -> HostLabels {
        let mut named = self.lock();
        let known = named.hosts.get(&upstream).and_then(|it| it.get(address));
        let number = known.copied().unwrap_or(named.count);
        if number < most {
            if number == named.count {
                let hosts = named.hosts.entry(upstream).or_default();
                hosts.insert(address.into(), number);
                named.count += 1;
            }
            return HostLabels::Own;
        }
        let is_known = named.overflowing.contains(&upstream);
        if is_known || named.overflowing.len() < most {
            named.overflowing.insert(upstream);
            return HostLabels::OfUpstream;
        }
        HostLabels::OfNone
    }

    /// Nothing in it can be half done: a number is counted after its host has it.
    fn lock(&self) -> MutexGuard<'_, Named> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_hosts_keep_names_of_their_own() {
        use HostLabels::{OfNone, OfUpstream, Own};
        let names = HostNames::default();
        let ask = |upstream, address: &str| names.labels(upstream, address.as_bytes(), 2);
        // Upstreams 1 to 4 with hosts a to c: two hosts have names, and two upstreams those of their other hosts.
        let asked = [
            (1, "a", Own),
            (2, "a", Own),
            (1, "b", OfUpstream),
            (1, "a", Own),
            (3, "a", OfUpstream),
            (1, "c", OfUpstream),
            (2, "b", OfNone),
            (4, "a", OfNone),
            (2, "a", Own),
        ];
        for (upstream, address, expected) in asked {
            assert_eq!(ask(upstream, address), expected, "{address} of {upstream}");
        }
        // With another bound the first ones stay the first.
        assert_eq!(names.labels(2, b"a", 1), OfNone);
        assert_eq!(names.labels(1, b"a", 1), Own);
        assert_eq!(names.labels(2, b"b", 3), Own);
    }
}
