//! The ages of requests, without room while there are none.
//!
//! A worker keeps them for each upstream, and most upstreams are at rest. Only the width of the buckets outlives a rest, because
//! it follows the horizon late: with another width, ages would be rounded in another way.

use core::time::Duration;

use crate::ages::Ages;
use crate::permit::LedgerPlace;
use crate::time::Instant;

/// [`Ages`], with room for them from a request on to the next rest.
#[derive(Clone, Debug)]
pub(crate) struct RestingAges<const BUCKETS: usize> {
    width_ns: u64,
    ages: Option<Box<Ages<BUCKETS>>>,
}

impl<const BUCKETS: usize> RestingAges<BUCKETS> {
    /// No requests; see [`Ages::new`].
    pub(crate) fn new(horizon: Duration) -> Self {
        Self {
            width_ns: Ages::<BUCKETS>::width(horizon),
            ages: None,
        }
    }

    /// No request is left, so that no place in the ledger is asked for again: gives the room back.
    pub(crate) fn rest(&mut self) {
        self.ages = None;
    }

    /// See [`Ages::set_horizon`].
    pub(crate) fn set_horizon(&mut self, horizon: Duration, now: Instant) {
        let wanted = Ages::<BUCKETS>::width(horizon);
        if Ages::<BUCKETS>::is_near(wanted, self.width_ns) {
            return;
        }
        self.width_ns = wanted;
        if let Some(ages) = &mut self.ages {
            ages.set_horizon(horizon, now);
        }
    }

    /// See [`Ages::horizon_of`].
    pub(crate) const fn horizon(&self) -> Duration {
        Ages::<BUCKETS>::horizon_of(self.width_ns)
    }

    /// See [`Ages::enter`].
    pub(crate) fn enter(&mut self, now: Instant) -> LedgerPlace {
        let width_ns = self.width_ns;
        self.ages.get_or_insert_with(|| first(width_ns)).enter(now)
    }

    /// See [`Ages::leave`].
    pub(crate) fn leave(&mut self, place: LedgerPlace) -> bool {
        let ages = self.ages.as_mut();
        ages.is_some_and(|ages| ages.leave(place))
    }

    /// See [`Ages::at_least`].
    pub(crate) fn at_least(&mut self, age: Duration, now: Instant) -> u32 {
        let ages = self.ages.as_mut();
        ages.map_or(0, |ages| ages.at_least(age, now))
    }

    /// See [`Ages::take_entered_by`].
    pub(crate) fn take_entered_by(&mut self, latest: Instant, age: Duration, now: Instant) -> u32 {
        let ages = self.ages.as_mut();
        ages.map_or(0, |ages| ages.take_entered_by(latest, age, now))
    }

    /// See [`Ages::take_at_least`].
    pub(crate) fn take_at_least(&mut self, age: Duration, now: Instant) -> u32 {
        let ages = self.ages.as_mut();
        ages.map_or(0, |ages| ages.take_at_least(age, now))
    }
}

/// Off the request path of most requests.
#[cold]
fn first<const BUCKETS: usize>(width_ns: u64) -> Box<Ages<BUCKETS>> {
    Box::new(Ages::of_width(width_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HORIZON: Duration = Duration::from_secs(3);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// How many of two requests, 800 ms apart, are overdue at each of these times, after so many rests.
    fn overdue(rests: usize) -> Vec<u32> {
        let mut ages = RestingAges::<32>::new(HORIZON);
        for _ in 0..rests {
            let place = ages.enter(at(100));
            assert!(ages.leave(place));
            // Too little to follow.
            ages.set_horizon(Duration::from_secs(4), at(200));
            ages.rest();
        }
        let _both = [ages.enter(at(1_000)), ages.enter(at(1_800))];
        let times = (1_000..3_000).step_by(20);
        let overdue = times.map(|ms| ages.at_least(Duration::from_millis(300), at(ms)));
        overdue.collect()
    }

    #[test]
    fn a_rest_changes_no_age() {
        assert_eq!(overdue(0), overdue(1));
        assert_eq!(overdue(0), overdue(3));
    }

    #[test]
    fn without_requests_there_is_no_room_and_none_is_overdue() {
        let mut ages = RestingAges::<32>::new(HORIZON);
        assert_eq!(ages.at_least(Duration::ZERO, at(1_000)), 0);
        assert_eq!(ages.take_at_least(Duration::ZERO, at(1_000)), 0);
        ages.set_horizon(10 * HORIZON, at(1_000));
        assert!(ages.ages.is_none());
        let place = ages.enter(at(1_000));
        let width = Ages::<32>::width(10 * HORIZON);
        assert_eq!(ages.horizon(), Ages::<32>::horizon_of(width));
        assert!(ages.leave(place) && !ages.leave(place));
    }
}
