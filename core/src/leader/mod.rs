//! The leader: merges the reports of all workers, runs the control laws, and decides for all workers.
//!
//! Reports hold growing counts. The leader takes the difference for each worker and adds these up, so the order of the
//! workers does not matter, a report read twice counts once, and the counts of an overwritten report are not lost. A round
//! waits until every live worker has a new report, because with half of the reports the throughput would look like half.
//!
//! The leader ignores what a worker counted before its first report to this leader: an hour's requests would look like those
//! of a tenth of a second. Only counts that began a moment ago are taken in full.
//!
//! Slices are sorted, so they are walked side by side: one upstream is merged and decided at a time, and the last report of a
//! worker is kept packed, as it came. A leader's memory grows little with the number of workers.

mod controller;
#[cfg(test)]
mod model;
mod resting;
mod sent;
mod walk;

use std::collections::BTreeMap;

use core::time::Duration;

use crate::breaker::BreakerState;
use crate::by_hash::ByHash;
use crate::exchange::{Directive, ENVELOPE_BYTES, Slice, SliceEntry};
use crate::limit::LimitReason;
use crate::time::Instant;
use crate::upstream::EVICTABLE_AFTER;
use controller::{Controller, RoundChanges};
use resting::{RestingSet, RestingWorkers};
use sent::{DirectiveNews, SentDirective, UpstreamUse};
use walk::Walk;

pub use controller::RequestsUnderWay;
pub(crate) use controller::{MergedReports, RoundInputs};

/// A worker that has not reported for this long is gone.
const WORKER_TIMEOUT: Duration = Duration::from_secs(2);
/// A round waits for late workers for at most this long.
const ROUND_PATIENCE: Duration = Duration::from_millis(250);
/// Rounds closer together than this measure nothing.
const MIN_ROUND: Duration = Duration::from_millis(10);
/// Directives of upstreams that were idle for this long are not repeated.
const QUIET_AFTER: Duration = Duration::from_secs(10);

/// The leader's state for all upstreams.
#[derive(Debug)]
pub(crate) struct Leader {
    round_at: Instant,
    workers: BTreeMap<u64, Instant>,
    led: ByHash<LedPlace>,
    /// The number of bytes in the last publication.
    published: usize,
}

/// The place of one upstream: what every round asks of it. The rest is boxed, because few upstreams are in use at a time, and so
/// that a new upstream moves little.
#[derive(Debug)]
struct LedPlace {
    /// The last round that had a report.
    heard_at: Instant,
    /// Whether its directive needed no repetition the last time, and nothing was heard since.
    is_quiet: bool,
    led: Box<Led>,
}

/// One upstream.
#[derive(Debug)]
struct Led {
    /// What workers at rest last said, if only workers at rest were heard since.
    resting: Option<RestingWorkers>,
    controller: Controller,
    /// In the last round.
    demand: UpstreamUse,
    /// Since its directive was published.
    news: DirectiveNews,
    sent: SentDirective,
}

impl Leader {
    /// A leader from now on.
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            round_at: now,
            workers: BTreeMap::new(),
            led: ByHash::new(),
            published: 0,
        }
    }

    /// Begins a round with these slices; `None` while reports of workers are missing.
    pub(crate) fn begin<'a>(&mut self, slices: &'a [Slice<'_>], now: Instant) -> Option<Walk<'a>> {
        // The newest slice of each worker, in the order of workers, whatever order they came in.
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
        // After a jump backwards the rounds continue from there.
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
        for slice in live.values() {
            self.workers.insert(slice.worker, slice.at);
        }
        self.forget_the_gone(now);
        Some(Walk::new(span, live.into_values()))
    }

    /// Merges the reports of the next upstream of the walk into `round`, which forgets what it had. False if there is no room for
    /// the upstream: at most `cap` are kept. `known` returns the directive in force for an upstream that is new to this leader.
    pub(crate) fn merge(
        &mut self,
        (walk, round): (&mut Walk<'_>, &mut MergedReports),
        upstream: u64,
        cap: usize,
        known: impl FnOnce() -> Option<Directive>,
    ) -> bool {
        let now = self.round_at;
        let is_full = self.led.len() >= cap;
        if is_full && !self.led.contains(upstream) && !self.make_room(now) {
            walk.pass(upstream, |_, _| {});
            return false;
        }
        let Some(place) = self.led.get_or_insert_with(upstream, || LedPlace {
            heard_at: now,
            is_quiet: false,
            led: Box::new(Led {
                resting: None,
                controller: Controller::new(upstream, known(), now),
                demand: UpstreamUse::InUse,
                news: DirectiveNews::Act,
                sent: SentDirective::none(),
            }),
        }) else {
            return false;
        };
        (place.heard_at, place.is_quiet) = (now, false);
        let Led {
            resting,
            controller,
            ..
        } = &mut *place.led;
        round.clear(walk.span);
        let mut rest = RestingSet::default();
        walk.pass(upstream, |visited, told| match told {
            SliceEntry::News(report) => {
                controller.record(visited.worker, visited.at, report, round);
            }
            SliceEntry::Resting { .. } => {
                if !rest.add(visited.index) {
                    controller.last_said(visited.worker).tell(&mut round.sample);
                }
            }
        });
        rest.tell(walk, controller, resting, &mut round.sample);
        controller.under_way = round.under_way;
        true
    }

    /// Whether this leader decides about an upstream already.
    pub(crate) fn knows(&self, upstream: u64) -> bool {
        self.led.contains(upstream)
    }

    /// The last decision about an upstream.
    pub(crate) fn directive(&self, upstream: u64) -> Option<&Directive> {
        let place = self.led.get(upstream)?;
        Some(&place.led.controller.directive)
    }

    /// The requests under way with an upstream; `None` if no worker reported it in the last round.
    pub(crate) fn under_way(&self, upstream: u64) -> Option<RequestsUnderWay> {
        let place = self.led.get(upstream)?;
        // The rest of an upstream of which nothing was heard is not looked at.
        if place.heard_at == self.round_at {
            Some(place.led.controller.under_way)
        } else {
            None
        }
    }

    /// Drops the records of workers that are gone. Every reload makes VMs with new numbers, and old records must not pile up.
    fn forget_the_gone(&mut self, now: Instant) {
        let workers = &mut self.workers;
        let before = workers.len();
        workers.retain(|_, at| now.saturating_since(*at) < WORKER_TIMEOUT);
        if workers.len() < before {
            for place in self.led.values_mut() {
                let seen = &mut place.led.controller.seen;
                seen.retain(|seen| workers.contains_key(&seen.worker));
            }
        }
    }

    /// The mean time between the last two reports of each worker.
    fn span<'a>(&self, slices: impl Iterator<Item = &'a Slice<'a>>, waited: Duration) -> Duration {
        let (sum, workers) = slices
            .filter_map(|slice| Some(slice.at.saturating_since(*self.workers.get(&slice.worker)?)))
            .fold((Duration::ZERO, 0_u32), |(sum, n), span| {
                (sum.saturating_add(span), n + 1)
            });
        if workers == 0 { waited } else { sum / workers }
    }

    /// Runs the laws on one round of one upstream.
    pub(crate) fn decide(
        &mut self,
        hash: u64,
        round: &MergedReports,
        around: &RoundInputs<'_>,
        now: Instant,
    ) -> RoundChanges {
        let place = self.led.get_mut(hash);
        place.map_or_else(RoundChanges::default, |place| {
            let led = &mut *place.led;
            led.demand = UpstreamUse::of(round);
            let before = led.controller.directive;
            let changes = led.controller.decide(round, around, now);
            let news = DirectiveNews::between(&before, &led.controller.directive);
            led.news = led.news.max(news);
            changes
        })
    }

    /// All learned state, for later leaders.
    pub(crate) fn learned(&self) -> impl Iterator<Item = &Directive> {
        let led = self.led.as_slice().iter();
        led.map(|(_, place)| &place.led.controller.directive)
    }

    /// The directives of upstreams in use, as bytes. Changed directives get this stamp.
    pub(crate) fn publish(&mut self, stamp: u32, now: Instant) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.published + ENVELOPE_BYTES);
        for place in self.led.values_mut() {
            if place.is_quiet {
                continue;
            }
            let led = &mut *place.led;
            let (controller, directive) = (&led.controller, &led.controller.directive);
            let is_closed = matches!(directive.breaker, BreakerState::Closed);
            if is_closed && now.saturating_since(controller.active_at) >= QUIET_AFTER {
                place.is_quiet = true;
                continue;
            }
            if !led.sent.is_current(led.news, led.demand, now) {
                led.sent.replace(directive, stamp, now);
                led.news = DirectiveNews::Nothing;
            }
            let entry = &led.sent.entry;
            payload.extend_from_slice(entry);
        }
        self.published = payload.len();
        payload
    }

    /// Why an upstream's limit is what it is.
    pub(crate) fn limit_reason(&self, hash: u64) -> Option<LimitReason> {
        self.led
            .get(hash)
            .map(|place| place.led.controller.limiter.reason())
    }

    /// Makes room for one more upstream: removes the one that was idle longest, if it was idle long enough.
    fn make_room(&mut self, now: Instant) -> bool {
        let active = self.led.as_slice().iter();
        let active = active.map(|(hash, place)| (*hash, place.led.controller.active_at));
        let idlest = active
            .min_by_key(|(_, active_at)| *active_at)
            .filter(|(_, active_at)| now.saturating_since(*active_at) >= EVICTABLE_AFTER);
        idlest.is_some_and(|(hash, _)| self.led.remove(hash).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::LocalTrip;
    use crate::exchange::Report;
    use crate::tally::{Count, Counted};

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
            uploading: 0,
            open: 0,
            overdue: 0,
            peak: 0,
            others: None,
            last_response: now,
            answered_up_to: Instant::ZERO,
            endpoints: 0,
            retry_after_ms: 0,
            trip: None::<LocalTrip>,
            counts: &[],
        }
        .with_counts(&counted, &mut bytes);
        let mut payload = Vec::new();
        SliceEntry::News(report).write(&mut payload);
        Slice::new(worker, now, 0, payload)
    }

    /// Arrivals and in-flight of a round, if there is one.
    fn merged(leader: &mut Leader, slices: &[Slice<'_>], now: Instant) -> Option<(u64, u32)> {
        let mut walk = leader.begin(slices, now)?;
        assert_eq!(walk.next(), Some(BACKEND));
        let mut round = MergedReports::empty();
        if !leader.merge((&mut walk, &mut round), BACKEND, 10, || None) {
            return None;
        }
        assert_eq!(walk.next(), None);
        let sample = round.sample;
        Some((sample.tally.get(Count::Arrivals), sample.in_flight))
    }

    #[test]
    fn counts_from_before_the_leader_are_ignored() {
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
    fn a_returning_upstream_counts_from_zero() {
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
    fn a_round_waits_for_late_workers_for_a_limited_time() {
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
            .led
            .as_slice()
            .iter()
            .map(|(_, place)| place.led.controller.seen.len());
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
