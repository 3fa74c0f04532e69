//! The upstreams a worker keeps state for, a bounded number of them.
//!
//! Names come from the network's configuration, or, with a cluster header, from requests: without a cap they
//! could eat the proxy's memory. At the cap a newcomer takes the place of the one that was idle longest; when
//! none was idle long enough, newcomers share one state, and are counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use core::time::Duration;

use crate::config::{Config, RuleIndex, UpstreamName};
use crate::exchange::{Directive, Directives};
use crate::slot::Slot;
use crate::tally::Count;
use crate::time::Instant;
use crate::upstream::{ServiceName, UpstreamId, UpstreamKey};

/// An upstream may make room for another one when it was idle for so long.
pub(crate) const EVICTABLE_AFTER: Duration = Duration::from_secs(60);
/// The name of the state that all upstreams beyond the cap share.
pub const OVERFLOW: &str = "_overflow";

/// All slots of one worker.
#[derive(Debug)]
pub(crate) struct Registry {
    overflow: Slot,
    #[expect(
        clippy::vec_box,
        reason = "a vector of slots is copied as it grows, and a VM's memory never shrinks"
    )]
    slots: Vec<Box<Slot>>,
    by_hash: BTreeMap<u64, UpstreamId>,
    /// What was learned about upstreams that this worker has not seen.
    learned: BTreeMap<u64, Directive>,
    overflowed: u64,
    /// Whose directives were followed last.
    leader: u64,
}

impl Registry {
    pub(crate) fn new(config: &Config, now: Instant) -> Self {
        let overflow = new_slot(config, OVERFLOW, None, now);
        Self {
            by_hash: BTreeMap::from([(overflow.hash, UpstreamId::OVERFLOW)]),
            overflow,
            slots: Vec::new(),
            learned: BTreeMap::new(),
            overflowed: 0,
            leader: 0,
        }
    }

    /// The slot of a handle; the shared one for a handle of nobody's.
    pub(crate) fn slot(&self, id: UpstreamId) -> &Slot {
        position(id)
            .and_then(|position| self.slots.get(position))
            .map(Box::as_ref)
            .unwrap_or(&self.overflow)
    }

    /// The same, to change it.
    pub(crate) fn slot_mut(&mut self, id: UpstreamId) -> &mut Slot {
        position(id)
            .and_then(|position| self.slots.get_mut(position))
            .map(Box::as_mut)
            .unwrap_or(&mut self.overflow)
    }

    /// All slots, the shared one first.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (UpstreamId, &Slot)> {
        core::iter::once(&self.overflow)
            .chain(self.slots.iter().map(Box::as_ref))
            .zip(0..)
            .map(|(slot, id)| (UpstreamId(id), slot))
    }

    /// The same, to change them.
    pub(crate) fn slots_mut(&mut self) -> impl Iterator<Item = (UpstreamId, &mut Slot)> {
        core::iter::once(&mut self.overflow)
            .chain(self.slots.iter_mut().map(Box::as_mut))
            .zip(0..)
            .map(|(slot, id)| (UpstreamId(id), slot))
    }

    /// The handle of an upstream that is kept.
    pub(crate) fn find(&self, hash: u64) -> Option<UpstreamId> {
        self.by_hash.get(&hash).copied()
    }

    /// All slots that have been asked for, in the order of their hashes. What all beyond the cap share may never be.
    pub(crate) fn for_each_in_order(&mut self, mut work: impl FnMut(&mut Slot)) {
        for id in self.by_hash.values() {
            let slot = position(*id)
                .and_then(|position| self.slots.get_mut(position))
                .map(Box::as_mut)
                .unwrap_or(&mut self.overflow);
            if *id != UpstreamId::OVERFLOW || slot.tally.get(Count::Arrivals) > 0 {
                work(slot);
            }
        }
    }

    /// Requests that had to share state.
    pub(crate) const fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// What is in force for an upstream, if anything is known.
    pub(crate) fn directive(&self, hash: u64) -> Option<Directive> {
        match self.by_hash.get(&hash) {
            Some(id) => Some(self.slot(*id).directive()),
            None => self.learned.get(&hash).copied(),
        }
    }

    pub(crate) fn upstream(
        &mut self,
        config: &Config,
        cluster: &str,
        route: Option<&str>,
        now: Instant,
    ) -> UpstreamId {
        let hash = UpstreamKey::hash(cluster, route);
        if let Some(id) = self.by_hash.get(&hash) {
            return *id;
        }
        let cap = usize::try_from(config.max_upstreams()).unwrap_or(usize::MAX);
        let id = if self.slots.len() < cap {
            self.free_id()
        } else {
            self.evict(now)
        };
        let Some(id) = id else {
            self.overflowed = self.overflowed.wrapping_add(1);
            return UpstreamId::OVERFLOW;
        };
        let mut slot = new_slot(config, cluster, route, now);
        if let Some(directive) = self.learned.remove(&hash) {
            slot.adopt(&directive, config.policy(slot.rule), now);
        }
        self.by_hash.insert(hash, id);
        match position(id).and_then(|position| self.slots.get_mut(position)) {
            Some(place) => **place = slot,
            None => self.slots.push(Box::new(slot)),
        }
        id
    }

    pub(crate) fn adopt(
        &mut self,
        config: &Config,
        directives: &Directives<'_>,
        now: Instant,
    ) -> Vec<u64> {
        let mut tripped = Vec::new();
        if directives.leader != self.leader {
            self.leader = directives.leader;
            self.slots_mut().for_each(|(_, slot)| slot.mark_unknown());
        }
        for directive in directives.entries() {
            if directive.epoch != 0 {
                tripped.push(directive.upstream);
            }
            match self.by_hash.get(&directive.upstream) {
                Some(id) => {
                    let slot = self.slot_mut(*id);
                    slot.adopt(&directive, config.policy(slot.rule), now);
                    slot.mark_introduced();
                }
                None => {
                    self.learned.insert(directive.upstream, directive);
                    // At the cap some other goes, lest names long gone keep out those in use.
                    if self.learned.len()
                        > usize::try_from(config.max_upstreams()).unwrap_or(usize::MAX)
                    {
                        let other = self
                            .learned
                            .keys()
                            .find(|hash| **hash != directive.upstream);
                        if let Some(other) = other.copied() {
                            self.learned.remove(&other);
                        }
                    }
                }
            }
        }
        tripped
    }

    pub(crate) fn follow_config(&mut self, config: &Config, now: Instant) {
        for (_, slot) in self.slots_mut() {
            slot.rule = rule(config, &slot.key);
            slot.follow_policy(config.policy(slot.rule), now);
        }
    }

    fn free_id(&self) -> Option<UpstreamId> {
        u32::try_from(self.slots.len())
            .ok()?
            .checked_add(1)
            .map(UpstreamId)
    }

    /// Frees the place of the upstream that was idle longest, if it was idle long enough.
    fn evict(&mut self, now: Instant) -> Option<UpstreamId> {
        let (id, slot) = self
            .slots()
            .skip(1)
            .filter(|(_, slot)| {
                slot.is_idle() && now.saturating_since(slot.last_wanted()) >= EVICTABLE_AFTER
            })
            .min_by_key(|(_, slot)| slot.last_wanted())?;
        let hash = slot.hash;
        self.by_hash.remove(&hash);
        Some(id)
    }
}

fn position(id: UpstreamId) -> Option<usize> {
    id.index().checked_sub(1)
}

fn rule(config: &Config, key: &UpstreamKey) -> RuleIndex {
    let service = ServiceName::parse(&key.cluster).host;
    config
        .policy_for(&UpstreamName {
            service,
            cluster: &key.cluster,
            route: key.route.as_deref(),
        })
        .0
}

fn new_slot(config: &Config, cluster: &str, route: Option<&str>, now: Instant) -> Slot {
    let key = Arc::new(UpstreamKey {
        cluster: cluster.to_owned(),
        route: route.map(str::to_owned),
    });
    let hash = UpstreamKey::hash(cluster, route);
    let rule = rule(config, &key);
    Slot::new(key, hash, rule, config.policy(rule), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let text = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},"maxUpstreams":2}"#;
        Config::from_json(text.as_bytes()).unwrap()
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn upstream(registry: &mut Registry, name: &str, seconds: u64) -> UpstreamId {
        registry.upstream(&config(), name, None, at(seconds))
    }

    #[test]
    fn newcomers_beyond_the_cap_share_one_state_until_another_was_idle_long_enough() {
        let mut registry = Registry::new(&config(), at(0));
        let first = upstream(&mut registry, "a", 0);
        let second = upstream(&mut registry, "b", 30);
        assert_eq!(upstream(&mut registry, "c", 31), UpstreamId::OVERFLOW);
        assert_eq!(registry.overflowed(), 1);
        assert_eq!(upstream(&mut registry, "c", 61), first);
        assert_eq!(registry.slot(first).key.cluster, "c");
        assert_eq!(upstream(&mut registry, "b", 61), second);
    }

    #[test]
    fn who_is_in_flight_or_led_for_others_keeps_its_place() {
        let mut registry = Registry::new(&config(), at(0));
        let (held, led) = (
            upstream(&mut registry, "held", 0),
            upstream(&mut registry, "led", 0),
        );
        registry.slot_mut(held).count_in_flight(1, at(1));
        registry.slot_mut(led).last_led = at(100);
        assert_eq!(upstream(&mut registry, "new", 120), UpstreamId::OVERFLOW);
        assert_eq!(upstream(&mut registry, "new", 160), led);
    }

    #[test]
    fn what_is_learned_of_names_never_seen_is_bounded_and_the_newest_stays() {
        let mut registry = Registry::new(&config(), at(0));
        for name in ["a", "b", "c", "d"] {
            let hash = UpstreamKey::hash(name, None);
            let directive = Directive {
                limit: 7,
                reserve: 7,
                ..Directive::unknown(hash)
            };
            let directives = Directives::new(1, at(1), [directive]);
            registry.adopt(&config(), &directives, at(1));
            assert!(registry.learned.len() <= 2);
        }
        let id = upstream(&mut registry, "d", 2);
        assert_eq!(registry.slot(id).ladder.limit(), 7);
    }
}
