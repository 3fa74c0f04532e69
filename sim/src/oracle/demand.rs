//! What one request asks of an endpoint, on average, and how long its answer takes by itself.

use std::time::Duration;

use super::request::OracleRequest;
use crate::number;
use crate::profile::{Behaviour, Body, HeaderTiming, PauseClock, ServiceTime, UpstreamMode};
use crate::scenario::{LatencyUntil, Stages};

/// A request at an endpoint with a given behavior.
pub(super) struct RequestDemand<'a> {
    behaviour: &'a Behaviour,
    service: &'a ServiceTime,
    body: Option<&'a Body>,
    until: LatencyUntil,
    reads_for: Option<Duration>,
    upload: Duration,
    dawdles: Duration,
}

impl<'a> RequestDemand<'a> {
    pub(super) fn of(
        behaviour: &'a Behaviour,
        request: &OracleRequest<'_>,
        until: LatencyUntil,
    ) -> Self {
        let arrival = request.arrival;
        Self {
            dawdles: request.client.dawdles.unwrap_or_default(),
            reads_for: arrival.reads_for,
            upload: arrival.uploads_for().unwrap_or_default(),
            ..Self::on(behaviour, &arrival.path, until)
        }
    }

    /// The demand of a caller that reads to the end.
    pub(super) fn on(behaviour: &'a Behaviour, path: &str, until: LatencyUntil) -> Self {
        Self {
            behaviour,
            service: behaviour.service_for(path),
            body: behaviour.body_for(path),
            until,
            reads_for: None,
            upload: Duration::ZERO,
            dawdles: Duration::ZERO,
        }
    }

    /// Mean time of the work.
    pub(super) fn service(&self) -> Duration {
        self.service.mean()
    }

    /// Mean time of the body until either side ends it, in seconds.
    pub(super) fn body(&self) -> f64 {
        let most = self.reads_for.unwrap_or(Duration::MAX);
        let dawdles = self.dawdles.as_secs_f64();
        self.body
            .map_or(0.0, |body| body.duration.mean_within(most).max(dawdles))
    }

    /// The part of [`Self::body`] that holds the slot, in seconds.
    pub(super) fn held(&self) -> f64 {
        if self.body.is_some_and(|body| body.holds_slot) {
            self.body()
        } else {
            0.0
        }
    }

    /// Mean time from the slot to the moment that is measured to.
    pub(super) fn to_moment(&self) -> Duration {
        match self.until {
            LatencyUntil::Headers if self.behaviour.headers == HeaderTiming::AtOnce => {
                Duration::ZERO
            }
            LatencyUntil::Headers | LatencyUntil::FirstByte => self.service(),
            LatencyUntil::End => self.service() + number::seconds(self.body()),
        }
    }

    /// How long it may wait in the queue, as the time to a moment and the budget for that. They are those of the class that
    /// can wait the least, among classes that can be in time, because classes are not known in advance. An oracle that
    /// knew them would serve only the cheap ones.
    pub(super) fn haste(&self, budget: Duration, slo: Duration) -> (Duration, Duration) {
        let own = (self.to_moment(), budget);
        let of = |service, body| {
            (
                Self {
                    service,
                    body,
                    ..*self
                }
                .to_moment(),
                slo,
            )
        };
        let plain = of(&self.behaviour.service, self.behaviour.body.as_ref());
        let paths = self.behaviour.paths.iter();
        let others = paths.map(|(path, service)| of(service, self.behaviour.body_for(path)));
        let all = [own, plain].into_iter().chain(others);
        let in_time = all.filter(|(moment, budget)| moment < budget);
        in_time
            .min_by_key(|(moment, budget)| budget.saturating_sub(*moment))
            .unwrap_or(own)
    }

    /// Whether the moment needs no slot at all.
    pub(super) fn is_free(&self) -> bool {
        self.until == LatencyUntil::Headers && self.behaviour.headers == HeaderTiming::AtOnce
    }

    /// The most requests in slots that an oracle uses.
    pub(super) fn slots(&self) -> f64 {
        let service = self.service().as_secs_f64();
        self.behaviour.best_concurrency(service, self.held())
    }

    /// Mean time for which a slot is taken, in seconds.
    pub(super) fn slot_time(&self) -> f64 {
        self.work() + self.held()
    }

    /// The part of [`Self::slot_time`] until the work is done, in seconds.
    pub(super) fn work(&self) -> f64 {
        self.service().as_secs_f64() * self.behaviour.slowdown(self.slots())
    }

    /// Slot-seconds that it costs, at least as many as its connection is worth.
    pub(super) fn cost(&self) -> f64 {
        let by_connection = self.behaviour.connections.map_or(0.0, |connections| {
            let taken = (self.upload + self.service()).as_secs_f64() + self.body();
            taken * self.slots() / f64::from(connections.max)
        });
        self.slot_time().max(by_connection)
    }

    /// The most requests that an endpoint holds, served and waiting.
    pub(super) fn most_held(&self) -> f64 {
        self.behaviour
            .connections
            .map_or(f64::INFINITY, |connections| {
                f64::from(connections.max) + f64::from(connections.backlog)
            })
    }

    /// Share of requests that do not fail at once.
    pub(super) fn correct(&self) -> f64 {
        1.0 - self.behaviour.errors.map_or(0.0, |errors| errors.share)
    }

    /// When the endpoint stands still; none where it never does.
    pub(super) fn pauses(&self, (index, count): (u32, u32)) -> Option<PauseClock> {
        let pauses = self.behaviour.pauses?;
        pauses.clock(index, count)
    }

    /// Time in which the endpoint runs within `budget` from `at` on.
    pub(super) fn running(&self, place: (u32, u32), at: Duration, budget: Duration) -> Duration {
        self.pauses(place)
            .map_or(budget, |clock| clock.running(at, at + budget))
    }

    /// Whether the connection breaks while the response is under way.
    pub(super) fn is_broken_off(&self, stages: &Stages, at: Duration) -> bool {
        if self.body.is_none() {
            return false;
        }
        let end = at + self.service() + number::seconds(self.body());
        let breaks = |(from, now): &(Duration, Behaviour)| {
            now.mode == UpstreamMode::Refuse && *from > at && *from < end
        };
        stages.iter().any(breaks)
    }

    /// Share of answers whose moment comes later than `bound` even with an empty queue: those that take so long by
    /// themselves, and those that are delayed behind their slot.
    pub(super) fn late_share(&self, bound: Duration) -> f64 {
        if self.is_free() {
            return f64::from(u8::from(bound.is_zero()));
        }
        let (share, by) = self
            .behaviour
            .delay
            .map_or((0.0, Duration::ZERO), |delay| (delay.share, delay.by));
        let delayed = bound
            .checked_sub(by)
            .map_or(1.0, |left| self.share_above(left));
        (1.0 - share) * self.share_above(bound) + share * delayed
    }

    fn share_above(&self, bound: Duration) -> f64 {
        match self.body {
            Some(body) if self.until == LatencyUntil::End => {
                sum_above(self.service, &body.duration, bound)
            }
            _ => self.service.share_above(bound),
        }
    }
}

/// Steps in which the law of a sum is worked out.
const STEPS: u32 = 64;

/// Share of sums of two independent times that exceed `bound`.
fn sum_above(one: &ServiceTime, other: &ServiceTime, bound: Duration) -> f64 {
    let at = |step: f64| bound.mul_f64(step / f64::from(STEPS));
    let mut above = other.share_above(bound);
    for step in 0..STEPS {
        let step = f64::from(step);
        // A time equal to the bound is not above it.
        let likely = other.share_above(at(step)) - other.share_above(at(step + 1.0));
        if likely > 0.0 {
            above += likely * one.share_above(bound.saturating_sub(at(step + 0.5)));
        }
    }
    above
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{RngPurpose, generator};

    #[test]
    fn the_law_of_a_sum_is_that_of_the_draws() {
        let law = |mean_ms, sigma| ServiceTime::Lognormal {
            mean: Duration::from_millis(mean_ms),
            sigma,
        };
        let (one, other) = (law(40, 0.5), law(200, 0.8));
        let mut rng = generator(3, RngPurpose::Upstream(0));
        let bound = Duration::from_millis(400);
        let draws = (0..20_000).filter(|_| one.sample(&mut rng) + other.sample(&mut rng) > bound);
        let found = number::float_len(draws.count()) / 20_000.0;
        // A share of 0.13; the standard error of 20,000 draws is 0.0024.
        let share = sum_above(&one, &other, bound);
        assert!((found - share).abs() < 0.01, "{found} {share}");
    }
}
