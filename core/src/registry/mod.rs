//! The upstreams that a worker keeps state for, a bounded number of them.
//!
//! Names come from the network's configuration, or, with a cluster header, from requests: without a cap they could use up
//! the proxy's memory. At the cap, a new upstream takes the place of the one that was idle longest. If none was idle long
//! enough, new upstreams share one state, and are counted.

mod follow;
mod ids;
mod keys;
mod led;
mod place;
mod places;
mod reported;
mod room;
mod shown;
#[cfg(test)]
mod tests;
mod unseen;

use core::time::Duration;
use std::sync::Arc;

use self::keys::{OtherClusters, key_by, new_place, rule};
use self::place::{Rest, TICKS_TO_SLEEP, TICKS_TO_SLEEP_IF_READ, UpstreamPlace};
use self::places::{KnownUpstream, UpstreamPlaces};
use self::unseen::Unseen;
use crate::by_hash::ByHash;
use crate::config::{Config, KeyBy, RuleIndex};
use crate::exchange::{Directive, UNSTAMPED};
use crate::slot::Slot;
use crate::time::Instant;
use crate::upstream::{KeySource, UpstreamId, UpstreamKey};

pub(crate) use self::follow::FollowerRole;
pub use self::keys::Lookup;
pub(crate) use self::led::LedUpstream;
pub(crate) use self::reported::Reported;
pub(crate) use self::shown::Unshown;

/// A worker that has had no directives for longer has no leader that could grant it a request.
const LED_FOR: Duration = Duration::from_secs(2);

/// The name of the state that all upstreams beyond the cap share.
pub const OVERFLOW: &str = "_overflow";

/// All slots of one worker.
#[derive(Debug)]
pub(crate) struct Registry {
    places: UpstreamPlaces,
    by_hash: ByHash<UpstreamId>,
    /// Names that other engines share; `None`: this one has its own copies.
    keys: Option<Arc<dyn KeySource>>,
    unseen: Unseen,
    others: OtherClusters,
    /// Requests that had to share state.
    overflowed: u64,
    /// Until then, new upstreams find no room.
    crowded_until: Instant,
    /// The leader whose directives were followed last, and when.
    leader: u64,
    led_at: Instant,
    /// The last stamp that this worker gave to a directive as leader. No stamp is given twice, or a follower would miss a
    /// directive.
    stamp: u32,
    /// How long the last slice was.
    slice_bytes: usize,
    /// How many ticks after its last request an upstream with nothing under way is at rest.
    ticks_to_sleep: u8,
}

impl Registry {
    pub(crate) fn new(config: &Config, now: Instant) -> Self {
        let hash = UpstreamKey::hash(OVERFLOW, None);
        let overflow = new_place(config, UpstreamKey::new(OVERFLOW, None), hash, now);
        let mut by_hash = ByHash::new();
        by_hash.insert(hash, UpstreamId::OVERFLOW);
        Self {
            by_hash,
            keys: None,
            places: UpstreamPlaces::new(overflow),
            unseen: Unseen::default(),
            others: OtherClusters::default(),
            overflowed: 0,
            crowded_until: Instant::ZERO,
            leader: 0,
            led_at: now,
            stamp: UNSTAMPED,
            slice_bytes: 0,
            ticks_to_sleep: TICKS_TO_SLEEP,
        }
    }

    /// Takes names from there.
    pub(crate) fn share_keys(&mut self, keys: Arc<dyn KeySource>) {
        self.keys = Some(keys);
    }

    fn key_of(&self, cluster: &str, route: Option<&str>) -> Arc<UpstreamKey> {
        match &self.keys {
            Some(keys) => keys.key(cluster, route),
            None => UpstreamKey::new(cluster, route),
        }
    }

    /// Whether there is a leader, as far as this worker knows.
    pub(crate) fn is_led(&self, now: Instant) -> bool {
        now.saturating_since(self.led_at) < LED_FOR
    }

    /// The leader reads in each tick what its workers reported in it, so an upstream may rest sooner.
    pub(crate) const fn rest_soon(&mut self) {
        self.ticks_to_sleep = TICKS_TO_SLEEP_IF_READ;
    }

    /// The slot of a handle; the shared slot for a handle without requests of this worker.
    pub(crate) fn slot(&self, id: UpstreamId) -> &Slot {
        &self.places.get(id).slot
    }

    /// The same, to change it.
    pub(crate) fn slot_mut(&mut self, id: UpstreamId) -> &mut Slot {
        self.ruled_slot_mut(id).1
    }

    /// The slot of a handle, to change it, and the rule that applies to it.
    pub(crate) fn ruled_slot_mut(&mut self, id: UpstreamId) -> (RuleIndex, &mut Slot) {
        let place = self.places.get_mut(id);
        place.rest = Rest::AWAKE;
        (place.rule, &mut place.slot)
    }

    /// The name of an upstream.
    pub(crate) fn key(&self, id: UpstreamId) -> &Arc<UpstreamKey> {
        self.places.name(id).0
    }

    /// The same; `None` if this worker only leads it.
    pub(crate) fn served_key(&self, id: UpstreamId) -> Option<&Arc<UpstreamKey>> {
        self.places.served(id).map(|place| &place.slot.key)
    }

    /// [`UpstreamKey::hash`] of it.
    pub(crate) fn hash(&self, id: UpstreamId) -> u64 {
        self.places.name(id).1
    }

    /// The upstream of a handle, if this worker only leads it.
    pub(crate) fn led(&self, id: UpstreamId) -> Option<&LedUpstream> {
        self.places.led(id)
    }

    /// All upstreams that this worker only leads.
    pub(crate) fn all_led(&self) -> impl Iterator<Item = (UpstreamId, &LedUpstream)> {
        self.places.all_led()
    }

    /// This worker has decided about an upstream in use.
    pub(crate) fn note_led(&mut self, id: UpstreamId, now: Instant) {
        match self.places.led_mut(id) {
            Some(led) => led.last_led = now,
            None => self.slot_mut(id).last_led = now,
        }
    }

    /// All slots, the shared one first.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (UpstreamId, &Slot)> {
        let places = self.places.iter();
        places.map(|(id, place)| (id, &*place.slot))
    }

    /// The handles of all upstreams in the order of their hashes.
    pub(crate) fn ids_by_hash(&self) -> &[(u64, UpstreamId)] {
        self.by_hash.as_slice()
    }

    /// The rule that applies to an upstream.
    pub(crate) fn rule(&self, id: UpstreamId) -> RuleIndex {
        self.places.name(id).2
    }

    /// How many upstreams have a state of their own.
    pub(crate) const fn len(&self) -> usize {
        self.places.len()
    }

    /// Those of them that may have changed since the last tick.
    pub(crate) fn awake(&self) -> impl Iterator<Item = (UpstreamId, &Slot)> {
        let awake = self.places.iter().filter(|(_, place)| place.is_awake());
        awake.map(|(id, place)| (id, &*place.slot))
    }

    /// A tick: the slots that may have something to do.
    pub(crate) fn awake_mut(&mut self) -> impl Iterator<Item = (UpstreamId, &mut Slot)> {
        self.places.tick()
    }

    /// The handle of an upstream that is kept.
    pub(crate) fn find(&self, hash: u64) -> Option<UpstreamId> {
        self.by_hash.get(hash).copied()
    }

    /// Requests that had to share state.
    pub(crate) const fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// The directive in force for an upstream, if any is known: with it a leader begins to decide. One that this worker only
    /// leads is not kept here as well.
    pub(crate) fn hand_over(&mut self, hash: u64) -> Option<Directive> {
        match self.by_hash.get(hash) {
            Some(id) if self.places.led(*id).is_some() => self.unseen.take(hash),
            Some(id) => Some(self.slot(*id).directive()),
            None => self.unseen.find(hash).copied(),
        }
    }

    /// The last directive for an upstream without a slot, if this worker does not lead.
    pub(crate) fn unseen(&self, hash: u64) -> Option<&Directive> {
        self.unseen.find(hash)
    }

    /// This worker leads no more: its last directives, for upstreams that it has no slots for.
    pub(crate) fn take_back<'a>(
        &mut self,
        config: &Config,
        directives: impl Iterator<Item = &'a Directive>,
    ) {
        for directive in directives {
            let id = self.find(directive.upstream);
            if id.is_some_and(|id| self.places.led(id).is_some()) {
                self.unseen.keep(*directive, UNSTAMPED, config);
            }
        }
    }

    /// The handle of an upstream that another worker has introduced.
    pub(crate) fn introduce(
        &mut self,
        config: &Config,
        cluster: &str,
        route: Option<&str>,
        now: Instant,
    ) -> UpstreamId {
        let hash = UpstreamKey::hash(cluster, route);
        if let Some(id) = self.find(hash) {
            return id;
        }
        let rule = rule(config, cluster, route);
        // The other worker may follow an older configuration.
        let key_by = config.policy(rule).key_by().resolve(cluster);
        self.others.remember(config, hash, key_by);
        let Some(id) = self.room(config.max_upstreams(), now) else {
            return UpstreamId::OVERFLOW;
        };
        let key = self.key_of(cluster, route);
        self.by_hash.insert(hash, id);
        let led = LedUpstream::new(key, hash, rule, now);
        self.places.put(id, KnownUpstream::Led(led));
        id
    }

    /// The first request of this worker to an upstream that it has only led, with this directive in force, if any.
    pub(crate) fn serve(
        &mut self,
        config: &Config,
        id: UpstreamId,
        directive: Option<Directive>,
        now: Instant,
    ) {
        let Some(led) = self.places.led(id) else {
            return;
        };
        let (key, rule) = (Arc::clone(&led.key), led.rule);
        let slot = Slot::new(key, led.hash, config.policy(rule), now);
        let id = self.settle(config, id, UpstreamPlace::new(slot, rule), now);
        if let Some(directive) = directive {
            let slot = self.slot_mut(id);
            slot.adopt(&directive, config.policy(rule), now);
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
        if let Some(id) = self.by_hash.get(hash) {
            return *id;
        }
        let Some(id) = self.room(config.max_upstreams(), now) else {
            return UpstreamId::OVERFLOW;
        };
        let key = self.key_of(cluster, route);
        let place = new_place(config, key, hash, now);
        self.settle(config, id, place, now)
    }

    /// What is kept for requests to a cluster. A new upstream gets its state here.
    pub(crate) fn look_up(
        &mut self,
        config: &Config,
        cluster: &str,
        route: Option<&str>,
        now: Instant,
    ) -> Lookup {
        let hash = UpstreamKey::hash(cluster, route);
        let key_by = match (self.others.find(hash), self.by_hash.get(hash)) {
            (Some(other), _) => other,
            (None, Some(id)) => return Lookup::Upstream(*id),
            (None, None) => {
                let key_by = key_by(config, cluster, route);
                self.others.remember(config, hash, key_by);
                key_by
            }
        };
        match key_by {
            KeyBy::Nothing => Lookup::Nothing,
            KeyBy::Authority => Lookup::ByAuthority,
            KeyBy::Auto | KeyBy::Cluster => {
                Lookup::Upstream(self.upstream(config, cluster, route, now))
            }
        }
    }

    /// The handle of the destination of a cluster with this hash; `None` if there is no room.
    pub(crate) fn destination(
        &mut self,
        config: &Config,
        (cluster, route): (&str, Option<&str>),
        hash: u64,
        now: Instant,
    ) -> Option<UpstreamId> {
        if let Some(id) = self.by_hash.get(hash) {
            return Some(*id);
        }
        let id = self.room(config.max_destinations(), now)?;
        // Two destinations of a cluster have a copy of its name each, by which those that have their handles tell them apart.
        let place = new_place(config, UpstreamKey::new(cluster, route), hash, now);
        Some(self.settle(config, id, place, now))
    }

    /// Gives a handle to a new upstream, which starts from its learned state.
    fn settle(
        &mut self,
        config: &Config,
        id: UpstreamId,
        mut place: UpstreamPlace,
        now: Instant,
    ) -> UpstreamId {
        let hash = place.slot.hash;
        if let Some(directive) = self.unseen.take(hash) {
            place.slot.adopt(&directive, config.policy(place.rule), now);
        }
        self.by_hash.insert(hash, id);
        self.places.put(id, KnownUpstream::Served(place));
        id
    }

    pub(crate) fn follow_config(&mut self, config: &Config, now: Instant) {
        self.others.clear();
        let mut others = Vec::new();
        for (_, place) in self.places.iter_mut() {
            let slot = &mut place.slot;
            let key = Arc::clone(&slot.key);
            place.rule = rule(config, &key.cluster, key.route.as_deref());
            let policy = config.policy(place.rule);
            slot.follow_policy(policy, now);
            others.push((slot.hash, policy.key_by().resolve(&key.cluster)));
            place.begin_anew();
        }
        for led in self.places.all_led_mut() {
            led.rule = rule(config, &led.key.cluster, led.key.route.as_deref());
            let key_by = config.policy(led.rule).key_by();
            others.push((led.hash, key_by.resolve(&led.key.cluster)));
            led.begin_anew();
        }
        for (hash, key_by) in others {
            self.others.remember(config, hash, key_by);
        }
    }

    /// A stamp that this worker has not given to any directive yet.
    pub(crate) fn next_stamp(&mut self) -> u32 {
        self.stamp = self.stamp.wrapping_add(1).max(UNSTAMPED + 1);
        self.stamp
    }

    /// How long the last slice was: the next one will be about as long.
    pub(crate) const fn slice_bytes(&self) -> usize {
        self.slice_bytes
    }

    pub(crate) const fn set_slice_bytes(&mut self, bytes: usize) {
        self.slice_bytes = bytes;
    }
}
