//! The upstreams that a worker keeps state for, a bounded number of them.
//!
//! Names come from the network's configuration, or, with a cluster header, from requests: without a cap they could use up
//! the proxy's memory. At the cap, a new upstream takes the place of the one that was idle longest. If none was idle long
//! enough, new upstreams share one state, and are counted.

use core::iter::Peekable;
use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use core::time::Duration;

use crate::breaker::BreakerState;
use crate::config::{Config, KeyBy, RuleIndex, UpstreamName};
use crate::exchange::{Directive, Directives, PackedDirective, UNSTAMPED};
use crate::slot::Slot;
use crate::tally::Count;
use crate::time::Instant;
use crate::upstream::{EVICTABLE_AFTER, ServiceName, UpstreamId, UpstreamKey};

/// An upstream with nothing under way is at rest this many ticks after its last request. Its last report is published in each
/// of them: a leader that misses all of them has missed a second.
const TICKS_TO_SLEEP: u8 = 10;
/// After a new upstream found no room, the next search for room waits this long: a search goes through all places.
const CROWDED_FOR: Duration = Duration::from_millis(100);
/// The name of the state that all upstreams beyond the cap share.
pub const OVERFLOW: &str = "_overflow";

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

/// All slots of one worker.
#[derive(Debug)]
pub(crate) struct Registry {
    overflow: Place,
    slots: Vec<Place>,
    by_hash: BTreeMap<u64, UpstreamId>,
    /// Learned state of upstreams that this worker has not seen.
    learned: BTreeMap<u64, Learned>,
    /// Clusters that have no state of their own, by hash, and what is kept instead. Few, and sorted.
    others: Vec<(u64, KeyBy)>,
    overflowed: u64,
    /// Until then, new upstreams find no room.
    crowded_until: Instant,
    /// The leader whose directives were followed last.
    leader: u64,
    /// The last stamp that this worker gave to a directive as leader. No stamp is given twice, or a follower would miss a
    /// directive.
    stamp: u32,
    /// How long the last slice was.
    slice_bytes: usize,
}

/// One upstream: what every tick needs. The rest is boxed, because few upstreams are in use at a time.
#[derive(Debug)]
struct Place {
    rest: Rest,
    /// The stamp of the directive that the upstream follows.
    followed: u32,
    origin: Origin,
    slot: Box<Slot>,
}

/// Whether there is anything to do for an upstream.
///
/// ```text
/// Awake -- TICKS_TO_SLEEP without a request, nothing under way, breaker closed --> Asleep
///   ^                                                                                |
///   +------- a request; a breaker that is not closed; another leader or policy ------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// There may be something to do; `ticks` have passed since the last use.
    Awake { ticks: u8 },
    /// There is nothing to do. Until `reported_until` the leader is told so, for as long as reports would have been sent.
    Asleep { reported_until: Instant },
}

/// One upstream in a report to the leader.
pub(crate) enum Reported<'a> {
    /// It may have something to report.
    Awake(&'a mut Slot),
    /// It has nothing to report.
    Asleep { upstream: u64 },
}

/// Why an upstream is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A request of this worker asked for it.
    Own,
    /// This worker leads, and requests of other workers asked for it.
    Led,
}

/// Learned state of an upstream, with the stamp of its directive.
#[derive(Debug)]
struct Learned {
    directive: Directive,
    followed: u32,
}

impl Place {
    fn new(slot: Slot) -> Self {
        Self {
            rest: Rest::AWAKE,
            followed: UNSTAMPED,
            origin: Origin::Own,
            slot: Box::new(slot),
        }
    }

    const fn is_awake(&self) -> bool {
        matches!(self.rest, Rest::Awake { .. })
    }

    /// Whether this directive of the same leader would change nothing. While something is under way, the same directive may have
    /// another effect than before.
    fn follows(&self, entry: &PackedDirective<'_>) -> bool {
        is_same(self.followed, entry) && (!self.is_awake() || self.is_settled())
    }

    /// Whether nothing is under way.
    fn is_settled(&self) -> bool {
        let gate = &self.slot.gate;
        self.slot.is_idle() && gate.state() == BreakerState::Closed && !gate.is_ahead()
    }

    /// There is another leader or policy: the same directive may have another effect, and the leader may not know the earlier
    /// reports.
    fn begin_anew(&mut self) {
        self.rest = Rest::AWAKE;
        self.followed = UNSTAMPED;
    }

    /// The end of a slice in which there was nothing to report, which the leader is told until `reported_until`.
    fn tire(&mut self, reported_until: Instant) {
        if let Rest::Awake { ticks } = self.rest
            && ticks >= TICKS_TO_SLEEP
            && self.is_settled()
        {
            self.rest = Rest::Asleep { reported_until };
        }
    }
}

impl Rest {
    const AWAKE: Self = Self::Awake { ticks: 0 };
}

fn is_same(followed: u32, entry: &PackedDirective<'_>) -> bool {
    entry.stamp != UNSTAMPED && entry.stamp == followed
}

fn has_learned(learned: &BTreeMap<u64, Learned>, entry: &PackedDirective<'_>) -> bool {
    let learned = learned.get(&entry.upstream);
    learned.is_some_and(|learned| is_same(learned.followed, entry))
}

/// Keeps learned state of an upstream that this worker has not seen.
fn keep(learned: &mut BTreeMap<u64, Learned>, new: Learned, config: &Config) {
    let upstream = new.directive.upstream;
    learned.insert(upstream, new);
    // At the cap another one is removed, so that names of the past do not keep out those in use.
    if learned.len() > usize::try_from(config.max_upstreams()).unwrap_or(usize::MAX) {
        let other = learned.keys().find(|hash| **hash != upstream);
        if let Some(other) = other.copied() {
            learned.remove(&other);
        }
    }
}

/// Handles by hash. Hashes in ascending order are found by walking along, others by search.
struct Ids<'a> {
    by_hash: &'a BTreeMap<u64, UpstreamId>,
    ahead: Peekable<btree_map::Iter<'a, u64, UpstreamId>>,
    last: u64,
}

impl<'a> Ids<'a> {
    fn new(by_hash: &'a BTreeMap<u64, UpstreamId>) -> Self {
        Self {
            by_hash,
            ahead: by_hash.iter().peekable(),
            last: 0,
        }
    }

    fn find(&mut self, hash: u64) -> Option<UpstreamId> {
        if hash < self.last {
            return self.by_hash.get(&hash).copied();
        }
        self.last = hash;
        while self.ahead.next_if(|(known, _)| **known < hash).is_some() {}
        let (known, id) = self.ahead.peek()?;
        (**known == hash).then_some(**id)
    }
}

impl Registry {
    pub(crate) fn new(config: &Config, now: Instant) -> Self {
        let hash = UpstreamKey::hash(OVERFLOW, None);
        let overflow = new_slot(config, (OVERFLOW, None), hash, now);
        Self {
            by_hash: BTreeMap::from([(overflow.hash, UpstreamId::OVERFLOW)]),
            overflow: Place::new(overflow),
            slots: Vec::new(),
            learned: BTreeMap::new(),
            others: Vec::new(),
            overflowed: 0,
            crowded_until: Instant::ZERO,
            leader: 0,
            stamp: UNSTAMPED,
            slice_bytes: 0,
        }
    }

    /// The slot of a handle; the shared slot for a handle that is not in use.
    pub(crate) fn slot(&self, id: UpstreamId) -> &Slot {
        &self.place(id).slot
    }

    /// The same, to change it.
    pub(crate) fn slot_mut(&mut self, id: UpstreamId) -> &mut Slot {
        let place = self.place_mut(id);
        place.rest = Rest::AWAKE;
        &mut place.slot
    }

    /// All slots, the shared one first.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (UpstreamId, &Slot)> {
        let places = self.places();
        places.map(|(id, place)| (id, &*place.slot))
    }

    /// Those of them that may have changed since the last tick.
    pub(crate) fn awake(&self) -> impl Iterator<Item = (UpstreamId, &Slot)> {
        let awake = self.places().filter(|(_, place)| place.is_awake());
        awake.map(|(id, place)| (id, &*place.slot))
    }

    /// A tick: the slots that may have something to do.
    pub(crate) fn awake_mut(&mut self) -> impl Iterator<Item = (UpstreamId, &mut Slot)> {
        self.places_mut().zip(0..).filter_map(|(place, id)| {
            let Rest::Awake { ticks } = &mut place.rest else {
                return None;
            };
            *ticks = ticks.saturating_add(1);
            Some((UpstreamId(id), &mut *place.slot))
        })
    }

    /// The handle of an upstream that is kept.
    pub(crate) fn find(&self, hash: u64) -> Option<UpstreamId> {
        self.by_hash.get(&hash).copied()
    }

    /// Calls `tell` for all upstreams that belong in a report, in the order of their hashes: those that requests of this worker
    /// asked for. Upstreams that are kept for other workers, and the shared state, count only once they had a request. `tell`
    /// returns whether there was nothing to report.
    pub(crate) fn for_each_reported(
        &mut self,
        now: Instant,
        mut tell: impl FnMut(Reported<'_>) -> bool,
    ) {
        for (hash, id) in &self.by_hash {
            let place = position(*id)
                .and_then(|position| self.slots.get_mut(position))
                .unwrap_or(&mut self.overflow);
            match place.rest {
                Rest::Asleep { reported_until } if now < reported_until => {
                    tell(Reported::Asleep { upstream: *hash });
                }
                Rest::Asleep { .. } => {}
                Rest::Awake { .. } => {
                    let is_own = *id != UpstreamId::OVERFLOW && place.origin == Origin::Own;
                    let is_asked_for = is_own || place.slot.tally.get(Count::Arrivals) > 0;
                    let is_told = is_asked_for && place.slot.is_reported(now);
                    if !is_told {
                        place.tire(now);
                    } else if tell(Reported::Awake(&mut place.slot)) {
                        place.tire(place.slot.reported_until());
                    }
                }
            }
        }
    }

    /// Requests that had to share state.
    pub(crate) const fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// The directive in force for an upstream, if any is known.
    pub(crate) fn directive(&self, hash: u64) -> Option<Directive> {
        match self.by_hash.get(&hash) {
            Some(id) => Some(self.slot(*id).directive()),
            None => self.learned.get(&hash).map(|learned| learned.directive),
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
        let is_new = self.find(hash).is_none();
        let id = self.upstream(config, cluster, route, now);
        if is_new {
            // The other worker may follow an older configuration.
            self.remember(config, hash, key_by(config, cluster, route));
        }
        if is_new && id != UpstreamId::OVERFLOW {
            self.place_mut(id).origin = Origin::Led;
        }
        id
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
        let Some(id) = self.room(config.max_upstreams(), now) else {
            return UpstreamId::OVERFLOW;
        };
        let slot = new_slot(config, (cluster, route), hash, now);
        self.settle(config, id, slot, now)
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
        let other = self.other(hash).ok();
        let other = other.and_then(|place| self.others.get(place));
        let key_by = match (other, self.by_hash.get(&hash)) {
            (Some((_, other)), _) => *other,
            (None, Some(id)) => return Lookup::Upstream(*id),
            (None, None) => {
                let key_by = key_by(config, cluster, route);
                self.remember(config, hash, key_by);
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
        if let Some(id) = self.by_hash.get(&hash) {
            return Some(*id);
        }
        let id = self.room(config.max_destinations(), now)?;
        let slot = new_slot(config, (cluster, route), hash, now);
        Some(self.settle(config, id, slot, now))
    }

    /// Remembers what is kept for a cluster that has no state of its own.
    fn remember(&mut self, config: &Config, hash: u64, key_by: KeyBy) {
        // Names may come from requests, so the memory is bounded. Beyond the cap each look-up reads the rules again.
        let cap = usize::try_from(config.max_upstreams()).unwrap_or(usize::MAX);
        if key_by != KeyBy::Cluster
            && self.others.len() < cap
            && let Err(place) = self.other(hash)
        {
            self.others.insert(place, (hash, key_by));
        }
    }

    /// The position of a cluster without a state of its own, or where it would be inserted.
    fn other(&self, hash: u64) -> Result<usize, usize> {
        self.others.binary_search_by_key(&hash, |(known, _)| *known)
    }

    /// A handle for a new upstream, of which there may be `cap`. `None`, and counted, if there is no room.
    fn room(&mut self, cap: u32, now: Instant) -> Option<UpstreamId> {
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        let id = if self.slots.len() < cap {
            self.free_id()
        } else if now < self.crowded_until {
            None
        } else {
            self.evict(now)
        };
        if id.is_none() {
            self.overflowed = self.overflowed.wrapping_add(1);
            // New upstreams in the meantime do not postpone the next search.
            if now >= self.crowded_until {
                self.crowded_until = now + CROWDED_FOR;
            }
        }
        id
    }

    /// Gives a handle to a new upstream, which starts from its learned state.
    fn settle(
        &mut self,
        config: &Config,
        id: UpstreamId,
        mut slot: Slot,
        now: Instant,
    ) -> UpstreamId {
        let hash = slot.hash;
        if let Some(learned) = self.learned.remove(&hash) {
            slot.adopt(&learned.directive, config.policy(slot.rule), now);
        }
        let new = Place::new(slot);
        self.by_hash.insert(hash, id);
        match position(id).and_then(|position| self.slots.get_mut(position)) {
            Some(place) => *place = new,
            None => self.slots.push(new),
        }
        id
    }

    /// Returns a function that tells whether a directive of a leader is followed already. It need not search if called in the
    /// order of hashes.
    pub(crate) fn following(&self) -> impl FnMut(u64, &PackedDirective<'_>) -> bool {
        let mut ids = Ids::new(&self.by_hash);
        move |leader, entry| {
            leader == self.leader
                && match ids.find(entry.upstream) {
                    Some(id) => self.place(id).follows(entry),
                    None => has_learned(&self.learned, entry),
                }
        }
    }

    pub(crate) fn adopt(
        &mut self,
        config: &Config,
        directives: &Directives<'_>,
        now: Instant,
    ) -> Vec<UpstreamId> {
        let mut tripped = Vec::new();
        if directives.leader != self.leader {
            self.leader = directives.leader;
            for place in self.places_mut() {
                place.slot.mark_unknown();
                place.begin_anew();
            }
            for learned in self.learned.values_mut() {
                learned.followed = UNSTAMPED;
            }
        }
        let Self {
            by_hash,
            slots,
            overflow,
            learned,
            ..
        } = self;
        let mut ids = Ids::new(by_hash);
        for entry in directives.unread() {
            let id = ids.find(entry.upstream);
            let place = id.map(|id| {
                position(id)
                    .and_then(|position| slots.get_mut(position))
                    .unwrap_or(overflow)
            });
            let is_followed = match &place {
                Some(place) => place.follows(&entry),
                None => has_learned(learned, &entry),
            };
            match place {
                Some(place) => {
                    if !is_followed {
                        let Some(directive) = entry.directive() else {
                            continue;
                        };
                        let policy = config.policy(place.slot.rule);
                        place.slot.adopt(&directive, policy, now);
                        place.followed = entry.stamp;
                        if !place.is_settled() {
                            place.rest = Rest::AWAKE;
                        }
                        tripped.extend(id.filter(|_| directive.epoch != 0));
                    }
                    if place.is_awake() {
                        place.slot.mark_introduced();
                    }
                }
                None if is_followed => {}
                None => {
                    if let Some(directive) = entry.directive() {
                        let followed = entry.stamp;
                        keep(
                            learned,
                            Learned {
                                directive,
                                followed,
                            },
                            config,
                        );
                    }
                }
            }
        }
        tripped
    }

    pub(crate) fn follow_config(&mut self, config: &Config, now: Instant) {
        self.others.clear();
        let mut others = Vec::new();
        for place in self.places_mut() {
            let slot = &mut place.slot;
            let key = Arc::clone(&slot.key);
            slot.rule = rule(config, &key.cluster, key.route.as_deref());
            let policy = config.policy(slot.rule);
            slot.follow_policy(policy, now);
            others.push((slot.hash, policy.key_by().resolve(&key.cluster)));
            place.begin_anew();
        }
        for (hash, key_by) in others {
            self.remember(config, hash, key_by);
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

    fn place(&self, id: UpstreamId) -> &Place {
        position(id)
            .and_then(|position| self.slots.get(position))
            .unwrap_or(&self.overflow)
    }

    fn place_mut(&mut self, id: UpstreamId) -> &mut Place {
        position(id)
            .and_then(|position| self.slots.get_mut(position))
            .unwrap_or(&mut self.overflow)
    }

    fn places(&self) -> impl Iterator<Item = (UpstreamId, &Place)> {
        let places = core::iter::once(&self.overflow).chain(&self.slots);
        places.zip(0..).map(|(place, id)| (UpstreamId(id), place))
    }

    fn places_mut(&mut self) -> impl Iterator<Item = &mut Place> {
        core::iter::once(&mut self.overflow).chain(&mut self.slots)
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

fn rule(config: &Config, cluster: &str, route: Option<&str>) -> RuleIndex {
    let name = UpstreamName {
        service: ServiceName::parse(cluster).host,
        cluster,
        route,
    };
    config.policy_for(&name).0
}

fn key_by(config: &Config, cluster: &str, route: Option<&str>) -> KeyBy {
    let rule = rule(config, cluster, route);
    config.policy(rule).key_by().resolve(cluster)
}

fn new_slot(
    config: &Config,
    (cluster, route): (&str, Option<&str>),
    hash: u64,
    now: Instant,
) -> Slot {
    let key = Arc::new(UpstreamKey {
        cluster: cluster.to_owned(),
        route: route.map(str::to_owned),
    });
    let rule = rule(config, cluster, route);
    Slot::new(key, hash, rule, config.policy(rule), now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_found_in_any_order() {
        let by_hash = (0..50).map(|it| (7 * it, UpstreamId(u32::try_from(it).unwrap())));
        let by_hash = BTreeMap::from_iter(by_hash);
        for step in [1, 3, 7, 50, 101] {
            let mut ids = Ids::new(&by_hash);
            for index in 0..700 {
                let hash = index * step % 400;
                assert_eq!(ids.find(hash), by_hash.get(&hash).copied(), "{step} {hash}");
            }
        }
    }

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
    fn upstreams_beyond_the_cap_share_one_state_until_another_was_idle_long_enough() {
        let mut registry = Registry::new(&config(), at(0));
        let first = upstream(&mut registry, "a", 0);
        let second = upstream(&mut registry, "b", 30);
        assert_eq!(upstream(&mut registry, "c", 31), UpstreamId::OVERFLOW);
        assert_eq!(registry.overflowed(), 1);
        assert_eq!(upstream(&mut registry, "c", 61), first);
        assert_eq!(registry.slot(first).key.cluster, "c");
        assert_eq!(upstream(&mut registry, "b", 61), second);
    }

    fn keyed(rules: &str) -> Config {
        let text = format!(
            r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}},
                "maxUpstreams":2,"maxDestinations":2,"upstreams":[{rules}]}}"#
        );
        Config::from_json(text.as_bytes()).unwrap()
    }

    const FORWARDED: &str = r#"{"match":{"cluster":"forward"},"keyBy":"authority"}"#;

    #[test]
    fn the_configuration_or_the_name_of_a_cluster_decides_on_its_state() {
        let config = keyed(&format!(
            r#"{FORWARDED},{{"match":{{"cluster":"out"}},"keyBy":"none"}},
               {{"match":{{"cluster":"outbound|80||*.one.example"}},"keyBy":"cluster"}}"#
        ));
        let mut registry = Registry::new(&config, at(0));
        let mut found = |cluster| registry.look_up(&config, cluster, None, at(0));
        for _ in 0..2 {
            assert_eq!(found("forward"), Lookup::ByAuthority);
            assert_eq!(found("out"), Lookup::Nothing);
            assert_eq!(found("PassthroughCluster"), Lookup::Nothing);
            assert_eq!(found("outbound|80||*.example"), Lookup::Nothing);
            assert_eq!(found("web"), Lookup::Upstream(UpstreamId(1)));
            assert_eq!(
                found("outbound|80||*.one.example"),
                Lookup::Upstream(UpstreamId(2))
            );
        }
        assert_eq!(registry.slots.len(), 2);
        assert_eq!(registry.overflowed(), 0);
    }

    #[test]
    fn the_state_of_a_cluster_follows_the_configuration() {
        let (plain, by_authority) = (keyed(""), keyed(FORWARDED));
        let mut registry = Registry::new(&plain, at(0));
        let whole = Lookup::Upstream(UpstreamId(1));
        let look = |registry: &mut Registry, config: &Config| {
            registry.look_up(config, "forward", None, at(0))
        };
        assert_eq!(look(&mut registry, &plain), whole);
        registry.follow_config(&by_authority, at(1));
        assert_eq!(look(&mut registry, &by_authority), Lookup::ByAuthority);
        registry.follow_config(&plain, at(2));
        assert_eq!(look(&mut registry, &plain), whole);
    }

    #[test]
    fn an_introduction_under_another_configuration_does_not_make_an_upstream() {
        let config = keyed(FORWARDED);
        let mut registry = Registry::new(&config, at(0));
        registry.introduce(&config, "forward", None, at(0));
        assert_eq!(
            registry.look_up(&config, "forward", None, at(0)),
            Lookup::ByAuthority
        );
    }

    #[test]
    fn clusters_without_a_state_are_remembered_up_to_the_cap() {
        let config = keyed("");
        let mut registry = Registry::new(&config, at(0));
        for number in 0..10 {
            let cluster = format!("outbound|{number}||*.example.com");
            assert_eq!(
                registry.look_up(&config, &cluster, None, at(0)),
                Lookup::Nothing
            );
        }
        assert_eq!(registry.others.len(), 2);
    }

    #[test]
    fn destinations_beyond_the_cap_get_no_state_until_another_was_idle_long_enough() {
        let config = keyed(FORWARDED);
        let mut registry = Registry::new(&config, at(0));
        let mut ask =
            |hash, seconds| registry.destination(&config, ("forward", None), hash, at(seconds));
        let (first, second) = (ask(10, 0), ask(20, 30));
        assert_eq!(ask(10, 0), first);
        assert_ne!(first, second);
        for hash in 30..1_000 {
            assert_eq!(ask(hash, 31), None);
        }
        assert_eq!(ask(30, 61), first);
        assert_eq!(ask(20, 61), second);
        assert_eq!(ask(10, 61), None);
        assert_eq!(registry.overflowed(), 971);
        assert_eq!(registry.slot(UpstreamId(1)).rule, RuleIndex::Rule(0));
    }

    #[test]
    fn an_upstream_in_use_or_led_for_others_keeps_its_place() {
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
    fn learned_state_of_unseen_names_is_bounded_and_the_newest_stays() {
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
