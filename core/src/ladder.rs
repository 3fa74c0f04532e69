//! Which requests are served when not all can be.
//!
//! No queue is needed to serve by importance (DAGOR, Zhou et al., "Overload Control for Scaling WeChat
//! Microservices", 2018): demand is counted per level, and the level at which demand from the top down reaches
//! what the upstream can carry is the marginal one. Levels above it are served whole and may use a reserve of
//! places beyond the limit, so that a wave of lesser requests never blocks them; levels below it are
//! served only from places that are left.

use core::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::criticality::Criticality;
use crate::level::Level;
use crate::sample::Sample;

/// Demand above this share of the capacity cannot all be served: some room for its fluctuation.
const USABLE_CAPACITY: f64 = 0.95;
/// Weight of the newest interval in the demand of a level.
const DEMAND_WEIGHT: f64 = 0.2;
/// An average that is this many times smaller than the present demand is replaced by it.
const FORGOTTEN: f64 = 10.0;
/// Share of the limit that sheddable requests may use before demand is known: the rest is there for others when a
/// surge begins.
const SHEDDABLE_SHARE: f64 = 0.8;
/// Share of the limit that levels below the marginal one may use.
const LEFTOVER: f64 = 0.6;

/// Demand by level, requests a second. The levels of most upstreams' requests are never read.
#[derive(Clone, Debug, Default)]
pub(crate) struct LevelDemand(Option<Box<[f64; Level::COUNT]>>);

impl LevelDemand {
    /// One round.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of one interval stay far below 2^53"
    )]
    pub(crate) fn update(&mut self, sample: &Sample) {
        let asked: u64 = Level::all().map(|level| sample.tally.demand(level)).sum();
        if asked == 0 {
            // No level had to be read: there is room for all requests.
            for demand in self.0.iter_mut().flat_map(|demands| demands.iter_mut()) {
                *demand *= 1.0 - DEMAND_WEIGHT;
            }
            return;
        }
        // Requests that were admitted without reading their level are assumed to be like the others.
        let arrivals = sample.tally.get(crate::tally::Count::Arrivals).max(asked) as f64;
        let scale = arrivals / asked as f64 / sample.span.as_secs_f64();
        // The first demand counts in full: the first second of an overload is the worst.
        let demands = self.0.get_or_insert_default();
        let is_first =
            demands.iter().sum::<f64>() * FORGOTTEN < arrivals / sample.span.as_secs_f64();
        let weight = if is_first { 1.0 } else { DEMAND_WEIGHT };
        for (demand, level) in demands.iter_mut().zip(Level::all()) {
            *demand += (sample.tally.demand(level) as f64 * scale - *demand) * weight;
        }
    }

    /// The level at which demand from the top reaches `capacity` (requests a second, 0 when unknown).
    pub(crate) fn margin(&self, capacity: f64) -> Margin {
        let Some(demands) = self.0.as_ref().filter(|_| capacity > 0.0) else {
            return Margin::NONE;
        };
        let usable = capacity * USABLE_CAPACITY;
        let mut above = 0.0;
        for (level, demand) in Level::all().rev().zip(demands.iter().rev()) {
            if above + demand > usable {
                #[expect(clippy::cast_possible_truncation, reason = "a share in 0..=1")]
                let share = ((usable - above) / demand).clamp(0.0, 1.0) as f32;
                return Margin { level, share };
            }
            above += demand;
        }
        Margin::NONE
    }
}

/// Where demand crosses the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margin {
    /// The level at which it does; lower levels are shed first.
    pub level: Level,
    /// The share of that level's demand that can be served, 0..=1.
    pub share: f32,
}

impl Margin {
    /// All can be served.
    pub const NONE: Self = Self {
        level: Level::LOWEST,
        share: 1.0,
    };

    /// Whether a caller is among those of the marginal level that are served. Cohorts are served from the low end
    /// of the hash, so the same callers are as long as the share holds, and nearly the same when it moves.
    fn serves(&self, cohort: u32) -> bool {
        f64::from(cohort) <= f64::from(self.share) * f64::from(u32::MAX)
    }
}

/// Whether the capacity is enough for a request, by the demand of its level and of those above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// It is not: more important requests need all of it.
    Below,
    /// It is for some requests of the level, or nothing is known of the demand.
    Marginal,
    /// It is for all requests of the level.
    Above,
}

/// Most requests in flight, by level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ladder {
    margin: Margin,
    leftover: u32,
    limit: u32,
    reserve: u32,
}

impl Ladder {
    pub(crate) fn new(margin: Margin, limit: u32, reserve: u32) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a u32"
        )]
        let leftover = (f64::from(limit)
            * if margin == Margin::NONE {
                SHEDDABLE_SHARE
            } else {
                LEFTOVER
            })
        .ceil() as u32;
        Self {
            margin,
            leftover: leftover.max(1),
            limit: limit.max(1),
            reserve: reserve.max(limit).max(1),
        }
    }

    /// The same between other bounds.
    pub(crate) fn within(&self, min: u32, max: u32) -> Self {
        Self::new(
            self.margin,
            self.limit.clamp(min, max.max(min)),
            self.reserve.clamp(min, max.max(min)),
        )
    }

    /// Up to this many in flight, a request's level need not be read.
    pub(crate) const fn free(&self) -> u32 {
        self.leftover
    }

    pub(crate) const fn limit(&self) -> u32 {
        self.limit
    }

    pub(crate) const fn reserve(&self) -> u32 {
        self.reserve
    }

    pub(crate) const fn margin(&self) -> Margin {
        self.margin
    }

    /// The limit for requests of `level`. `cohort` is called only if callers of one level are told apart.
    pub(crate) fn limit_of(&self, level: Level, cohort: impl FnOnce() -> Option<u32>) -> u32 {
        let is_lesser =
            self.margin == Margin::NONE && level < Level::new(Criticality::Critical, true);
        match self.rank(level, cohort) {
            Rank::Above => self.reserve,
            Rank::Marginal if !is_lesser => self.limit,
            Rank::Marginal | Rank::Below => self.leftover,
        }
    }

    /// Where a request of `level` stands. `cohort` is called only if callers of one level are told apart.
    pub(crate) fn rank(&self, level: Level, cohort: impl FnOnce() -> Option<u32>) -> Rank {
        match level.cmp(&self.margin.level) {
            _ if self.margin == Margin::NONE => Rank::Marginal,
            Ordering::Less => Rank::Below,
            Ordering::Equal => match cohort() {
                Some(cohort) if !self.margin.serves(cohort) => Rank::Below,
                _ => Rank::Marginal,
            },
            Ordering::Greater => Rank::Above,
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    const CRITICAL: Level = Level::new(Criticality::Critical, false);
    const SHEDDABLE: Level = Level::new(Criticality::Sheddable, false);

    fn demand(counts: &[(Level, u32)]) -> LevelDemand {
        let mut demand = LevelDemand::default();
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
        assert_eq!(demand.margin(400.0).level, SHEDDABLE);
        assert_eq!(demand.margin(150.0).level, CRITICAL);
        assert_eq!(demand.margin(10_000.0), Margin::NONE);
        assert_eq!(demand.margin(0.0), Margin::NONE);
    }

    #[test]
    fn the_more_important_has_more_room() {
        let ladder = Ladder::new(
            Margin {
                level: CRITICAL,
                share: 0.5,
            },
            20,
            30,
        );
        let room: Vec<u32> = Level::all()
            .map(|level| ladder.limit_of(level, || None))
            .collect();
        assert_eq!(room, [12, 12, 12, 12, 12, 20, 30, 30]);
        assert_eq!(ladder.free(), 12);
    }

    #[test]
    fn the_same_callers_are_served_as_long_as_the_share_holds() {
        let ladder = |share| {
            Ladder::new(
                Margin {
                    level: CRITICAL,
                    share,
                },
                20,
                30,
            )
        };
        let served = |share, cohort| ladder(share).limit_of(CRITICAL, || Some(cohort)) == 20;
        assert!(served(0.5, 1_000) && !served(0.5, u32::MAX - 1_000));
        assert!(
            served(0.6, 1_000),
            "whoever was served stays so when more can be"
        );
        assert!(served(1.0, u32::MAX));
    }
}
