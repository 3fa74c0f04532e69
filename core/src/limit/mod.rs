//! The concurrency limit: how many requests may be in flight to one upstream.
//!
//! Every state uses one formula, Little's law with a wait: `limit = C (T + w)`. `C` is the upstream's [`capacity`], `T` its
//! latency without a queue (the [`floor`]), and `w` the [`wait`] that is allowed. Requests in flight, `C` and `T` cover the
//! same part of a request's life: from the moment the upstream has the whole request to the moment the objective measures.
//!
//! The state decides how long the wait is. In [`cruise`] no queue stands, and bursts may wait for as long as the objective
//! leaves after serving. In [`hold`] a queue stands, and the wait only keeps the upstream busy. Neither state needs a probing
//! phase. The cuts that hold makes anyway show whether a queue really stands ([`queue_test`]). The [`feedback`] adjusts the
//! part of the wait that is in use. [`judge`] applies each window to all of them.
//!
//! Failures that grow with load put a [`ceiling`] on both states. The [`checkpoint`] is what a successor starts from.

mod capacity;
mod ceiling;
mod chance;
mod checkpoint;
mod contention;
mod cruise;
mod feedback;
mod floor;
mod headroom;
mod hold;
mod in_force;
mod judge;
mod late;
mod load_trend;
mod packs;
mod patience;
mod queue_test;
mod reason;
#[cfg(test)]
mod testing;
mod together;
mod unmeasured;
mod wait;
mod window;

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::config::{LimitConfig, Slo, Stance};
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;
use capacity::Capacity;
use ceiling::Ceiling;
use contention::WaitInUse;
use cruise::Cruise;
use feedback::SloFeedback;
use floor::Floor;
use headroom::headroom;
use hold::Hold;
use in_force::{InForce, WantedLimit};
use late::LateRequests;
use load_trend::LoadTrend;
use unmeasured::Unmeasured;

pub use ceiling::CeilingCheckpoint;
pub use checkpoint::{LimitCheckpoint, Quantiles};
pub use floor::FloorCheckpoint;
pub use reason::LimitReason;

/// A window is complete with this many latencies, or after [`MAX_WINDOW`].
const MIN_WINDOW_SAMPLES: u64 = 10;
const MAX_WINDOW: Duration = Duration::from_secs(1);
/// Once the latency is known, at least this share of the initial limit: traffic that was rare may come in a surge.
const SURGE: f64 = 0.2;
/// Weight of the newest round in the mean of uploads under way, and the least that matters.
const UPLOADING_WEIGHT: f64 = 0.2;
const MIN_UPLOADING: f64 = 0.05;
/// Allowance for more uploads than the mean, in standard deviations of a Poisson count. Where many slow uploads run beside few
/// requests in flight, an upload above the mean would take the place of another request.
const UPLOADING_VARY: f64 = 3.0;

/// Slow answers are missing while more requests are in flight than this many times what the answers account for.
const MOST_UNDER_WAY: f64 = 2.0;

/// The share of the capacity that is granted below one, however long the queue: without answers nothing would show that it is gone.
const LEAST_USED: f64 = 0.1;

/// No latency is shorter, seconds: where requests are granted one by one, they would be granted without end.
const LEAST_LATENCY: f64 = 1e-4;

/// A first window that is too short lasts for this many mean latencies at most, ...
const FIRST_LATENCIES: f64 = 3.0;
/// ... where the mean latency of all requests is taken to be at most this many times that of the answers so far: some requests may hang.
const MOST_LONGER: f64 = 4.0;

/// What the limiter needs of the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) slo: &'a Slo,
    pub(crate) limit: &'a LimitConfig,
    pub(crate) stance: Stance,
    /// Added to `now`, this gives a clock that is the same for all proxies.
    pub(crate) ahead: Duration,
}

/// The sign by which an outage was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutageSign {
    /// Requests had no answer, as in an overload.
    Hang,
    /// Requests failed.
    Failures,
}

/// Whether a queue stands.
///
/// ```text
///          requests refused, and a queue for STANDING_AFTER
///  Cruise ---------------------------------------------------> Hold
///    ^      requests refused, and the callers of all others      |
///    |      leave late without an answer                         |
///    |      an outage began: the upstream may return weaker      |
///    +-----------------------------------------------------------+
///                  room under the limit for OVER_AFTER
/// ```
#[derive(Clone, Debug)]
enum LimiterState {
    /// No queue stands: bursts may wait for as long as the objective leaves after serving.
    Cruise(Cruise),
    /// A queue stands: the limit only keeps the upstream busy.
    Hold(Box<Hold>),
}

/// The limit of one upstream.
#[derive(Clone, Debug)]
pub(crate) struct Limiter {
    floor: Floor,
    capacity: Capacity,
    state: LimiterState,
    ceiling: Ceiling,
    /// The part of the wait in use for bursts.
    burst_feedback: SloFeedback,
    /// The same while a queue stands; `None` until there were answers.
    hold_feedback: Option<Box<SloFeedback>>,
    /// A queue has stood at some time: the capacity is known.
    has_held: bool,
    /// Since when requests have been refused while the floor may include a queue.
    doubtful_since: Option<Instant>,
    /// Time without a refusal, minus the (weighted) time with refusals.
    unrefused_for: Duration,
    window: Option<Sample>,
    late: LateRequests,
    /// Whether latency grows with load; `None` once the floor is known.
    load_trend: Option<Box<LoadTrend>>,
    latest: Quantiles,
    endpoints: u32,
    /// Requests in flight that the floor does not know of.
    unmeasured: Unmeasured,
    /// Mean uploads under way. They count as in flight, but the upstream does not work on them yet.
    uploading: f64,
    in_force: InForce,
    wait_in_use: WaitInUse,
}

impl Limiter {
    pub(crate) const fn reason(&self) -> LimitReason {
        self.in_force.reason
    }

    pub(crate) const fn is_congested(&self) -> bool {
        matches!(self.state, LimiterState::Hold(_))
    }

    /// An outage began. The upstream may return with less capacity, so the limiter holds until it sees the upstream carry
    /// more: at what the upstream carried before, or at the initial limit if nothing is known. Below one only if there may have been too
    /// many requests: the capacity of a service with few of them is unknown, and requests that fail at once would take all grants.
    pub(crate) fn restart_conservatively(&mut self, terms: Terms<'_>, sign: OutageSign) {
        if !self.is_congested() && !is_off(Mechanism::Restart) {
            let limit = if self.floor.is_known() {
                let capacity = self.capacity.value();
                let unmeasured = self.unmeasured.value();
                let held = self.carried_limit(capacity, terms.slo) + unmeasured;
                let may_be_overload =
                    self.has_held || sign == OutageSign::Hang || is_off(Mechanism::RestartFromOne);
                if held < 1.0 && may_be_overload && !is_off(Mechanism::BelowOne) {
                    held
                } else {
                    let carried = capacity * self.believed_floor(terms.slo) + unmeasured;
                    carried + headroom(carried, self.endpoints)
                }
            } else {
                self.initial(terms)
            };
            self.state = LimiterState::Hold(Box::new(Hold::at(limit)));
        }
    }

    /// Answers a second that the upstream has shown it can give; 0 when unknown.
    pub(crate) const fn capacity(&self) -> f64 {
        self.capacity.value()
    }

    /// One round. `sample` is what happened since the last one.
    pub(crate) fn update(&mut self, sample: &Sample, terms: Terms<'_>, now: Instant) {
        self.follow_endpoints(sample.endpoints);
        self.uploading += (f64::from(sample.uploading) - self.uploading) * UPLOADING_WEIGHT;
        let tolerated = terms.slo.success_rate().complement().as_f64();
        let unheld = self.cruise_limit(terms).max(self.held_limit());
        self.ceiling.update(sample, unheld, tolerated, now);
        if let LimiterState::Hold(hold) = &mut self.state
            && hold.is_over(sample, now)
        {
            match hold.slower_since_entry().cloned() {
                Some(measured) => self.end_unproven_hold(&measured, terms.slo),
                None => self.end_hold(),
            }
        }
        self.follow_load_trend(sample);
        let shows_queue = self.latency_without_load().is_some();
        // It stays in its place while it grows: it is large.
        let window = match &mut self.window {
            Some(window) => {
                window.extend(sample);
                window
            }
            none => none.insert(sample.clone()),
        };
        let lasts = !self.floor.is_known() && lacks_slow_answers(window) && !shows_queue;
        let is_short = if lasts {
            window.span
                < MAX_WINDOW
                    .max(terms.slo.latency_target())
                    .max(usual(window))
        } else {
            window.tally.latencies() < MIN_WINDOW_SAMPLES && window.span < MAX_WINDOW
        };
        if !is_short && let Some(window) = self.window.take() {
            self.judge(&window, terms, now);
        }
    }

    /// Learns from one round, while the floor is unknown, whether latency grows with load.
    fn follow_load_trend(&mut self, round: &Sample) {
        if self.floor.is_known() {
            self.load_trend = None;
        } else if round.count(Count::Answers) > 0.0 {
            self.load_trend.get_or_insert_default().add(round);
        }
    }

    /// The latency of a request that meets no other, seconds, if the first latencies show a queue. `None` once the floor is known.
    fn latency_without_load(&self) -> Option<f64> {
        self.load_trend.as_deref()?.latency_without_load()
    }

    /// Hold ends because there was room under its limit.
    fn end_hold(&mut self) {
        if let LimiterState::Hold(hold) = &self.state {
            // There was room once the others held, too. Room for a surge would bring the queue back.
            self.has_held |= hold.is_unproven();
        }
        // The limit is no reason to admit less.
        self.state = LimiterState::Cruise(Cruise::at(self.held_limit()));
        if !is_off(Mechanism::ReliefCapacity) {
            // Nor is the throughput under it the capacity.
            self.capacity.return_to_calm();
        }
    }

    /// The requests a second that a limit below one grants; `None`: the limit is at least one.
    pub(crate) fn pace(&self, slo: &Slo) -> Option<f64> {
        match &self.state {
            LimiterState::Hold(hold) if self.in_force.reason == LimitReason::BelowOne => {
                let limit = self.in_force.limit;
                let capacity = self.capacity.value();
                let floor = self.believed_floor(slo).max(LEAST_LATENCY);
                // By the latency of the last second alone, many proxies with an even load would all grant some times what the upstream
                // can answer, and next to nothing a second later.
                let by_formula = limit / (floor + self.held_wait(capacity, slo));
                let most = by_formula.max(self.capacity.before_the_queue());
                let by_latency = limit / hold.latency().max(floor);
                Some(by_latency.min(most).max(capacity * LEAST_USED))
            }
            LimiterState::Hold(_) | LimiterState::Cruise(_) => None,
        }
    }

    /// The limits in force: for the marginal level, and for the levels above it.
    pub(crate) fn limits(&mut self, terms: Terms<'_>) -> (u32, u32) {
        // The minimum is per proxy, not per endpoint: the minimums of a thousand sidecars add up at the service.
        let min = f64::from(terms.limit.min());
        // Where no limit can make answers meet the objective, there is no reason to admit less than one at a time.
        let may_be_below_one = min <= 1.0 && !self.is_unreachable(terms.slo);
        let min = if may_be_below_one { 0.0 } else { min };
        let max = f64::from(terms.limit.max()) * f64::from(self.endpoints.max(1));
        let burst = self.cruise_limit(terms);
        let (limit, law) = match &self.state {
            LimiterState::Hold(hold)
                if terms.stance == Stance::FailFast && !is_off(Mechanism::Hold) =>
            {
                (hold.limit(), LimitReason::Hold)
            }
            LimiterState::Cruise(_) if self.is_late(terms.slo) => (burst, LimitReason::Unreachable),
            _ if self.floor.is_known() => (burst, LimitReason::Cruise),
            _ => (burst, LimitReason::WarmUp),
        };
        let wanted = WantedLimit { limit, law, burst };
        let (limit, reserve) = self.in_force.set(&wanted, &self.ceiling, min, max);
        let uploading = self.uploads_allowed();
        if uploading <= 0.0 {
            return (limit, reserve);
        }
        let uploading = in_force::count(uploading.ceil());
        (
            limit.saturating_add(uploading),
            reserve.saturating_add(uploading),
        )
    }

    /// As many uploads as may be under way by chance.
    fn uploads_allowed(&self) -> f64 {
        if self.uploading < MIN_UPLOADING || is_off(Mechanism::Uploading) {
            return 0.0;
        }
        self.uploading + UPLOADING_VARY * self.uploading.sqrt()
    }

    /// The limit while no queue stands.
    fn cruise_limit(&self, terms: Terms<'_>) -> f64 {
        if !self.floor.is_known() {
            return self.initial(terms);
        }
        let grown = match &self.state {
            LimiterState::Cruise(cruise) => cruise.grown(),
            LimiterState::Hold(_) => 0.0,
        };
        self.affordable_limit(terms.slo)
            .max(self.chance_limit(terms.slo))
            .max(grown)
            .max(self.least(terms.limit.initial()))
    }

    /// The formula while no queue stands.
    fn affordable_limit(&self, slo: &Slo) -> f64 {
        let capacity = self.capacity.value();
        self.carried() + capacity * self.burst_wait(slo)
    }

    /// Requests in flight at the capacity without a queue.
    fn carried(&self) -> f64 {
        self.capacity.value() * self.floor.occupancy() + self.unmeasured.value()
    }

    /// The formula while a queue stands, at this capacity.
    fn carried_limit(&self, capacity: f64, slo: &Slo) -> f64 {
        capacity * (self.believed_floor(slo) + self.held_wait(capacity, slo))
    }

    /// The policy's initial limit, for all endpoints.
    fn initial(&self, terms: Terms<'_>) -> f64 {
        f64::from(terms.limit.initial()) * f64::from(self.endpoints.max(1))
    }

    /// The least limit while no queue has shown the capacity; `initial` is the policy's, per endpoint.
    fn least(&self, initial: u32) -> f64 {
        if self.has_held || is_off(Mechanism::SurgeLeast) {
            0.0
        } else {
            f64::from(initial) * SURGE
        }
    }

    fn held_limit(&self) -> f64 {
        match &self.state {
            LimiterState::Hold(hold) => hold.limit(),
            LimiterState::Cruise(_) => 0.0,
        }
    }

    fn follow_endpoints(&mut self, endpoints: u32) {
        if endpoints == 0 || endpoints == self.endpoints {
            return;
        }
        if self.endpoints > 0 && !is_off(Mechanism::EndpointsScale) {
            // Capacity changes with the number of endpoints at once; the capacity of each endpoint stays the same.
            let factor = f64::from(endpoints) / f64::from(self.endpoints);
            self.capacity.scale(factor);
            match &mut self.state {
                LimiterState::Cruise(cruise) => cruise.scale(factor),
                LimiterState::Hold(hold) => hold.scale(factor),
            }
            self.ceiling.scale(factor);
            self.unmeasured.scale(factor);
        }
        self.endpoints = endpoints;
    }
}

/// The time in which most of the requests in flight are answered, by Little's law. While requests are refused there may be a queue, which
/// Little's law includes. Then they are taken to last as long as those that have been answered.
fn usual(window: &Sample) -> Duration {
    let answered = window.mean_latency().unwrap_or_default();
    let latency = if window.tally.refused_for_load() == 0 {
        let by_little = window.mean_in_flight() / window.throughput();
        by_little.min(answered * MOST_LONGER).max(answered)
    } else {
        answered
    };
    Duration::try_from_secs_f64(latency * FIRST_LATENCIES).unwrap_or_default()
}

/// Whether the slow answers of the requests in flight are still missing: by Little's law, the answers so far would need far
/// fewer requests in flight.
fn lacks_slow_answers(window: &Sample) -> bool {
    let needed = window.throughput() * window.mean_latency().unwrap_or_default();
    window.mean_in_flight() > needed * MOST_UNDER_WAY
}

#[cfg(test)]
mod tests;
