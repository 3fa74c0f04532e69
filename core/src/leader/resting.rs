//! The workers that have nothing to report of an upstream.
//!
//! Their last reports still hold: when an answer last came, and how many endpoints there are. Most upstreams are at rest in all
//! workers, for seconds. So what the last reports say is put together once, and kept as long as the same workers rest: the
//! reports themselves are likely in no cache.

use super::controller::{Controller, LastSaid};
use super::walk::Walk;
use crate::sample::Sample;

/// What resting workers said last, together.
#[derive(Clone, Copy, Debug)]
pub(super) struct RestingWorkers {
    set: RestingSet,
    roster: u64,
    said: LastSaid,
}

/// The workers of a walk that rest, by one bit for each of the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RestingSet(u64);

impl RestingSet {
    const BITS: usize = 64;

    /// The worker with this number rests; false if there is no bit for it.
    pub(super) const fn add(&mut self, index: usize) -> bool {
        let has_bit = index < Self::BITS;
        if has_bit {
            self.0 |= 1 << index;
        }
        has_bit
    }

    /// Adds what these workers said last to a round. `known` is what the ones that rested in the last round with a report said:
    /// a worker that rests says nothing else.
    pub(super) fn tell(
        self,
        walk: &Walk<'_>,
        controller: &Controller,
        known: &mut Option<RestingWorkers>,
        sample: &mut Sample,
    ) {
        if self == Self::default() {
            *known = None;
            return;
        }
        let roster = walk.roster;
        let same = known.filter(|known| known.set == self && known.roster == roster);
        let said = same.map_or_else(|| self.said(walk, controller), |known| known.said);
        *known = Some(RestingWorkers {
            set: self,
            roster,
            said,
        });
        said.tell(sample);
    }

    fn said(self, walk: &Walk<'_>, controller: &Controller) -> LastSaid {
        let mut said = LastSaid::NOTHING;
        for (index, worker) in walk.workers().take(Self::BITS).enumerate() {
            if self.0 >> index & 1 == 1 {
                said = said.and(controller.last_said(worker));
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use crate::exchange::{Report, Slice, SliceEntry};
    use crate::leader::{Leader, MergedReports};
    use crate::time::Instant;

    const BACKEND: u64 = 7;

    fn at(ticks: u32) -> Instant {
        Instant::ZERO + Duration::from_millis(100) * ticks
    }

    /// What a worker tells in a tick: when an answer last came, or that it rests.
    fn slice(worker: u64, tick: u32, answered: Option<u32>) -> Slice<'static> {
        let mut payload = Vec::new();
        let entry = match answered {
            Some(answered) => SliceEntry::News(Report {
                upstream: BACKEND,
                began: at(0),
                in_flight: 0,
                uploading: 0,
                open: 0,
                overdue: 0,
                peak: 0,
                others: None,
                last_response: at(answered),
                answered_up_to: Instant::ZERO,
                endpoints: answered,
                retry_after_ms: 0,
                trip: None,
                counts: &[],
            }),
            None => SliceEntry::Resting { upstream: BACKEND },
        };
        entry.write(&mut payload);
        Slice::new(worker, at(tick), 0, payload)
    }

    /// The latest answer that a round knows of, and the number of endpoints.
    fn told(leader: &mut Leader, tick: u32, workers: &[(u64, Option<u32>)]) -> (Instant, u32) {
        let slices = workers.iter();
        let slices: Vec<_> = slices.map(|(id, said)| slice(*id, tick, *said)).collect();
        let mut walk = leader.begin(&slices, at(tick)).unwrap();
        let mut round = MergedReports::empty();
        assert!(leader.merge((&mut walk, &mut round), BACKEND, 10, || None));
        (round.sample.last_response, round.sample.endpoints)
    }

    #[test]
    fn what_workers_said_last_holds_while_they_rest_and_no_longer() {
        let mut leader = Leader::new(at(0));
        let mut told = |tick, workers: &[_]| told(&mut leader, tick, workers);
        let both = [(1, None), (2, None)];
        assert_eq!(told(1, &[(1, Some(4)), (2, Some(9))]), (at(9), 9));
        assert_eq!(told(2, &both), (at(9), 9));
        assert_eq!(told(3, &both), (at(9), 9));
        assert_eq!(told(4, &[(1, None)]), (at(4), 4), "another one is silent");
        assert_eq!(told(5, &[(1, Some(6)), (2, Some(8))]), (at(8), 8));
        assert_eq!(told(6, &both), (at(8), 8));
        assert_eq!(told(7, &[(1, Some(7)), (2, None)]), (at(8), 8));
        assert_eq!(told(8, &[(1, Some(2)), (2, Some(3))]), (at(3), 3));
        assert_eq!(told(9, &both), (at(3), 3));
        let strangers = [(3, None), (4, None)];
        assert_eq!(told(10, &strangers), (Instant::ZERO, 0));
    }

    #[test]
    fn workers_for_which_there_is_no_bit_are_asked_each_time() {
        let mut leader = Leader::new(at(0));
        let said: Vec<_> = (0_u32..70).map(|id| (id.into(), Some(1 + id))).collect();
        let rest: Vec<_> = (0..70).map(|id| (id, None)).collect();
        for tick in [1, 3] {
            assert_eq!(told(&mut leader, tick, &said), (at(70), 70));
            assert_eq!(told(&mut leader, tick + 1, &rest), (at(70), 70));
        }
    }
}
