//! Learned state of upstreams that this worker has not seen: where they start when a request asks for them.

use std::collections::BTreeMap;

use super::place::is_same;
use crate::config::Config;
use crate::exchange::{Directive, PackedDirective, UNSTAMPED};

/// The last directives for upstreams that this worker has not seen, by the hash of the upstream. A bounded number of them.
#[derive(Debug, Default)]
pub(super) struct Unseen(BTreeMap<u64, StampedDirective>);

#[derive(Debug)]
struct StampedDirective {
    directive: Directive,
    /// [`UNSTAMPED`] if the leader has changed since.
    stamp: u32,
}

impl Unseen {
    /// Whether this directive of the same leader is kept already.
    pub(super) fn has(&self, entry: &PackedDirective<'_>) -> bool {
        let kept = self.0.get(&entry.upstream);
        kept.is_some_and(|kept| is_same(kept.stamp, entry))
    }

    pub(super) fn keep(&mut self, directive: Directive, stamp: u32, config: &Config) {
        let upstream = directive.upstream;
        self.0
            .insert(upstream, StampedDirective { directive, stamp });
        // At the cap another one is removed, so that names of the past do not keep out those in use.
        if self.0.len() > usize::try_from(config.max_upstreams()).unwrap_or(usize::MAX) {
            let other = self.0.keys().find(|hash| **hash != upstream);
            if let Some(other) = other.copied() {
                self.0.remove(&other);
            }
        }
    }

    pub(super) fn find(&self, hash: u64) -> Option<&Directive> {
        self.0.get(&hash).map(|kept| &kept.directive)
    }

    /// A request asked for the upstream: returns what was kept for it.
    pub(super) fn take(&mut self, hash: u64) -> Option<Directive> {
        self.0.remove(&hash).map(|kept| kept.directive)
    }

    /// There is another leader, whose stamps say nothing of the directives that are kept.
    pub(super) fn forget_stamps(&mut self) {
        for kept in self.0.values_mut() {
            kept.stamp = UNSTAMPED;
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
