//! The engine's part in the exchange: a worker's reports, the leader's decisions, and how workers follow them.

use std::collections::BTreeSet;

use core::time::Duration;

use serde::Serialize;

use super::Engine;
use crate::breaker::BreakerTransition;
use crate::counters::{Counter, Counters};
use crate::event::{Event, Events};
use crate::exchange::{
    Directive, Directives, ENVELOPE_BYTES, Introduction, Slice, SliceEntry, WireError,
};
use crate::leader::{Leader, MergedReports, RequestsUnderWay, RoundInputs};
use crate::registry::{FollowerRole, Reported};
use crate::time::Instant;
use crate::upstream::UpstreamId;

/// Memory for a slice is that of the last one and this fraction of it (one eighth) more, so that it seldom moves as it grows: a
/// VM's memory never shrinks.
const ROOM_TO_GROW: usize = 8;
/// Room for the counts of one report, which hardly any exceeds.
const PACKED_BYTES: usize = 256;

impl Engine {
    /// This worker's reports of the upstreams in use.
    pub fn slice(&mut self, now: Instant) -> Slice<'static> {
        // One walk, without the slots at rest: all slots together exceed a processor's caches.
        let last = self.registry.slice_bytes();
        let mut payload = Vec::with_capacity(last + last / ROOM_TO_GROW + ENVELOPE_BYTES);
        let alone = self.alone;
        let (mut names, mut packed) = (Vec::new(), Vec::with_capacity(PACKED_BYTES));
        self.registry
            .for_each_reported(now, |reported| match reported {
                Reported::Awake(slot) => {
                    // A worker alone knows all names, and destinations have no names of their own.
                    let introduction = slot.introduction().filter(|_| !alone);
                    if let Some(introduction) = introduction {
                        append(&introduction, &mut names);
                    }
                    let report = slot.report(&mut packed, now);
                    SliceEntry::News(report).write(&mut payload);
                    report.is_quiet()
                }
                Reported::Asleep { upstream } => {
                    SliceEntry::Resting { upstream }.write(&mut payload);
                    true
                }
            });
        let introductions = names.len();
        payload.splice(..0, names);
        self.registry.set_slice_bytes(payload.len());
        Slice::new(self.worker, now, introductions, payload)
    }

    /// The leader reads the slice of every worker in each tick, as where they share memory. Then an upstream that is used no more
    /// rests after some ticks instead of a second.
    pub const fn expect_every_slice_read(&mut self) {
        self.registry.rest_soon();
    }

    /// Says that only a leader of this version writes the directives, as where workers share memory. They are followed as they are read,
    /// without a look at all of them before.
    pub const fn trust_directives(&mut self) {
        self.trusts_directives = true;
    }

    /// Sets how far the wall clock is ahead of `now`. With it, proxies that share an upstream make their trials at the same
    /// moments: only together can they see whether a queue drains. Without it each proxy uses its own clock, which is as good
    /// for a proxy that is the only one of its upstream.
    pub const fn align(&mut self, ahead: Duration) {
        self.ahead = ahead;
    }

    /// Leads: merges the slices of all workers, runs the control laws, and returns the directives for all workers. `None`
    /// until every live worker has a new report. Only one worker of a proxy may lead at a time.
    pub fn decide(
        &mut self,
        slices: &[Slice<'_>],
        counters: &mut impl Counters,
        now: Instant,
    ) -> Option<(Directives<'static>, Events)> {
        let mut leader = self.leader.take().unwrap_or_else(|| Leader::new(now));
        let events = self.round(&mut leader, slices, counters, now);
        let directives = events.as_ref().map(|_| {
            let payload = leader.publish(self.registry.next_stamp(), now);
            Directives::of(self.worker, now, payload)
        });
        self.leader = Some(leader);
        directives.zip(events)
    }

    /// The handle of an upstream that a slice introduces. A leader decides about it, and reports it only when its own
    /// requests ask for it.
    pub fn introduce(&mut self, name: &Introduction<'_>, now: Instant) -> UpstreamId {
        let (cluster, route) = (name.cluster, name.route);
        self.registry.introduce(&self.config, cluster, route, now)
    }

    /// One round of the laws, upstream by upstream.
    fn round(
        &mut self,
        leader: &mut Leader,
        slices: &[Slice<'_>],
        counters: &mut impl Counters,
        now: Instant,
    ) -> Option<Events> {
        let mut walk = leader.begin(slices, now)?;
        // Upstreams beyond the cap of the registry still get decisions.
        let mut nameless = BTreeSet::new();
        for (hash, name) in walk.introductions() {
            let (config, registry) = (&self.config, &mut self.registry);
            if registry.introduce(config, name.cluster, name.route, now) == UpstreamId::OVERFLOW {
                nameless.insert(hash);
            }
        }
        let (upstreams, destinations) =
            (self.config.max_upstreams(), self.config.max_destinations());
        let cap = usize::try_from(upstreams.max(destinations))
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let mut events = Events::new();
        // One for all: it is large.
        let mut round = MergedReports::empty();
        while let Some(hash) = walk.next() {
            let found = self.registry.find(hash);
            if found.is_none() && !leader.knows(hash) && !nameless.contains(&hash) {
                // Its name is not known yet; its counts so far come with the name.
                walk.pass(hash, |_, _| {});
                continue;
            }
            let upstream = found.unwrap_or(UpstreamId::OVERFLOW);
            let known = || self.registry.hand_over(hash);
            if !leader.merge((&mut walk, &mut round), hash, cap, known) {
                continue;
            }
            if round.is_active() {
                self.registry.note_led(upstream, now);
            }
            if round.has_open() {
                self.registry.set_shown(upstream, false);
            }
            let around = RoundInputs {
                policy: self.config.policy(self.registry.rule(upstream)),
                granted: counters
                    .value(upstream, Counter::Grants)
                    .unwrap_or_default(),
                uniform: self.rng.f64(),
                ahead: self.ahead,
            };
            let changes = leader.decide(hash, &round, &around, now);
            let reason = changes.limit_reason;
            events.extend(reason.map(|reason| Event::LimitReason { upstream, reason }));
            events.extend(changes.transition.map(|to| event(upstream, to)));
        }
        Some(events)
    }

    /// Leads: the requests that the live workers reported as under way with the upstream of this hash in the last round;
    /// `None` if no worker reported it.
    #[must_use]
    pub fn under_way(&self, hash: u64) -> Option<RequestsUnderWay> {
        self.leader.as_ref()?.under_way(hash)
    }

    /// All learned state of this leader, for later VMs; empty if it does not lead.
    #[must_use]
    pub fn learned(&self, now: Instant) -> Directives<'static> {
        match &self.leader {
            Some(leader) => Directives::new(self.worker, now, leader.learned()),
            None => Directives::new::<Directive>(self.worker, now, []),
        }
    }

    /// Another worker leads now.
    pub fn resign(&mut self) {
        if let Some(leader) = self.leader.take() {
            self.registry.take_back(&self.config, leader.learned());
        }
    }

    /// Reads the leader's directives and follows them. Directives that this worker follows already are not read again. Returns
    /// the same as [`Engine::adopt`].
    ///
    /// # Errors
    /// As [`Directives::decode`]; nothing is followed then. [Trusted](Engine::trust_directives) bytes have errors only as a whole.
    pub fn follow(&mut self, bytes: &[u8], now: Instant) -> Result<Vec<UpstreamId>, WireError> {
        let directives = if self.trusts_directives {
            Directives::decode_unread(bytes)?
        } else {
            Directives::decode_news(bytes, self.registry.following())?
        };
        Ok(self.adopt(&directives, now))
    }

    /// Follows the leader's directives. A fresh VM takes over learned state in this way too. Returns the upstreams with [grants](Engine::has_grants),
    /// without those that followed the same directive already.
    pub fn adopt(&mut self, directives: &Directives<'_>, now: Instant) -> Vec<UpstreamId> {
        let role = match self.leader {
            Some(_) if directives.leader == self.worker => FollowerRole::Leader,
            Some(_) | None => FollowerRole::Worker,
        };
        self.registry.adopt(&self.config, directives, role, now)
    }
}

/// Writing plain data to a growing vector cannot fail; if it fails, nothing is published.
fn append(value: &impl Serialize, bytes: &mut Vec<u8>) {
    if let Ok(longer) = postcard::to_extend(value, core::mem::take(bytes)) {
        *bytes = longer;
    }
}

const fn event(upstream: UpstreamId, transition: BreakerTransition) -> Event {
    match transition {
        BreakerTransition::Trip(reason) => Event::Tripped { upstream, reason },
        BreakerTransition::Ramp => Event::Ramping { upstream },
        BreakerTransition::Reset => Event::Reset { upstream },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, MINIMAL_EXAMPLE};
    use crate::counters::Unshared;
    use crate::engine::Decision;
    use crate::outcome::Outcome;
    use crate::request::GivenRequest;

    fn use_once(engine: &mut Engine, name: &str) {
        use_at(engine, name, Instant::ZERO);
    }

    fn use_at(engine: &mut Engine, name: &str, now: Instant) {
        let upstream = engine.upstream(name, None, now);
        let mut known = GivenRequest::default();
        let Decision::Admit(permit) = engine.admit(upstream, &mut known, &mut Unshared, now) else {
            panic!("a fresh upstream admits");
        };
        let end = now + Duration::from_nanos(5);
        engine.complete(permit, Outcome::Success, &mut Unshared, end);
    }

    #[test]
    fn a_slice_survives_the_wire_in_the_order_of_hashes() {
        let mut engine = worker(7);
        for name in ["a", "b", "c", "d"] {
            use_once(&mut engine, name);
        }
        let slice = engine.slice(Instant::from_nanos(9));
        let hashes: Vec<u64> = slice.reports().map(|report| report.upstream).collect();
        assert_eq!(hashes.len(), 4, "nothing was ever beyond the cap");
        assert!(hashes.is_sorted());
        assert_eq!(slice.introductions().count(), 4);
        let bytes = slice.clone().encode();
        assert_eq!(Slice::decode(bytes.as_slice()), Ok(slice.clone()));
        assert_eq!(Slice::decode(bytes), Ok(slice));
    }

    /// The number of reports, and of upstreams, in a worker's slice of each tick.
    fn told(engine: &mut Engine, ticks: core::ops::Range<u32>) -> Vec<(usize, usize)> {
        let told = ticks.map(|tick| {
            let now = Instant::ZERO + Duration::from_millis(100) * tick;
            engine.tick(&mut Unshared, now);
            let slice = engine.slice(now);
            (slice.reports().count(), slice.entries().count())
        });
        told.collect()
    }

    #[test]
    fn an_upstream_at_rest_is_reported_for_a_second_and_listed_for_five() {
        let mut engine = worker(1);
        use_once(&mut engine, "a");
        let slices = told(&mut engine, 1..70);
        let reported = slices.iter().filter(|(reports, _)| *reports > 0).count();
        let told_of = slices
            .iter()
            .filter(|(_, upstreams)| *upstreams > 0)
            .count();
        assert_eq!((reported, told_of), (10, 49));
        use_at(&mut engine, "a", Instant::ZERO + Duration::from_secs(7));
        assert_eq!(told(&mut engine, 70..71), [(1, 1)]);
    }

    #[test]
    fn where_every_slice_is_read_an_upstream_rests_sooner_and_is_listed_as_long() {
        let mut engine = worker(1);
        engine.expect_every_slice_read();
        use_once(&mut engine, "a");
        let slices = told(&mut engine, 1..70);
        let reported = slices.iter().filter(|(reports, _)| *reports > 0).count();
        let told_of = slices
            .iter()
            .filter(|(_, upstreams)| *upstreams > 0)
            .count();
        assert_eq!((reported, told_of), (3, 49));
    }

    #[test]
    fn requests_under_way_are_reported_as_long_as_they_last() {
        let mut engine = worker(1);
        let upstream = engine.upstream("a", None, Instant::ZERO);
        let mut known = GivenRequest::default();
        let decision = engine.admit(upstream, &mut known, &mut Unshared, Instant::ZERO);
        assert!(told(&mut engine, 1..30).iter().all(|it| *it == (1, 1)));
        let Decision::Admit(permit) = decision else {
            panic!("a fresh upstream admits");
        };
        let end = Instant::ZERO + Duration::from_secs(3);
        engine.complete(permit, Outcome::Success, &mut Unshared, end);
        let reported = told(&mut engine, 31..50);
        assert_eq!(
            reported.iter().map(|(reports, _)| reports).sum::<usize>(),
            10
        );
    }

    #[test]
    fn another_leader_is_told_all_again() {
        let mut engine = worker(1);
        use_once(&mut engine, "a");
        told(&mut engine, 1..20);
        assert_eq!(told(&mut engine, 20..21), [(0, 1)]);
        let directives = Directives::new(9, Instant::ZERO, [] as [Directive; 0]);
        engine.adopt(&directives, Instant::ZERO);
        assert_eq!(told(&mut engine, 21..22), [(1, 1)]);
    }

    #[test]
    fn a_missed_report_comes_with_the_next_request() {
        let (mut engine, mut leader) = (worker(1), worker(2));
        let mut hear = |engine: &mut Engine, tick: u32| {
            let now = Instant::ZERO + Duration::from_millis(100) * tick;
            engine.tick(&mut Unshared, now);
            let slices = [engine.slice(now)];
            let mut walk = leader
                .leader
                .get_or_insert_with(|| Leader::new(Instant::ZERO))
                .begin(&slices, now)?;
            let hash = walk.next()?;
            let leader = leader.leader.as_mut()?;
            let mut round = MergedReports::empty();
            if !leader.merge((&mut walk, &mut round), hash, 10, || None) {
                return None;
            }
            Some(round.arrivals())
        };
        use_once(&mut engine, "a");
        assert_eq!(hear(&mut engine, 1), Some(1));
        use_once(&mut engine, "a");
        told(&mut engine, 2..20);
        assert_eq!(hear(&mut engine, 20), Some(0), "at rest");
        use_once(&mut engine, "a");
        assert_eq!(hear(&mut engine, 21), Some(2));
    }

    #[test]
    fn a_leader_reports_what_others_ask_for_only_when_it_is_asked_itself() {
        let (mut engine, mut leader) = (worker(1), worker(2));
        use_once(&mut engine, "a");
        let slice = engine.slice(Instant::ZERO);
        for name in slice.introductions() {
            leader.introduce(&name, Instant::ZERO);
        }
        assert_eq!(leader.slice(Instant::ZERO).reports().count(), 0);
        use_once(&mut leader, "a");
        assert_eq!(leader.slice(Instant::ZERO).reports().count(), 1);
    }

    #[test]
    fn a_worker_passes_by_what_it_follows_and_follows_all_of_another_leader() {
        let (mut engine, mut leader) = (worker(1), worker(2));
        use_once(&mut engine, "a");
        let at = |ticks: u32| Instant::ZERO + Duration::from_millis(100) * ticks;
        let mut round = |leader: &mut Engine, ticks| {
            engine.tick(&mut Unshared, at(ticks));
            let slices = [engine.slice(at(ticks))];
            let decided = leader.decide(&slices, &mut Unshared, at(ticks));
            decided.map(|(directives, _)| {
                let mut is_followed = engine.registry.following();
                let news = directives
                    .unread()
                    .filter(|entry| !is_followed(directives.leader, entry));
                let news = news.count();
                drop(is_followed);
                assert!(engine.follow(&directives.encode(), at(ticks)).is_ok());
                news
            })
        };
        assert_eq!(round(&mut leader, 1), None, "begins to lead");
        assert_eq!(round(&mut leader, 2), Some(1));
        let news: usize = (3..12).filter_map(|tick| round(&mut leader, tick)).sum();
        assert!(news < 3, "at rest: {news}");
        let mut other = worker(3);
        let news: usize = (13..20).filter_map(|tick| round(&mut other, tick)).sum();
        assert!(news > 0);
    }

    #[test]
    fn directives_that_are_trusted_are_followed_as_others_are() {
        let [mut engine, mut trusting, mut leader] = [1, 1, 2].map(worker);
        trusting.trust_directives();
        use_once(&mut engine, "a");
        use_once(&mut trusting, "a");
        for tick in 1..12 {
            let now = Instant::ZERO + Duration::from_millis(100) * tick;
            let slices = [engine.slice(now)];
            assert_eq!(slices[0], trusting.slice(now));
            let decided = leader.decide(&slices, &mut Unshared, now);
            let Some((directives, _)) = decided else {
                continue;
            };
            let mut bytes = directives.encode();
            assert_eq!(
                engine.follow(&bytes, now).unwrap(),
                trusting.follow(&bytes, now).unwrap()
            );
            assert_eq!(engine.snapshot(now), trusting.snapshot(now));
            bytes.pop();
            assert!(trusting.follow(&bytes, now).is_err());
        }
    }

    #[test]
    fn a_leader_is_told_names_until_it_has_answered_and_another_one_again() {
        let (mut engine, mut leader, mut other) = (worker(1), worker(2), worker(3));
        use_once(&mut engine, "a");
        let names = |slice: &Slice<'_>| slice.introductions().count();
        let round = |engine: &mut Engine, leader: &mut Engine, ticks: u32| {
            let now = Instant::ZERO + Duration::from_millis(100) * ticks;
            engine.tick(&mut Unshared, now);
            let slices = [engine.slice(now)];
            if let Some((directives, _)) = leader.decide(&slices, &mut Unshared, now) {
                engine.adopt(&directives, now);
            }
            names(&slices[0])
        };
        assert_eq!(round(&mut engine, &mut leader, 1), 1, "begins to lead");
        assert_eq!(round(&mut engine, &mut leader, 2), 1);
        assert_eq!(round(&mut engine, &mut leader, 3), 0);
        assert_eq!(round(&mut engine, &mut other, 4), 0, "begins to lead");
        assert_eq!(round(&mut engine, &mut other, 5), 0, "knows no upstream");
        assert_eq!(round(&mut engine, &mut other, 6), 1);
        assert_eq!(round(&mut engine, &mut other, 7), 0);
    }

    fn worker(number: u64) -> Engine {
        let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
        Engine::of_many(config, Instant::ZERO, number)
    }
}
