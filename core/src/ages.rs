//! How many requests of which age are in flight, without a list of them.
//!
//! A hang shows in requests that get old, and a long stream must stop counting as load. Both need ages, yet a
//! list of start times would allocate for every request. Requests are counted in buckets by the time they
//! entered; a permit remembers its bucket and takes itself out again. What grows older than the ring is kept
//! in one more count. The error is one bucket's width; how many buckets a ring needs is its owner's business.

use core::time::Duration;

use crate::permit::Place;
use crate::time::Instant;

/// A horizon that moved by less than one part in so many is the same: the ring has room for it.
const TOLERANCE: u64 = 2;

/// Counts of requests by the time they entered, in a ring of at least three buckets.
#[derive(Clone, Debug)]
pub(crate) struct Ages<const BUCKETS: usize> {
    width_ns: u64,
    /// Grows when the width changes: places handed out before then are in the bucket `carried`, or beyond.
    generation: u32,
    carried: u64,
    newest: u64,
    ring: [u32; BUCKETS],
    beyond: u32,
}

impl<const BUCKETS: usize> Ages<BUCKETS> {
    /// Buckets that the horizon is divided into: one is under way, and one is for the horizon not to be short of.
    const PARTS: u64 = BUCKETS as u64 - 2;

    /// A ledger that tells ages apart up to `horizon`.
    pub(crate) fn new(horizon: Duration) -> Self {
        Self {
            width_ns: Self::width(horizon),
            generation: 0,
            carried: 0,
            newest: 0,
            ring: [0; BUCKETS],
            beyond: 0,
        }
    }

    /// Another horizon, if it differs enough to matter. What is in the ledger stays counted; its ages start anew, as
    /// nobody must look older than it is.
    pub(crate) fn set_horizon(&mut self, horizon: Duration, now: Instant) {
        let wanted = Self::width(horizon);
        if wanted.abs_diff(self.width_ns) <= self.width_ns / TOLERANCE {
            return;
        }
        self.roll(now);
        let young = self.total().saturating_sub(self.beyond);
        self.ring = [0; BUCKETS];
        self.width_ns = wanted;
        self.generation = self.generation.wrapping_add(1);
        self.newest = now.as_nanos() / wanted;
        self.carried = self.newest;
        if let Some(count) = self.ring.get_mut(Self::slot(self.carried)) {
            *count = young;
        }
    }

    /// Ages up to this are told apart: what is beyond is older. After a small change it is not quite what was asked for.
    pub(crate) const fn horizon(&self) -> Duration {
        Duration::from_nanos(self.width_ns.saturating_mul(Self::PARTS))
    }

    /// Counts one that enters now.
    pub(crate) fn enter(&mut self, now: Instant) -> Place {
        self.roll(now);
        // After a jump backwards the newest bucket serves: ages read as zero, and nothing is lost.
        let bucket = self.newest;
        if let Some(count) = self.ring.get_mut(Self::slot(bucket)) {
            *count = count.saturating_add(1);
        }
        Place {
            bucket,
            generation: self.generation,
        }
    }

    /// Takes one out. False when it was not in the ledger any more (see [`Ages::take_beyond`]).
    pub(crate) fn leave(&mut self, place: Place) -> bool {
        let bucket = if place.generation == self.generation {
            place.bucket
        } else {
            self.carried
        };
        let in_ring = self.newest.saturating_sub(bucket) < BUCKETS as u64;
        let from_ring = in_ring
            .then(|| self.ring.get_mut(Self::slot(bucket)))
            .flatten()
            .filter(|count| **count > 0);
        // Of those carried over some were beyond already; which ones is not known, only how many.
        let count = match from_ring {
            Some(count) => count,
            None => &mut self.beyond,
        };
        if *count == 0 {
            return false;
        }
        *count -= 1;
        true
    }

    /// How many are at least `age` old, to a bucket's width (never one that is younger).
    pub(crate) fn at_least(&mut self, age: Duration, now: Instant) -> u32 {
        self.roll(now);
        let older = self
            .older_than(age)
            .filter_map(|back| self.newest.checked_sub(back))
            .filter_map(|bucket| self.ring.get(Self::slot(bucket)))
            .fold(0_u32, |sum, count| sum.saturating_add(*count));
        older.saturating_add(self.beyond)
    }

    /// How many there are.
    pub(crate) fn total(&self) -> u32 {
        self.ring
            .iter()
            .fold(self.beyond, |sum, count| sum.saturating_add(*count))
    }

    /// Takes those out of the ledger that grew older than the horizon, and says how many.
    pub(crate) fn take_beyond(&mut self, now: Instant) -> u32 {
        self.roll(now);
        core::mem::take(&mut self.beyond)
    }

    /// Takes those out of the ledger that are at least `age` old, and says how many.
    pub(crate) fn take_at_least(&mut self, age: Duration, now: Instant) -> u32 {
        self.roll(now);
        let mut taken = core::mem::take(&mut self.beyond);
        for back in self.older_than(age) {
            if let Some(bucket) = self.newest.checked_sub(back)
                && let Some(count) = self.ring.get_mut(Self::slot(bucket))
            {
                taken = taken.saturating_add(core::mem::take(count));
            }
        }
        taken
    }

    /// How far back the buckets are of which all is at least `age` old.
    fn older_than(&self, age: Duration) -> core::ops::Range<u64> {
        nanos(age).div_ceil(self.width_ns).saturating_add(1)..BUCKETS as u64
    }

    fn roll(&mut self, now: Instant) {
        let current = now.as_nanos() / self.width_ns;
        if current <= self.newest {
            return;
        }
        let steps = (current - self.newest).min(BUCKETS as u64);
        for step in 1..=steps {
            let bucket = (current - steps).saturating_add(step);
            if let Some(count) = self.ring.get_mut(Self::slot(bucket)) {
                self.beyond = self.beyond.saturating_add(core::mem::take(count));
            }
        }
        self.newest = current;
    }

    fn width(horizon: Duration) -> u64 {
        (nanos(horizon) / Self::PARTS).max(1)
    }

    fn slot(bucket: u64) -> usize {
        usize::try_from(bucket % BUCKETS as u64).unwrap_or_default()
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HORIZON: Duration = Duration::from_secs(3);

    type Ages = super::Ages<32>;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_request_is_overdue_once_it_is_old_enough() {
        let mut ages = Ages::new(HORIZON);
        let _early = ages.enter(at(1_000));
        assert_eq!(ages.at_least(Duration::from_millis(300), at(1_100)), 0);
        let _late = ages.enter(at(1_900));
        assert_eq!(ages.at_least(Duration::from_millis(300), at(2_000)), 1);
        assert_eq!(
            ages.at_least(Duration::from_millis(300), at(60_000)),
            2,
            "beyond the ring they still count"
        );
    }

    #[test]
    fn whoever_leaves_is_no_longer_counted_whatever_its_age() {
        let mut ages = Ages::new(HORIZON);
        let old = ages.enter(at(0));
        let young = ages.enter(at(9_950));
        assert_eq!(ages.at_least(Duration::from_secs(1), at(10_000)), 1);
        assert!(ages.leave(old));
        assert!(ages.leave(young));
        assert_eq!(ages.total(), 0);
    }

    #[test]
    fn a_new_horizon_keeps_the_count() {
        let mut ages = Ages::new(HORIZON);
        let places = [ages.enter(at(50)), ages.enter(at(9_000))];
        ages.set_horizon(Duration::from_secs(30), at(9_000));
        let later = ages.enter(at(9_000));
        assert_eq!(ages.total(), 3);
        assert!(places.into_iter().all(|place| ages.leave(place)));
        assert!(ages.leave(later));
        assert_eq!(ages.total(), 0);
    }

    #[test]
    fn a_new_horizon_makes_nobody_overdue() {
        // It did: a slow upstream's horizon moves with every window, and five young requests looked like a hang.
        let mut ages = Ages::new(HORIZON);
        let place = ages.enter(at(1_000));
        ages.set_horizon(Duration::from_secs(30), at(1_100));
        assert_eq!(ages.at_least(Duration::from_millis(300), at(1_200)), 0);
        assert_eq!(ages.at_least(Duration::from_secs(15), at(31_000)), 1);
        assert!(ages.leave(place));
    }

    #[test]
    fn who_was_taken_out_cannot_leave_again() {
        let mut ages = Ages::new(HORIZON);
        let place = ages.enter(at(0));
        assert_eq!(ages.take_beyond(at(10_000)), 1);
        assert!(!ages.leave(place));
    }

    #[test]
    fn the_old_are_taken_out_and_the_young_stay() {
        let mut ages = Ages::new(HORIZON);
        let (old, young) = (ages.enter(at(8_000)), ages.enter(at(9_900)));
        assert_eq!(ages.take_at_least(Duration::from_secs(1), at(10_000)), 1);
        assert!(!ages.leave(old));
        assert!(ages.leave(young));
    }

    #[test]
    fn a_clock_that_jumps_loses_nobody() {
        let mut ages = Ages::new(HORIZON);
        let mut places = Vec::new();
        for ms in [5_000, 10, 90_000, 0, u64::MAX / 1_000_000, 3] {
            places.push(ages.enter(at(ms)));
        }
        assert_eq!(ages.total(), 6);
        for place in places {
            ages.leave(place);
        }
        assert_eq!(ages.total(), 0);
    }
}
