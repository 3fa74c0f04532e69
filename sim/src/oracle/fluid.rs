//! A fluid server with the stages of one endpoint: work drains at the rate of the slots.

use std::time::Duration;

use super::demand::RequestDemand;
use crate::profile::Behaviour;
use crate::scenario::Stages;

pub(super) struct Fluid {
    place: (u32, u32),
    /// Work in line, in slot-seconds.
    backlog: f64,
    now: Duration,
}

impl Fluid {
    /// An idle endpoint, number `place.0` of `place.1`.
    pub(super) const fn new(place: (u32, u32)) -> Self {
        Self {
            place,
            backlog: 0.0,
            now: Duration::ZERO,
        }
    }

    pub(super) const fn place(&self) -> (u32, u32) {
        self.place
    }

    pub(super) fn admits(
        &mut self,
        stages: &Stages,
        demand: &RequestDemand<'_>,
        at: Duration,
        (to_moment, budget): (Duration, Duration),
    ) -> bool {
        let drained = self.work(stages, self.now, at);
        self.backlog = (self.backlog - drained).max(0.0);
        self.now = at;
        let latest = match demand.pauses(self.place) {
            _ if demand.is_free() => Duration::MAX,
            Some(clock) => clock.latest_start(at + budget, to_moment).max(at),
            None => at + budget.saturating_sub(to_moment),
        };
        let is_accepted = self.backlog < demand.most_held() * demand.cost();
        let admitted = is_accepted && self.work(stages, at, latest) >= self.backlog;
        if admitted {
            // A request that fails at once holds no slot.
            self.backlog += demand.cost() * demand.correct();
        }
        admitted
    }

    /// Slot-seconds that can be worked off from `from` to `to`.
    fn work(&self, stages: &Stages, from: Duration, to: Duration) -> f64 {
        let ends = stages
            .iter()
            .skip(1)
            .map(|(at, _)| *at)
            .chain(std::iter::once(Duration::MAX));
        let stages = stages.iter().zip(ends);
        stages
            .filter(|((_, behaviour), _)| behaviour.mode.is_up())
            .map(|((start, behaviour), end)| {
                let (from, to) = ((*start).max(from), end.min(to));
                let length = self.running(behaviour, from, to);
                behaviour.best_concurrency(behaviour.service.mean().as_secs_f64(), 0.0)
                    * length.as_secs_f64()
            })
            .sum()
    }

    fn running(&self, behaviour: &Behaviour, from: Duration, to: Duration) -> Duration {
        let (index, count) = self.place;
        let clock = behaviour
            .pauses
            .and_then(|pauses| pauses.clock(index, count));
        match clock {
            Some(clock) if to > from => clock.running(from, to),
            _ => to.saturating_sub(from),
        }
    }
}
