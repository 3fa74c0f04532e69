//! How many requests of which age are in flight, without a list of them.
//!
//! A hang shows in requests that get old, and a long stream must stop counting as load. Both need ages, yet a
//! list of start times would allocate for every request. Requests are counted in buckets by the time they
//! entered; a permit remembers its bucket and takes itself out again. What grows older than the ring is kept
//! in one more count. The error is one bucket's width.

use core::time::Duration;

use crate::permit::Place;
use crate::time::Instant;

/// Buckets in the ring; the oldest ages are told apart by 1/32 of the horizon.
const BUCKETS: usize = 32;

/// Counts of requests by the time they entered.
#[derive(Clone, Debug)]
pub(crate) struct Ages {
    width_ns: u64,
    /// Grows when the width changes: places handed out before then are in `beyond`.
    generation: u32,
    newest: u64,
    ring: [u32; BUCKETS],
    beyond: u32,
}

impl Ages {
    /// A ledger that tells ages apart up to `horizon`.
    pub(crate) fn new(horizon: Duration) -> Self {
        Self {
            width_ns: width(horizon),
            generation: 0,
            newest: 0,
            ring: [0; BUCKETS],
            beyond: 0,
        }
    }

    /// Another horizon. What is in the ledger stays counted, as older than any horizon.
    pub(crate) fn set_horizon(&mut self, horizon: Duration) {
        if width(horizon) != self.width_ns {
            self.beyond = self.total();
            self.ring = [0; BUCKETS];
            self.width_ns = width(horizon);
            self.generation = self.generation.wrapping_add(1);
            self.newest = 0;
        }
    }

    /// Counts one that enters now.
    pub(crate) fn enter(&mut self, now: Instant) -> Place {
        self.roll(now);
        // After a jump backwards the newest bucket serves: ages read as zero, and nothing is lost.
        let bucket = self.newest;
        if let Some(count) = self.ring.get_mut(slot(bucket)) {
            *count = count.saturating_add(1);
        }
        Place {
            bucket,
            generation: self.generation,
        }
    }

    /// Takes one out. False when it was not in the ledger any more (see [`Ages::take_beyond`]).
    pub(crate) fn leave(&mut self, place: Place) -> bool {
        let in_ring = place.generation == self.generation
            && self.newest.saturating_sub(place.bucket) < BUCKETS as u64;
        let count = if in_ring {
            self.ring.get_mut(slot(place.bucket))
        } else {
            Some(&mut self.beyond)
        };
        let Some(count) = count.filter(|count| **count > 0) else {
            return false;
        };
        *count -= 1;
        true
    }

    /// How many are at least `age` old, to a bucket's width (never one that is younger).
    pub(crate) fn at_least(&mut self, age: Duration, now: Instant) -> u32 {
        self.roll(now);
        let age_buckets = nanos(age).div_ceil(self.width_ns).saturating_add(1);
        let older = (age_buckets..BUCKETS as u64)
            .filter_map(|back| self.newest.checked_sub(back))
            .filter_map(|bucket| self.ring.get(slot(bucket)))
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

    fn roll(&mut self, now: Instant) {
        let current = now.as_nanos() / self.width_ns;
        if current <= self.newest {
            return;
        }
        let steps = (current - self.newest).min(BUCKETS as u64);
        for step in 1..=steps {
            let bucket = (current - steps).saturating_add(step);
            if let Some(count) = self.ring.get_mut(slot(bucket)) {
                self.beyond = self.beyond.saturating_add(core::mem::take(count));
            }
        }
        self.newest = current;
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn width(horizon: Duration) -> u64 {
    (nanos(horizon) / (BUCKETS as u64 - 2)).max(1)
}

fn slot(bucket: u64) -> usize {
    usize::try_from(bucket % BUCKETS as u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HORIZON: Duration = Duration::from_secs(3);

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
        let place = ages.enter(at(50));
        ages.set_horizon(Duration::from_secs(30));
        assert_eq!(ages.total(), 1);
        assert!(ages.leave(place));
        assert_eq!(ages.total(), 0);
    }

    #[test]
    fn who_was_taken_out_cannot_leave_again() {
        let mut ages = Ages::new(HORIZON);
        let place = ages.enter(at(0));
        assert_eq!(ages.take_beyond(at(10_000)), 1);
        assert!(!ages.leave(place));
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
