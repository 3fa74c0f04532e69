//! What the configuration keeps for the requests of a cluster: one state, one for each destination, or none.

use std::sync::Arc;

use super::place::UpstreamPlace;
use crate::config::{Config, KeyBy, RuleIndex, UpstreamName};
use crate::slot::Slot;
use crate::time::Instant;
use crate::upstream::{ServiceName, UpstreamId, UpstreamKey};

/// What is kept for the requests of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// One state for all of them.
    Upstream(UpstreamId),
    /// One state for each destination that they name, in [an engine of destinations](crate::Engine::for_destinations).
    ByAuthority,
    /// No state: they pass without a decision.
    Nothing,
}

/// Clusters that have no state of their own, by hash, and what is kept instead. Few, and sorted.
#[derive(Debug, Default)]
pub(super) struct OtherClusters(Vec<(u64, KeyBy)>);

impl OtherClusters {
    pub(super) fn find(&self, hash: u64) -> Option<KeyBy> {
        let position = self.position(hash).ok()?;
        self.0.get(position).map(|(_, key_by)| *key_by)
    }

    /// Remembers what is kept for a cluster, if it has no state of its own.
    pub(super) fn remember(&mut self, config: &Config, hash: u64, key_by: KeyBy) {
        // Names may come from requests, so the memory is bounded. Beyond the cap each look-up reads the rules again.
        let cap = usize::try_from(config.max_upstreams()).unwrap_or(usize::MAX);
        if key_by != KeyBy::Cluster
            && self.0.len() < cap
            && let Err(position) = self.position(hash)
        {
            self.0.insert(position, (hash, key_by));
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The position of a cluster, or where it would be inserted.
    fn position(&self, hash: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&hash, |(known, _)| *known)
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }
}

pub(super) fn rule(config: &Config, cluster: &str, route: Option<&str>) -> RuleIndex {
    let name = UpstreamName {
        service: ServiceName::parse(cluster).host,
        cluster,
        route,
    };
    config.policy_for(&name).0
}

pub(super) fn key_by(config: &Config, cluster: &str, route: Option<&str>) -> KeyBy {
    let rule = rule(config, cluster, route);
    config.policy(rule).key_by().resolve(cluster)
}

/// The place of a new upstream, under the rule that the configuration has for its name.
pub(super) fn new_place(
    config: &Config,
    key: Arc<UpstreamKey>,
    hash: u64,
    now: Instant,
) -> UpstreamPlace {
    let rule = rule(config, &key.cluster, key.route.as_deref());
    let slot = Slot::new(key, hash, config.policy(rule), now);
    UpstreamPlace::new(slot, rule)
}
