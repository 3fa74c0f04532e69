//! The concurrency limit: how many requests may be in flight to one upstream.
//!
//! One formula holds in every state, Little's law with a wait: `limit = C (T + w)`. `C` is the upstream's [`capacity`], `T` its
//! latency without a queue (the [`floor`]), and `w` the [`wait`] that is allowed. What is in flight, `C` and `T` are of the
//! same part of a request's life: from the moment the upstream has the whole request to the one that the objective measures.
//!
//! The state says how long the wait is. In [`cruise`] no queue stands, and bursts may wait for what the objective leaves. In
//! [`hold`] one does, and the wait only keeps the upstream busy. Neither needs a probing phase. Whether what looks like a
//! queue is one is found out by the cuts that hold makes anyway ([`queue_test`]); how much of the wait turns out well by
//! [`feedback`]. What a window teaches each of them stands in [`judge`].
//!
//! Failures that grow with load put a [`ceiling`] on both states. What a successor is told of all this is the [`checkpoint`].

mod capacity;
mod ceiling;
mod checkpoint;
mod cruise;
mod feedback;
mod floor;
mod headroom;
mod hold;
mod in_force;
mod judge;
mod patience;
mod queue_test;
mod reason;
#[cfg(test)]
mod testing;
mod wait;
mod window;

use core::time::Duration;

use crate::ablation::{Mechanism, is_off};
use crate::config::{LimitConfig, Slo, Stance};
use crate::sample::Sample;
use crate::time::Instant;
use capacity::Capacity;
use ceiling::Ceiling;
use cruise::Cruise;
use feedback::SloFeedback;
use floor::Floor;
use headroom::headroom;
use hold::Hold;
use in_force::{InForce, WantedLimit};

pub use ceiling::CeilingCheckpoint;
pub use checkpoint::{LimitCheckpoint, Quantiles};
pub use floor::FloorCheckpoint;
pub use reason::LimitReason;

/// A window is complete with this many latencies, or after [`MAX_WINDOW`].
const MIN_WINDOW_SAMPLES: u64 = 10;
const MAX_WINDOW: Duration = Duration::from_secs(1);
/// Once the latency is known, at least this share of the initial limit: traffic that was rare may come in a surge.
const SURGE: f64 = 0.2;
/// And before answers have come for so long all of it: the slow ones are missing among the first.
const COLD_FOR: Duration = Duration::from_secs(2);
/// Weight of the newest round in the mean of uploads under way, and the least that matters.
const UPLOADING_WEIGHT: f64 = 0.2;
const MIN_UPLOADING: f64 = 0.05;
/// Their number varies by so many standard deviations of a Poisson count. With many slow uploads beside few requests in flight,
/// more of them than on average would take the places of all others.
const UPLOADING_VARY: f64 = 3.0;

/// What the limiter is told about the policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) slo: &'a Slo,
    pub(crate) limit: &'a LimitConfig,
    pub(crate) stance: Stance,
    /// What makes `now` the same clock for all proxies.
    pub(crate) ahead: Duration,
}

/// Whether a queue stands.
///
/// ```text
///          requests refused, and a queue for STANDING_AFTER
///  Cruise ---------------------------------------------------> Hold
///    ^      an outage has begun: what comes back may be less     |
///    +-----------------------------------------------------------+
///                  room under the limit for OVER_AFTER
/// ```
#[derive(Clone, Debug)]
enum State {
    /// No: bursts may wait for what the objective leaves.
    Cruise(Cruise),
    /// It does: as many as keep the upstream busy.
    Hold(Box<Hold>),
}

/// The limit of one upstream.
#[derive(Clone, Debug)]
pub(crate) struct Limiter {
    floor: Floor,
    capacity: Capacity,
    state: State,
    ceiling: Ceiling,
    /// How much of the wait is in use, of bursts and while a queue stands.
    burst_feedback: SloFeedback,
    hold_feedback: SloFeedback,
    /// A queue has stood at some time: the capacity is known.
    has_held: bool,
    /// How long answers have come: of the first ones the slow are missing.
    known_for: Duration,
    /// Requests have been refused since, with a floor that may have a queue in it.
    doubtful_since: Option<Instant>,
    /// How long nothing was refused, less the time in which something was.
    unrefused_for: Duration,
    window: Option<Sample>,
    latest: Quantiles,
    endpoints: u32,
    /// Mean uploads under way: they are counted with what is in flight, and are none of the upstream's time.
    uploading: f64,
    in_force: InForce,
}

impl Limiter {
    pub(crate) const fn reason(&self) -> LimitReason {
        self.in_force.reason
    }

    pub(crate) const fn is_congested(&self) -> bool {
        matches!(self.state, State::Hold(_))
    }

    /// The upstream is away, and may be less when it comes back: it is held until it is seen to bear more. Where nothing was
    /// known before, at the initial limit.
    pub(crate) fn restart_conservatively(&mut self, terms: Terms<'_>) {
        if !self.is_congested() && !is_off(Mechanism::Restart) {
            let limit = if self.floor.is_known() {
                let carried = self.capacity.value() * self.believed_floor(terms.slo);
                carried + headroom(carried, self.endpoints)
            } else {
                self.initial(terms)
            };
            self.state = State::Hold(Box::new(Hold::at(limit)));
        }
    }

    /// Answers a second that the upstream can give, as far as seen; 0 when unknown.
    pub(crate) const fn capacity(&self) -> f64 {
        self.capacity.value()
    }

    /// One round with what happened since the last.
    pub(crate) fn update(&mut self, sample: &Sample, terms: Terms<'_>, now: Instant) {
        self.follow_endpoints(sample.endpoints);
        self.uploading += (f64::from(sample.uploading) - self.uploading) * UPLOADING_WEIGHT;
        let tolerated = terms.slo.success_rate().complement().as_f64();
        let unheld = self.cruise_limit(terms).max(self.held_limit());
        self.ceiling.update(sample, unheld, tolerated, now);
        if let State::Hold(hold) = &mut self.state
            && hold.is_over(sample, now)
        {
            self.state = State::Cruise(Cruise::default());
        }
        let window = match self.window.take() {
            Some(mut window) => {
                window.extend(sample);
                window
            }
            None => sample.clone(),
        };
        if window.tally.latency.len() < MIN_WINDOW_SAMPLES && window.span < MAX_WINDOW {
            self.window = Some(window);
            return;
        }
        self.judge(&window, terms, now);
    }

    /// The limits in force: for the marginal level, and for those above it.
    pub(crate) fn limits(&mut self, terms: Terms<'_>) -> (u32, u32) {
        // The least is the proxy's own: a thousand sidecars must not let in a thousand times what a service bears.
        let min = f64::from(terms.limit.min());
        let max = f64::from(terms.limit.max()) * f64::from(self.endpoints.max(1));
        let burst = self.cruise_limit(terms);
        let (limit, law) = match &self.state {
            State::Hold(hold) if terms.stance == Stance::FailFast && !is_off(Mechanism::Hold) => {
                (hold.limit(), LimitReason::Knee)
            }
            State::Cruise(_) if self.is_late(terms.slo) => (burst, LimitReason::Unreachable),
            _ if self.floor.is_known() => (burst, LimitReason::Burst),
            _ => (burst, LimitReason::WarmUp),
        };
        let wanted = WantedLimit { limit, law, burst };
        let (limit, reserve) = self.in_force.set(&wanted, &self.ceiling, min, max);
        if self.uploading < MIN_UPLOADING || is_off(Mechanism::Uploading) {
            return (limit, reserve);
        }
        let vary = UPLOADING_VARY * self.uploading.sqrt();
        let uploading = in_force::count((self.uploading + vary).ceil());
        (
            limit.saturating_add(uploading),
            reserve.saturating_add(uploading),
        )
    }

    /// The limit while no queue stands.
    fn cruise_limit(&self, terms: Terms<'_>) -> f64 {
        let initial = self.initial(terms);
        if !self.floor.is_known() {
            return initial;
        }
        let capacity = self.capacity.value();
        let carried = capacity * self.floor.mean;
        let queue = capacity * self.burst_wait(terms.slo);
        let grown = match &self.state {
            State::Cruise(cruise) => cruise.grown(),
            State::Hold(_) => 0.0,
        };
        (carried + queue)
            .max(grown)
            .max(self.least(terms.limit.initial()))
    }

    /// The policy's initial limit, for all endpoints.
    fn initial(&self, terms: Terms<'_>) -> f64 {
        f64::from(terms.limit.initial()) * f64::from(self.endpoints.max(1))
    }

    /// What is let in however little is known, where `initial` is the policy's.
    fn least(&self, initial: u32) -> f64 {
        if self.has_held {
            0.0
        } else if self.known_for < COLD_FOR && !is_off(Mechanism::ColdLeast) {
            f64::from(initial)
        } else if is_off(Mechanism::SurgeLeast) {
            0.0
        } else {
            f64::from(initial) * SURGE
        }
    }

    fn held_limit(&self) -> f64 {
        match &self.state {
            State::Hold(hold) => hold.limit(),
            State::Cruise(_) => 0.0,
        }
    }

    fn follow_endpoints(&mut self, endpoints: u32) {
        if endpoints == 0 || endpoints == self.endpoints {
            return;
        }
        if self.endpoints > 0 && !is_off(Mechanism::EndpointsScale) {
            // Capacity comes and goes with endpoints at once; what one of them can do does not change.
            let factor = f64::from(endpoints) / f64::from(self.endpoints);
            self.capacity.scale(factor);
            match &mut self.state {
                State::Cruise(cruise) => cruise.scale(factor),
                State::Hold(hold) => hold.scale(factor),
            }
            self.ceiling.scale(factor);
        }
        self.endpoints = endpoints;
    }
}

#[cfg(test)]
mod tests;
