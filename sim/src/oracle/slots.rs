//! An endpoint whose slots are held for so long that each counts: requests take the slot that is free first.
//!
//! Where slots are held for seconds and callers wait for a fraction of a second, a request either finds a slot or not. With
//! two slots at twice the capacity no more than 0.77 of them can be used (Erlang's loss formula). A fluid server does not
//! model that.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::demand::RequestDemand;
use crate::number;

pub(super) struct Slots {
    place: (u32, u32),
    /// When each slot is free.
    free_at: BinaryHeap<Reverse<Duration>>,
    /// Share of a request that held no slot because it failed, carried on to the next.
    owed: f64,
}

impl Slots {
    /// The free slots of endpoint number `place.0` of `place.1`.
    pub(super) const fn new(place: (u32, u32)) -> Self {
        Self {
            place,
            free_at: BinaryHeap::new(),
            owed: 0.0,
        }
    }

    pub(super) const fn place(&self) -> (u32, u32) {
        self.place
    }

    pub(super) fn admits(
        &mut self,
        demand: &RequestDemand<'_>,
        at: Duration,
        (to_moment, budget): (Duration, Duration),
    ) -> bool {
        self.resize(number::floor(demand.slots()), at);
        let free = self.free_at.peek().map_or(at, |Reverse(free)| *free);
        let start = free.max(at);
        let clock = demand.pauses(self.place);
        let after = |from: Duration, time: Duration| {
            clock.map_or(from + time, |clock| clock.finish(from, time))
        };
        let moment = after(start, to_moment);
        // A request that finds a slot is admitted, even if it takes long by itself: its value accounts for that.
        let in_time = demand.is_free() || start == at || moment <= at + budget;
        let waiting = (start - at).as_secs_f64() * demand.slots() / demand.slot_time();
        let admitted = in_time && waiting < demand.most_held();
        if admitted {
            self.owed += demand.correct();
            if self.owed >= 1.0 - f64::EPSILON {
                self.owed -= 1.0;
                self.free_at.pop();
                let end = after(start, number::seconds(demand.slot_time()));
                self.free_at.push(Reverse(end));
            }
        }
        admitted
    }

    /// Removes the slots that are free first, or adds free ones.
    fn resize(&mut self, count: usize, at: Duration) {
        while self.free_at.len() > count.max(1) {
            self.free_at.pop();
        }
        while self.free_at.len() < count {
            self.free_at.push(Reverse(at));
        }
    }
}
