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
    roster: u32,
    said: LastSaid,
}

/// The workers of a walk that rest, by one bit for each of the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RestingSet(u64);

impl RestingSet {
    /// The worker with this number rests; false if there is no bit for it.
    pub(super) fn add(&mut self, index: usize) -> bool {
        let bit = u32::try_from(index)
            .ok()
            .and_then(|at| 1_u64.checked_shl(at));
        self.0 |= bit.unwrap_or_default();
        bit.is_some()
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
        let indices = (0_usize..).map_while(|index| {
            let rest = self.0.checked_shr(u32::try_from(index).ok()?)?;
            (rest != 0).then_some((index, rest & 1 == 1))
        });
        let resting = indices.filter(|(_, rests)| *rests);
        let workers = resting.filter_map(|(index, _)| walk.worker(index));
        workers.fold(LastSaid::NOTHING, |said, worker| {
            said.and(controller.last_said(worker))
        })
    }
}
