//! How many requests of which age are in flight, without a list of them.
//!
//! A hang shows in requests that get old, and a long stream must stop counting as load. Both need ages, yet a
//! list of start times would allocate for every request. Requests are counted in buckets by the time they
//! entered; a permit remembers that time and takes itself out again. What grows older than the ring is kept
//! in one more count. The error is one bucket's width; how many buckets a ring needs is its owner's business.
//!
//! ```text
//!   beyond | oldest bucket ... | newest bucket     in the order of entry, whatever the clock does
//!   <------ taken out -------><--- counted ------>
//! ```
//!
//! Requests that are taken out are older than all that stay. So one moment tells for each permit whether it is still counted,
//! and a request that was taken out cannot leave in the place of another.

use core::time::Duration;

use crate::permit::LedgerPlace;
use crate::time::Instant;

/// A horizon that moved by less than one part in this many counts as unchanged: the ring has room for it.
const TOLERANCE: u64 = 2;

/// Counts of requests by the time they entered, in a ring of at least three buckets.
#[derive(Clone, Debug)]
pub(crate) struct Ages<const BUCKETS: usize> {
    width_ns: u64,
    newest: u64,
    ring: [u32; BUCKETS],
    beyond: u32,
    /// The latest time of an entry, nanoseconds.
    latest: u64,
    /// Requests that entered before this were taken out.
    taken_before: u64,
    /// Requests that entered before this did so while buckets had another width, and are in the bucket of this time ...
    carried_before: u64,
    /// ... or, if before this, in the bucket [`Ages::old`].
    old_before: u64,
    old: u64,
}

impl<const BUCKETS: usize> Ages<BUCKETS> {
    /// Buckets that the horizon is divided into: one is under way, and one is for the horizon not to be short of.
    const PARTS: u64 = BUCKETS as u64 - 2;

    /// A ledger that tells ages apart up to `horizon`.
    pub(crate) fn new(horizon: Duration) -> Self {
        Self::of_width(Self::width(horizon))
    }

    /// An empty ledger with buckets of this width.
    pub(crate) const fn of_width(width_ns: u64) -> Self {
        Self {
            width_ns,
            newest: 0,
            ring: [0; BUCKETS],
            beyond: 0,
            latest: 0,
            taken_before: 0,
            carried_before: 0,
            old_before: 0,
            old: 0,
        }
    }

    /// Sets another horizon, if it differs enough to matter. Requests in the ledger stay counted. No request may look older than
    /// it is: ages start over, and requests beyond the old horizon count as just that old.
    pub(crate) fn set_horizon(&mut self, horizon: Duration, now: Instant) {
        let wanted = Self::width(horizon);
        if Self::is_near(wanted, self.width_ns) {
            return;
        }
        self.roll(now);
        let young = self.total().saturating_sub(self.beyond);
        let kept = self.oldest_in_ring();
        self.old_before = self.entered_before(kept).unwrap_or_default();
        self.old = kept.saturating_mul(self.width_ns).saturating_sub(1) / wanted;
        // After a jump backwards the ledger's own time is ahead, and the requests beyond its ring are older than that.
        let present = self
            .newest
            .saturating_mul(self.width_ns)
            .max(now.as_nanos());
        let after_all = self.latest.saturating_add(1).max(self.taken_before);
        self.carried_before = present.max(after_all);
        self.width_ns = wanted;
        self.newest = self.carried_before / wanted;
        self.ring = [0; BUCKETS];
        let beyond = core::mem::take(&mut self.beyond);
        for (bucket, count) in [(self.old, beyond), (self.newest, young)] {
            let place = self.count_of(bucket);
            *place = place.saturating_add(count);
        }
    }

    /// Ages up to this are told apart with buckets of this width; requests beyond are older. After a small change it differs a little
    /// from the horizon that was set.
    pub(crate) const fn horizon_of(width_ns: u64) -> Duration {
        Duration::from_nanos(width_ns.saturating_mul(Self::PARTS))
    }

    /// Counts a request that enters now.
    pub(crate) fn enter(&mut self, now: Instant) -> LedgerPlace {
        self.roll(now);
        // After a jump backwards the newest bucket serves: ages read as zero, and nothing is lost.
        let begin = self.newest.saturating_mul(self.width_ns);
        let entered = now.as_nanos().max(begin).max(self.carried_before);
        self.latest = self.latest.max(entered);
        let count = self.count_of(self.newest);
        *count = count.saturating_add(1);
        LedgerPlace { entered }
    }

    /// Takes a request out. False if it was not in the ledger any more (see [`Ages::take_at_least`]).
    pub(crate) fn leave(&mut self, place: LedgerPlace) -> bool {
        if place.entered < self.taken_before {
            return false;
        }
        let bucket = if place.entered >= self.carried_before {
            place.entered / self.width_ns
        } else if place.entered >= self.old_before {
            self.carried_before / self.width_ns
        } else {
            self.old
        };
        let count = self.count_of(bucket);
        let is_counted = *count > 0;
        *count = count.saturating_sub(1);
        is_counted
    }

    /// How many requests are at least `age` old, to a bucket's width (never a younger one).
    pub(crate) fn at_least(&mut self, age: Duration, now: Instant) -> u32 {
        self.roll(now);
        let older = self
            .older_than(age)
            .filter_map(|back| self.newest.checked_sub(back))
            .filter_map(|bucket| self.ring.get(Self::slot(bucket)))
            .fold(0_u32, |sum, count| sum.saturating_add(*count));
        older.saturating_add(self.beyond)
    }

    /// How many requests are in the ledger.
    pub(crate) fn total(&self) -> u32 {
        self.ring
            .iter()
            .fold(self.beyond, |sum, count| sum.saturating_add(*count))
    }

    /// Takes requests older than the horizon out of the ledger, and returns how many.
    pub(crate) fn take_beyond(&mut self, now: Instant) -> u32 {
        self.roll(now);
        self.take_before(self.oldest_in_ring())
    }

    /// Takes requests that are at least `age` old out of the ledger, and returns how many.
    pub(crate) fn take_at_least(&mut self, age: Duration, now: Instant) -> u32 {
        self.roll(now);
        let by_age = self.first_younger_than(age);
        self.take_before(by_age.max(self.oldest_in_ring()))
    }

    /// Takes requests out of the ledger that entered by `latest` and are at least `age` old, and returns how many. Those in the same bucket as
    /// `latest` count as entered by then.
    pub(crate) fn take_entered_by(&mut self, latest: Instant, age: Duration, now: Instant) -> u32 {
        self.roll(now);
        let by_age = self.first_younger_than(age);
        let by_entry = (latest.as_nanos() / self.width_ns).saturating_add(1);
        self.take_before(by_age.min(by_entry).max(self.oldest_in_ring()))
    }

    /// The oldest bucket that may have a request younger than `age`.
    fn first_younger_than(&self, age: Duration) -> u64 {
        let first = self.older_than(age).start;
        self.newest.saturating_add(1).saturating_sub(first)
    }

    /// Takes out the requests in buckets before `kept`, and those beyond the ring.
    fn take_before(&mut self, kept: u64) -> u32 {
        self.taken_before = self
            .entered_before(kept)
            .map_or(self.taken_before, |taken| taken.max(self.taken_before));
        let mut taken = core::mem::take(&mut self.beyond);
        for bucket in self.oldest_in_ring()..kept {
            if let Some(count) = self.ring.get_mut(Self::slot(bucket)) {
                taken = taken.saturating_add(core::mem::take(count));
            }
        }
        taken
    }

    /// The latest entry of requests in buckets before this one or beyond the ring; `None` if there can be none.
    const fn entered_before(&self, bucket: u64) -> Option<u64> {
        if bucket > self.carried_before / self.width_ns {
            Some(bucket.saturating_mul(self.width_ns))
        } else if bucket > self.old {
            Some(self.old_before)
        } else {
            None
        }
    }

    const fn oldest_in_ring(&self) -> u64 {
        self.newest.saturating_add(1).saturating_sub(BUCKETS as u64)
    }

    /// The count of a bucket, or of all that are beyond the ring.
    fn count_of(&mut self, bucket: u64) -> &mut u32 {
        if bucket < self.oldest_in_ring() {
            return &mut self.beyond;
        }
        match self.ring.get_mut(Self::slot(bucket)) {
            Some(count) => count,
            None => &mut self.beyond,
        }
    }

    /// How far back the buckets are whose requests are all at least `age` old.
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

    /// The width of the buckets that tell ages up to this horizon apart.
    pub(crate) fn width(horizon: Duration) -> u64 {
        (nanos(horizon) / Self::PARTS).max(1)
    }

    /// Whether buckets of this width need not follow a horizon that wants others.
    pub(crate) const fn is_near(wanted: u64, width_ns: u64) -> bool {
        wanted.abs_diff(width_ns) <= width_ns / TOLERANCE
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
    use proptest::prelude::*;

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
    fn a_request_that_leaves_is_not_counted_whatever_its_age() {
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
    fn a_new_horizon_makes_no_request_overdue() {
        // A slow upstream's horizon moves with every window, and five young requests once looked like a hang.
        let mut ages = Ages::new(HORIZON);
        let place = ages.enter(at(1_000));
        ages.set_horizon(Duration::from_secs(30), at(1_100));
        assert_eq!(ages.at_least(Duration::from_millis(300), at(1_200)), 0);
        assert_eq!(ages.at_least(Duration::from_secs(15), at(31_000)), 1);
        assert!(ages.leave(place));
    }

    #[test]
    fn a_request_that_was_taken_out_cannot_leave_again() {
        let mut ages = Ages::new(HORIZON);
        let place = ages.enter(at(0));
        assert_eq!(ages.take_beyond(at(10_000)), 1);
        assert!(!ages.leave(place));
    }

    /// Until when requests entered that are taken out, their least age, and how many of five are. A bucket is 100 ms.
    #[test]
    fn requests_that_entered_by_a_moment_are_taken_out_to_the_end_of_its_bucket() {
        for (latest, age, expected) in [
            (1_010, 300, 4),
            (1_099, 300, 4),
            (1_100, 300, 5),
            (999, 300, 2),
            (1_010, 1_000, 2),
            (1_010, 3_000, 0),
        ] {
            let mut ages = Ages::new(HORIZON);
            let places = [0, 950, 1_010, 1_090, 1_110].map(|ms| ages.enter(at(ms)));
            let age = Duration::from_millis(age);
            let taken = ages.take_entered_by(at(latest), age, at(2_050));
            assert_eq!(taken, expected, "{latest} {age:?}");
            let left = places.into_iter().filter(|place| ages.leave(*place));
            assert_eq!(left.count(), 5 - taken as usize, "{latest} {age:?}");
        }
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
    fn a_request_that_was_taken_out_does_not_leave_in_the_place_of_another() {
        // Long after, such a request once took the place of one that was beyond the ring by then.
        let mut ages = Ages::new(HORIZON);
        let old = ages.enter(at(0));
        assert_eq!(ages.take_at_least(Duration::from_secs(1), at(2_000)), 1);
        let young = ages.enter(at(2_000));
        assert_eq!(ages.at_least(HORIZON, at(60_000)), 1);
        assert!(!ages.leave(old));
        assert!(ages.leave(young));
    }

    #[test]
    fn a_request_beyond_a_horizon_is_not_beyond_a_longer_one() {
        // With a longer target, a request that had waited for two seconds was once written off as if it had waited for four.
        let mut ages = Ages::new(HORIZON);
        let place = ages.enter(at(1_000));
        ages.set_horizon(HORIZON * 10, at(5_000));
        assert_eq!(ages.take_at_least(Duration::from_secs(5), at(5_100)), 0);
        assert_eq!(ages.at_least(Duration::from_secs(2), at(5_100)), 1);
        assert_eq!(ages.at_least(Duration::from_secs(30), at(34_000)), 1);
        assert!(ages.leave(place));
    }

    #[test]
    fn a_clock_that_jumps_loses_no_request() {
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

    #[test]
    fn another_horizon_after_a_clock_that_jumped_back_loses_no_request() {
        for wanted in [1, 2, 5, 10, 60] {
            let mut ages = Ages::new(HORIZON);
            let place = ages.enter(at(5_000));
            ages.take_at_least(HORIZON, at(4_999));
            assert_eq!(ages.at_least(HORIZON, at(1_000_000_000)), 1);
            ages.set_horizon(Duration::from_secs(wanted), at(500_000_000));
            let later = 500_000_000 + wanted * 2_000;
            assert_eq!(ages.at_least(Duration::ZERO, at(later)), 1);
            assert!(ages.leave(place), "{wanted} s");
        }
    }

    /// A step of the ledger's life.
    #[derive(Clone, Debug)]
    enum Step {
        Enter,
        Leave(prop::sample::Index),
        /// Milliseconds from now; the clock may jump back.
        Wait(i64),
        TakeAtLeast(u64),
        TakeBeyond,
        Horizon(u64),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => Just(Step::Enter),
            4 => any::<prop::sample::Index>().prop_map(Step::Leave),
            6 => (1_i64..4_000).prop_map(Step::Wait),
            1 => (-2_000_i64..0).prop_map(Step::Wait),
            2 => (0_u64..9_000).prop_map(Step::TakeAtLeast),
            1 => Just(Step::TakeBeyond),
            2 => (1_u64..20_000).prop_map(Step::Horizon),
        ]
    }

    /// A request that entered: its place, the time of entry, and whether it was taken out.
    struct Held {
        place: LedgerPlace,
        since: u64,
        taken: bool,
    }

    proptest! {
        /// A plain list gives the same counts, whatever happens and in whatever order.
        #[test]
        fn it_counts_as_a_list_would(steps in prop::collection::vec(any_step(), 1..80)) {
            let mut ages = Ages::new(HORIZON);
            let mut held: Vec<Held> = Vec::new();
            let (mut now, mut jumped) = (100_000_u64, false);
            for step in steps {
                match step {
                    Step::Enter => {
                        let place = ages.enter(at(now));
                        held.push(Held { place, since: now, taken: false });
                    }
                    Step::Leave(_) if held.is_empty() => {}
                    Step::Leave(index) => {
                        let gone = held.remove(index.index(held.len()));
                        prop_assert_eq!(ages.leave(gone.place), !gone.taken);
                    }
                    Step::Wait(ms) => {
                        jumped |= ms < 0;
                        now = now.saturating_add_signed(ms);
                    }
                    Step::TakeAtLeast(ms) => {
                        let age = Ages::horizon_of(ages.width_ns).min(Duration::from_millis(ms));
                        let taken = ages.take_at_least(age, at(now));
                        take(&mut held, taken, |one| {
                            jumped || at(now).saturating_since(at(one.since)) >= age
                        })?;
                    }
                    Step::TakeBeyond => {
                        let horizon = Ages::horizon_of(ages.width_ns);
                        let taken = ages.take_beyond(at(now));
                        take(&mut held, taken, |one| {
                            jumped || at(now).saturating_since(at(one.since)) > horizon
                        })?;
                    }
                    Step::Horizon(ms) => ages.set_horizon(Duration::from_millis(ms), at(now)),
                }
                let counted = held.iter().filter(|one| !one.taken).count();
                prop_assert_eq!(ages.total() as usize, counted);
            }
        }
    }

    /// Marks this many as taken out: those that entered first, each of which must be old enough.
    fn take(
        held: &mut [Held],
        taken: u32,
        is_old: impl Fn(&Held) -> bool,
    ) -> Result<(), TestCaseError> {
        let first = held.iter_mut().filter(|one| !one.taken);
        for one in first.take(taken as usize) {
            prop_assert!(is_old(one), "too young");
            one.taken = true;
        }
        Ok(())
    }
}
