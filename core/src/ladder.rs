//! Who goes first when not all can be served.
//!
//! No queue is needed to serve by importance (DAGOR, Zhou et al., "Overload Control for Scaling WeChat
//! Microservices", 2018): demand is counted per level, and the level at which demand from the top down reaches
//! what the upstream can carry is the marginal one. Levels above it are served whole and may use a reserve of
//! places beyond the limit, so that a wave of lesser requests never stands in their way; levels below it are
//! served only from places that are left.

use serde::{Deserialize, Serialize};

use crate::level::Level;
use crate::sample::Sample;

/// Demand above this share of the capacity cannot all be served: some room for its fluctuation.
const USABLE_CAPACITY: f64 = 0.95;
/// Weight of the newest interval in the demand of a level.
const DEMAND_WEIGHT: f64 = 0.2;
/// Share of the limit that levels below the marginal one may use.
const LEFTOVER: f64 = 0.6;

/// Demand by level, requests a second.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand([f64; Level::COUNT]);

impl Demand {
    /// One round.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of one interval stay far below 2^53"
    )]
    pub(crate) fn update(&mut self, sample: &Sample) {
        let asked: u64 = Level::all().map(|level| sample.tally.demand(level)).sum();
        if asked == 0 {
            // Nobody's level had to be asked for: there is room for all.
            for demand in &mut self.0 {
                *demand *= 1.0 - DEMAND_WEIGHT;
            }
            return;
        }
        // Those let in without asking are taken to be like those who were asked.
        let arrivals = sample.tally.get(crate::tally::Count::Arrivals).max(asked) as f64;
        let scale = arrivals / asked as f64 / sample.span.as_secs_f64();
        for (demand, level) in self.0.iter_mut().zip(Level::all()) {
            *demand += (sample.tally.demand(level) as f64 * scale - *demand) * DEMAND_WEIGHT;
        }
    }

    /// The level at which demand from the top reaches `capacity` (requests a second, 0 when unknown).
    pub(crate) fn marginal(&self, capacity: f64) -> Level {
        if capacity <= 0.0 {
            return Level::LOWEST;
        }
        let mut above = 0.0;
        for (level, demand) in Level::all().rev().zip(self.0.iter().rev()) {
            above += demand;
            if above > capacity * USABLE_CAPACITY {
                return level;
            }
        }
        Level::LOWEST
    }
}

/// Most requests in flight, by level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ladder {
    marginal: Level,
    leftover: u32,
    limit: u32,
    reserve: u32,
}

impl Ladder {
    pub(crate) fn new(marginal: Level, limit: u32, reserve: u32) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a u32"
        )]
        let leftover = (f64::from(limit) * LEFTOVER).ceil() as u32;
        Self {
            marginal,
            leftover: leftover.max(1),
            limit: limit.max(1),
            reserve: reserve.max(limit).max(1),
        }
    }

    /// Below this nobody needs to be asked how important it is.
    pub(crate) const fn free(&self) -> u32 {
        if self.marginal.index() == Level::LOWEST.index() {
            self.limit
        } else {
            self.leftover
        }
    }

    pub(crate) const fn limit(&self) -> u32 {
        self.limit
    }

    pub(crate) const fn reserve(&self) -> u32 {
        self.reserve
    }

    pub(crate) const fn marginal(&self) -> Level {
        self.marginal
    }

    /// The limit for requests of `level`.
    pub(crate) fn limit_of(&self, level: Level) -> u32 {
        match level.cmp(&self.marginal) {
            core::cmp::Ordering::Less => self.leftover,
            core::cmp::Ordering::Equal => self.limit,
            core::cmp::Ordering::Greater => self.reserve,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::criticality::Criticality;

    const CRITICAL: Level = Level::new(Criticality::Critical, false);
    const SHEDDABLE: Level = Level::new(Criticality::Sheddable, false);

    fn demand(counts: &[(Level, u32)]) -> Demand {
        let mut demand = Demand::default();
        for _ in 0..100 {
            let mut sample = Sample::empty(Duration::from_millis(100));
            for (level, count) in counts {
                (0..*count).for_each(|_| sample.tally.add_demand(*level));
            }
            demand.update(&sample);
        }
        demand
    }

    #[test]
    fn the_marginal_level_is_where_demand_reaches_capacity() {
        let demand = demand(&[(CRITICAL, 20), (SHEDDABLE, 180)]);
        assert_eq!(demand.marginal(400.0), SHEDDABLE);
        assert_eq!(demand.marginal(150.0), CRITICAL);
        assert_eq!(demand.marginal(10_000.0), Level::LOWEST);
        assert_eq!(demand.marginal(0.0), Level::LOWEST);
    }

    #[test]
    fn the_more_important_has_more_room() {
        let ladder = Ladder::new(CRITICAL, 20, 30);
        let room: Vec<u32> = Level::all().map(|level| ladder.limit_of(level)).collect();
        assert_eq!(room, [12, 12, 12, 12, 12, 20, 30, 30]);
        assert_eq!(ladder.free(), 12);
    }
}
