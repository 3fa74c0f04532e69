//! The upstreams that belong in a worker's report to the leader.

use super::Registry;
use super::place::Rest;
use crate::slot::Slot;
use crate::tally::Count;
use crate::time::Instant;
use crate::upstream::UpstreamId;

/// One upstream in a report to the leader.
pub(crate) enum Reported<'a> {
    /// It may have something to report.
    Awake(&'a mut Slot),
    /// It has nothing to report.
    Asleep { upstream: u64 },
}

impl Registry {
    /// Calls `tell` for all upstreams that belong in a report, in the order of their hashes: those that requests of this worker
    /// asked for. The shared state counts only once it had a request. `tell` returns whether there was nothing to report.
    pub(crate) fn for_each_reported(
        &mut self,
        now: Instant,
        mut tell: impl FnMut(Reported<'_>) -> bool,
    ) {
        for (hash, id) in self.by_hash.as_slice() {
            let is_shared = *id == UpstreamId::OVERFLOW;
            let Some(place) = self.places.served_mut(*id) else {
                continue;
            };
            match place.rest {
                Rest::Asleep { reported_until } if now < reported_until => {
                    tell(Reported::Asleep { upstream: *hash });
                }
                Rest::Asleep { .. } => {}
                Rest::Awake { .. } => {
                    let is_asked_for = !is_shared || place.slot.tally.get(Count::Arrivals) > 0;
                    let is_told = is_asked_for && place.slot.is_reported(now);
                    if !is_told {
                        place.tire(self.ticks_to_sleep, now);
                    } else if tell(Reported::Awake(&mut place.slot)) {
                        place.tire(self.ticks_to_sleep, place.slot.reported_until());
                    }
                }
            }
        }
    }
}
