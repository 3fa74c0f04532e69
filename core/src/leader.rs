//! The leader: merges what all workers saw, runs the control laws, and decides for all.
//!
//! Reports hold growing counts; the leader takes differences per worker and adds them up, so the order of the
//! workers does not matter, a report read twice counts once, and one that was overwritten is not lost. A round
//! waits until every live worker has reported anew, because half a report is half the throughput.
//!
//! What a worker counted before this leader first heard of it is history, not news: an hour's requests would look
//! like a tenth of a second's. Only counts that began a moment ago are taken whole.
//!
//! Slices come sorted, so they are walked side by side: one upstream is merged and decided at a time, and what was
//! last heard of a worker is kept packed, as it came. A leader's memory grows little with the number of workers.

use std::collections::BTreeMap;

use core::time::Duration;

use crate::breaker::{BreakerState, Findings, Judge, Transition};
use crate::config::Policy;
use crate::exchange::{Directive, Introduction, LocalTrip, Report, Slice};
use crate::ladder::{Demand, Margin};
use crate::limit::{Learned, LimitReason, Limiter, Terms};
use crate::registry::EVICTABLE_AFTER;
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;
use crate::upstream::UpstreamKey;

/// A worker that has not reported for so long is gone.
const WORKER_TIMEOUT: Duration = Duration::from_secs(2);
/// A round waits for late workers this long at most.
const ROUND_PATIENCE: Duration = Duration::from_millis(250);
/// Rounds closer together than this measure nothing.
const MIN_ROUND: Duration = Duration::from_millis(10);
/// Counts that began less than this before their first report are news as a whole.
const YOUNG: Duration = Duration::from_secs(1);
/// Directives of upstreams that were idle for so long need not be repeated.
const QUIET_AFTER: Duration = Duration::from_secs(10);

/// The leader's state for all upstreams.
#[derive(Debug)]
pub(crate) struct Leader {
    round_at: Instant,
    workers: BTreeMap<u64, Instant>,
    controllers: BTreeMap<u64, Controller>,
}

/// The laws for one upstream.
#[derive(Debug)]
struct Controller {
    limiter: Limiter,
    judge: Judge,
    demand: Demand,
    /// Of each worker.
    seen: Vec<Seen>,
    active_at: Instant,
    /// What was under way in the last round that had a report, and when that was.
    under_way: UnderWay,
    heard_at: Instant,
    directive: Directive,
}

/// What was last heard of one worker's counts.
#[derive(Debug)]
struct Seen {
    worker: u64,
    began: Instant,
    /// The sequence of the last trip heard.
    trip: Option<u32>,
    /// The counts, packed.
    counts: Box<[u8]>,
}

/// What the live workers have under way with one upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnderWay {
    /// Requests in flight.
    pub in_flight: u64,
    /// Streams, and requests that hang since before the breaker opened.
    pub streams: u64,
}

/// One upstream's merged reports of a round.
pub(crate) struct Round {
    sample: Sample,
    trips: Vec<LocalTrip>,
    under_way: UnderWay,
}

impl Round {
    /// Whether any worker had a request for it.
    pub(crate) fn is_active(&self) -> bool {
        self.sample.tally.get(Count::Arrivals) > 0 || self.sample.in_flight > 0
    }
}

/// One slice of each live worker, walked side by side.
pub(crate) struct Walk<'a> {
    span: Duration,
    introductions: BTreeMap<u64, Introduction<'a>>,
    workers: Vec<Stop<'a>>,
}

/// Where the walk through one worker's slice stands.
struct Stop<'a> {
    worker: u64,
    at: Instant,
    next: Option<Report<'a>>,
    rest: Box<dyn Iterator<Item = Report<'a>> + 'a>,
}

impl<'a> Walk<'a> {
    /// Upstreams that this leader may not know, in the order of their hashes.
    pub(crate) fn introductions(&self) -> impl Iterator<Item = (u64, Introduction<'a>)> {
        self.introductions.iter().map(|(hash, name)| (*hash, *name))
    }

    /// The next upstream's hash.
    pub(crate) fn next(&self) -> Option<u64> {
        let nexts = self.workers.iter().filter_map(|stop| stop.next.as_ref());
        nexts.map(|report| report.upstream).min()
    }

    /// Goes past the reports of an upstream.
    pub(crate) fn pass(&mut self, upstream: u64, mut hear: impl FnMut(u64, Instant, &Report<'_>)) {
        for stop in &mut self.workers {
            while let Some(report) = stop.next.filter(|report| report.upstream == upstream) {
                hear(stop.worker, stop.at, &report);
                stop.next = stop.rest.next();
            }
        }
    }
}

/// What a controller needs from outside for one round.
pub(crate) struct Surroundings<'a> {
    pub(crate) policy: &'a Policy,
    /// Probes ever sent.
    pub(crate) probes: u64,
    /// In 0..1.
    pub(crate) dice: f64,
}

impl Leader {
    /// A leader from now on.
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            round_at: now,
            workers: BTreeMap::new(),
            controllers: BTreeMap::new(),
        }
    }

    /// Begins a round with these slices; `None` while workers are still to report.
    pub(crate) fn begin<'a>(&mut self, slices: &'a [Slice<'_>], now: Instant) -> Option<Walk<'a>> {
        // One slice of each worker, the newest, in the workers' order: whatever order they came in.
        let mut live = BTreeMap::new();
        for slice in slices {
            let is_newest = live
                .get(&slice.worker)
                .is_none_or(|other: &&Slice<'_>| slice.at > other.at);
            if is_newest && now.saturating_since(slice.at) < WORKER_TIMEOUT {
                live.insert(slice.worker, slice);
            }
        }
        let fresh = |slice: &&&Slice<'_>| {
            self.workers
                .get(&slice.worker)
                .is_none_or(|seen| slice.at > *seen)
        };
        // After a jump backwards the rounds go on from there.
        self.round_at = self.round_at.min(now);
        let waited = now.saturating_since(self.round_at);
        if waited < MIN_ROUND
            || live.is_empty()
            || (!live.values().all(|slice| fresh(&slice)) && waited < ROUND_PATIENCE)
        {
            return None;
        }
        let span = self.span(live.values().filter(fresh).copied(), waited);
        self.round_at = now;
        let mut workers = Vec::with_capacity(live.len());
        let mut introductions = BTreeMap::new();
        for slice in live.into_values() {
            self.workers.insert(slice.worker, slice.at);
            introductions.extend(
                slice
                    .introductions()
                    .map(|name| (UpstreamKey::hash(name.cluster, name.route), name)),
            );
            let mut rest = slice.reports();
            workers.push(Stop {
                worker: slice.worker,
                at: slice.at,
                next: rest.next(),
                rest: Box::new(rest),
            });
        }
        self.forget_the_gone(now);
        Some(Walk {
            span,
            introductions,
            workers,
        })
    }

    /// Merges the reports of the upstream that is next on the walk. `None` where there is no room for it: at most
    /// `cap` upstreams are kept. `known` gives what was in force for one that this leader meets for the first time.
    pub(crate) fn merge(
        &mut self,
        walk: &mut Walk<'_>,
        upstream: u64,
        cap: usize,
        known: impl FnOnce() -> Option<Directive>,
    ) -> Option<Round> {
        let now = self.round_at;
        if !self.controllers.contains_key(&upstream) && !self.make_room(cap, now) {
            walk.pass(upstream, |_, _, _| {});
            return None;
        }
        let controller = self
            .controllers
            .entry(upstream)
            .or_insert_with(|| Controller::new(upstream, known(), now));
        let mut round = Round {
            sample: Sample::empty(walk.span),
            trips: Vec::new(),
            under_way: UnderWay::default(),
        };
        walk.pass(upstream, |worker, at, report| {
            controller.hear(worker, at, report, &mut round);
        });
        controller.under_way = round.under_way;
        controller.heard_at = now;
        Some(round)
    }

    /// Whether it decides about an upstream already.
    pub(crate) fn knows(&self, upstream: u64) -> bool {
        self.controllers.contains_key(&upstream)
    }

    /// What is under way with an upstream; `None` where nobody reported it in the last round.
    pub(crate) fn under_way(&self, upstream: u64) -> Option<UnderWay> {
        self.controllers
            .get(&upstream)
            .filter(|controller| controller.heard_at == self.round_at)
            .map(|controller| controller.under_way)
    }

    /// Every reload makes VMs of new numbers: what the old ones counted must not pile up.
    fn forget_the_gone(&mut self, now: Instant) {
        let workers = &mut self.workers;
        let before = workers.len();
        workers.retain(|_, at| now.saturating_since(*at) < WORKER_TIMEOUT);
        if workers.len() < before {
            for controller in self.controllers.values_mut() {
                controller
                    .seen
                    .retain(|seen| workers.contains_key(&seen.worker));
            }
        }
    }

    /// The mean time between the two last reports of each worker.
    fn span<'a>(&self, slices: impl Iterator<Item = &'a Slice<'a>>, waited: Duration) -> Duration {
        let (sum, workers) = slices
            .filter_map(|slice| Some(slice.at.saturating_since(*self.workers.get(&slice.worker)?)))
            .fold((Duration::ZERO, 0_u32), |(sum, n), span| {
                (sum.saturating_add(span), n + 1)
            });
        if workers == 0 { waited } else { sum / workers }
    }

    /// Runs the laws on a round of one upstream.
    pub(crate) fn decide(
        &mut self,
        hash: u64,
        round: &Round,
        around: &Surroundings<'_>,
        now: Instant,
    ) -> Option<Transition> {
        self.controllers.get_mut(&hash)?.decide(round, around, now)
    }

    /// What holds for upstreams in use; all of them when `all`.
    pub(crate) fn directives(&self, all: bool, now: Instant) -> impl Iterator<Item = &Directive> {
        let in_use = move |controller: &&Controller| {
            all || now.saturating_since(controller.active_at) < QUIET_AFTER
                || !matches!(controller.directive.breaker, BreakerState::Closed)
        };
        self.controllers
            .values()
            .filter(in_use)
            .map(|controller| &controller.directive)
    }

    /// Why an upstream's limit is what it is.
    pub(crate) fn limit_reason(&self, hash: u64) -> Option<LimitReason> {
        self.controllers
            .get(&hash)
            .map(|controller| controller.limiter.reason())
    }

    /// Makes room for one more upstream; the one that was idle longest goes, if it was idle long enough.
    fn make_room(&mut self, cap: usize, now: Instant) -> bool {
        if self.controllers.len() < cap {
            return true;
        }
        let idlest = self
            .controllers
            .iter()
            .min_by_key(|(_, controller)| controller.active_at);
        let evicted = idlest
            .filter(|(_, controller)| now.saturating_since(controller.active_at) >= EVICTABLE_AFTER)
            .map(|(hash, _)| *hash);
        evicted.is_some_and(|hash| self.controllers.remove(&hash).is_some())
    }
}

impl Controller {
    fn new(hash: u64, known: Option<Directive>, now: Instant) -> Self {
        let directive = known.unwrap_or_else(|| Directive::unknown(hash));
        Self {
            limiter: Limiter::resume(&directive.learned),
            judge: Judge::resume(directive.breaker, directive.epoch, &directive.learned),
            demand: Demand::default(),
            seen: Vec::new(),
            active_at: now,
            under_way: UnderWay::default(),
            heard_at: now,
            directive,
        }
    }

    fn hear(&mut self, worker: u64, at: Instant, report: &Report<'_>, round: &mut Round) {
        let place = self.seen.iter().position(|seen| seen.worker == worker);
        // An upstream that left the worker's registry and came back counts from zero.
        let seen = place
            .and_then(|place| self.seen.get(place))
            .filter(|seen| seen.began == report.began);
        let is_young = at.saturating_since(report.began) < YOUNG;
        let sample = &mut round.sample;
        let arrivals = sample.tally.get(Count::Arrivals);
        match seen {
            Some(seen) => report.add_news(&mut sample.tally, &seen.counts),
            None if is_young => report.add_news(&mut sample.tally, &[]),
            None => {}
        }
        if let Some(trip) = report.trip {
            let is_heard = match seen {
                Some(seen) => seen.trip == Some(trip.sequence),
                // An old one was for the leader before.
                None => !is_young && trip.epoch != self.judge.epoch(),
            };
            if !is_heard {
                round.trips.push(trip);
            }
        }
        if sample.tally.get(Count::Arrivals) != arrivals || report.in_flight > 0 {
            sample.workers = sample.workers.saturating_add(1);
        }
        sample.in_flight = sample.in_flight.saturating_add(report.in_flight);
        sample.overdue = sample.overdue.saturating_add(report.overdue);
        sample.peak = sample.peak.max(report.peak);
        sample.last_response = sample.last_response.max(report.last_response);
        sample.endpoints = sample.endpoints.max(report.endpoints);
        sample.retry_after = sample
            .retry_after
            .max(Duration::from_millis(u64::from(report.retry_after_ms)));
        round.under_way.in_flight += u64::from(report.in_flight);
        round.under_way.streams += u64::from(report.streams);
        self.remember(place, worker, report);
    }

    fn remember(&mut self, place: Option<usize>, worker: u64, report: &Report<'_>) {
        let trip = report.trip.map(|trip| trip.sequence);
        match place.and_then(|place| self.seen.get_mut(place)) {
            Some(seen) => {
                (seen.began, seen.trip) = (report.began, trip);
                if seen.counts.len() == report.counts.len() {
                    seen.counts.copy_from_slice(report.counts);
                } else {
                    seen.counts = report.counts.into();
                }
            }
            None => {
                self.seen.reserve_exact(1);
                self.seen.push(Seen {
                    worker,
                    began: report.began,
                    trip,
                    counts: report.counts.into(),
                });
            }
        }
    }

    fn decide(
        &mut self,
        round: &Round,
        around: &Surroundings<'_>,
        now: Instant,
    ) -> Option<Transition> {
        let (sample, policy) = (&round.sample, around.policy);
        if round.is_active() {
            self.active_at = now;
        }
        let terms = Terms {
            slo: policy.slo(),
            limit: policy.limit(),
            stance: policy.stance(),
        };
        if matches!(
            self.judge.state(),
            BreakerState::Closed | BreakerState::Ramp { .. }
        ) {
            self.limiter.update(sample, terms, now);
        }
        self.demand.update(sample);
        let (limit, reserve) = self.limiter.limits(terms);
        let mut learned = Learned::default();
        self.limiter.teach(&mut learned);
        let findings = Findings {
            sample,
            trips: &round.trips,
            hang_after: learned.hang_after(policy.slo()),
            limit,
            min_limit: policy.limit().min().saturating_mul(sample.endpoints.max(1)),
            probes: around.probes,
            dice: around.dice,
            now,
        };
        let transition = self.judge.update(&findings, policy.breaker());
        let pressed = self.limiter.is_congested() || sample.tally.refused_for_load() > 0;
        let capacity = if pressed {
            self.limiter.capacity()
        } else {
            0.0
        };
        let margin = self.demand.margin(capacity);
        // Where all can be served, nobody needs a reserve.
        let reserve = if margin == Margin::NONE {
            limit
        } else {
            reserve
        };
        self.judge.teach(&mut learned);
        self.directive = Directive {
            upstream: self.directive.upstream,
            epoch: self.judge.epoch(),
            breaker: self.judge.state(),
            limit,
            reserve,
            margin,
            workers: sample.workers.max(1),
            learned,
        };
        transition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::LocalTrip;
    use crate::tally::Counted;

    const TICK: Duration = Duration::from_millis(100);
    const BACKEND: u64 = 7;

    fn at(ticks: u32) -> Instant {
        Instant::ZERO + TICK * ticks
    }

    /// A worker's slice of one upstream that began to count at `began` and has seen `arrivals`.
    fn slice(worker: u64, now: Instant, began: Instant, arrivals: u64) -> Slice<'static> {
        let mut counted = Counted::default();
        counted.add(Count::Arrivals, arrivals);
        let mut bytes = Vec::new();
        let report = Report {
            upstream: BACKEND,
            began,
            in_flight: 2,
            streams: 0,
            overdue: 0,
            peak: 0,
            last_response: now,
            endpoints: 0,
            retry_after_ms: 0,
            trip: None::<LocalTrip>,
            counts: &[],
        }
        .with_counts(&counted, &mut bytes);
        let payload = postcard::to_extend(&report, Vec::new()).unwrap();
        Slice::new(worker, now, 0, payload)
    }

    /// Arrivals and in-flight of a round, if there is one.
    fn merged(leader: &mut Leader, slices: &[Slice<'_>], now: Instant) -> Option<(u64, u32)> {
        let mut walk = leader.begin(slices, now)?;
        assert_eq!(walk.next(), Some(BACKEND));
        let round = leader.merge(&mut walk, BACKEND, 10, || None)?;
        assert_eq!(walk.next(), None);
        let sample = round.sample;
        Some((sample.tally.get(Count::Arrivals), sample.in_flight))
    }

    #[test]
    fn what_was_counted_before_the_leader_came_is_no_news() {
        let mut leader = Leader::new(at(1_000));
        let old = |now, arrivals| [slice(1, now, at(0), arrivals)];
        assert_eq!(
            merged(&mut leader, &old(at(1_001), 50_000), at(1_001)),
            Some((0, 2))
        );
        assert_eq!(
            merged(&mut leader, &old(at(1_002), 50_007), at(1_002)),
            Some((7, 2))
        );
        let young = [
            slice(2, at(1_003), at(1_002), 5),
            slice(1, at(1_003), at(0), 50_007),
        ];
        assert_eq!(merged(&mut leader, &young, at(1_003)), Some((5, 4)));
    }

    #[test]
    fn an_upstream_that_came_back_counts_from_zero() {
        let mut leader = Leader::new(at(0));
        assert_eq!(
            merged(&mut leader, &[slice(1, at(1), at(0), 90)], at(1)),
            Some((90, 2))
        );
        let again = [slice(1, at(700), at(699), 4)];
        assert_eq!(
            merged(&mut leader, &again, at(700)),
            Some((4, 2)),
            "it wrapped"
        );
    }

    #[test]
    fn a_slice_counts_once_and_the_newest_counts() {
        let mut leader = Leader::new(at(0));
        let (older, newer) = (slice(1, at(1), at(0), 10), slice(1, at(2), at(0), 30));
        let slices = [newer.clone(), older, newer];
        assert_eq!(merged(&mut leader, &slices, at(2)), Some((30, 2)));
    }

    #[test]
    fn a_round_waits_for_late_workers_but_not_for_ever() {
        let mut leader = Leader::new(at(0));
        let late = slice(2, at(1), at(0), 1);
        let both = [slice(1, at(1), at(0), 1), late.clone()];
        assert_eq!(merged(&mut leader, &both, at(1)), Some((2, 4)));
        let one = |ticks| [slice(1, at(ticks), at(0), 8), late.clone()];
        assert_eq!(merged(&mut leader, &one(2), at(2)), None);
        assert_eq!(merged(&mut leader, &one(4), at(4)), Some((7, 4)));
        assert_eq!(
            merged(&mut leader, &one(30), at(30)),
            Some((0, 2)),
            "it is gone"
        );
    }

    #[test]
    fn workers_that_are_gone_leave_nothing_behind() {
        let mut leader = Leader::new(at(0));
        for generation in 1..50 {
            let now = at(generation * 30);
            let slices = [slice(u64::from(generation), now, now, 3)];
            assert_eq!(merged(&mut leader, &slices, now), Some((3, 2)));
        }
        let seen = leader
            .controllers
            .values()
            .map(|controller| controller.seen.len());
        assert_eq!((leader.workers.len(), seen.sum::<usize>()), (1, 1));
    }

    #[test]
    fn rounds_go_on_after_the_clock_jumped_back() {
        let mut leader = Leader::new(at(50_000));
        assert_eq!(
            merged(&mut leader, &[slice(1, at(1), at(0), 1)], at(1)),
            None
        );
        assert_eq!(
            merged(&mut leader, &[slice(1, at(2), at(0), 1)], at(2)),
            Some((1, 2))
        );
    }
}
