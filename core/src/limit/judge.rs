//! Learns from one complete window: the floor, the capacity, whether a queue stands, and the limit that holds it.

use core::time::Duration;

use super::cruise::{Cruise, CruiseFinding, Reference, STANDING_AFTER};
use super::feedback::{Lateness, ShedRequests, SloFeedback};
use super::floor::{Floor, LOW};
use super::hold::{APP_LIMITED, BEAT, Hold, HoldFinding, HoldTarget, Step};
use super::late::{LateFinding, do_callers_leave};
use super::queue_test::Measurement;
use super::together::rate_together;
use super::wait::{HELD_SHARE, UNREACHABLE_WAIT, harmless};
use super::window::{BUSY_DELAY, WindowStats};
use super::{LimitReason, Limiter, LimiterState, MIN_WINDOW_SAMPLES, Quantiles, Terms};
use crate::ablation::{Mechanism, is_off};
use crate::config::Slo;
use crate::sample::Sample;
use crate::time::Instant;
use crate::units::Seconds;

/// After this long without a refusal a floor is no longer in doubt. Time with refusals is subtracted, multiplied by the
/// weight: while a queue stands, requests are refused in most windows.
const QUIET: Duration = Duration::from_secs(5);
const REFUSING_WEIGHT: u32 = 2;
/// A floor in doubt matters only while more than this share of the requests is refused.
const DOUBTFUL_SHARE: f64 = 0.2;

/// A floor in doubt is tested at a limit that gives at least so many answers a second if it is true, and with at least so many
/// requests in flight: rarer answers tell too late.
const TESTED_RATE: f64 = 8.0;
const LEAST_TESTED: f64 = 4.0;
/// A window waits for its first answer for this many mean latencies at most; a longer silence is a pause.
const MOST_WAIT: f64 = 2.0;

impl Limiter {
    /// Learns from a complete window. The order matters: later steps need the results of earlier ones.
    pub(super) fn judge(&mut self, window: &Sample, terms: Terms<'_>, now: Instant) {
        let quantile = terms.slo.latency_quantile().as_f64();
        let affordable = self.affordable(terms.slo);
        let limit = self.in_force.limit;
        let Some(mut stats) = WindowStats::of(window, &self.floor, affordable, limit) else {
            self.judge_unanswered(window, terms, now);
            return;
        };
        self.wait_in_use.pass(now + terms.ahead);
        let late = self.look_for_late(window, terms, now + terms.ahead);
        self.trust_after_quiet(&stats, window.span);
        let latency = &window.tally.latency;
        self.latest = Quantiles {
            low: Seconds::new(stats.low),
            tail: Seconds::new(latency.quantile(quantile).unwrap_or(stats.low)),
        };
        let is_faster = stats.is_faster(&self.floor)
            && latency.len() >= MIN_WINDOW_SAMPLES
            && !is_off(Mechanism::FloorFaster);
        let is_news = !self.floor.is_known() || is_faster;
        // With few requests a queue of the upstream holds less than one of them, and is not counted as one.
        let may_harm = stats.is_delayed
            && stats.mean > harmless(terms.slo)
            && !is_off(Mechanism::HarmfulWindows);
        let is_clean =
            !stats.is_busy && !self.is_congested() && !self.late.are_suspected() && !may_harm;
        let had_queue = self.is_in_doubt(terms.slo)
            && stats.is_faster_on_average(&self.floor)
            && (latency.len() >= MIN_WINDOW_SAMPLES || self.floor.is_surely_slower_than(window))
            && !is_off(Mechanism::Faster);
        if had_queue {
            self.floor.relearn(window, quantile);
        } else if let Some(latency) = self.latency_without_load() {
            self.begin_with_queue(latency, stats.low);
        } else if is_news || is_clean {
            let is_first = !self.floor.is_known();
            self.floor.learn(window, quantile);
            if is_first {
                self.begin_in_flight(window);
            }
        }
        if (had_queue || is_news || is_clean)
            && let Some(anew) = WindowStats::of(window, &self.floor, affordable, limit)
        {
            stats = anew;
        }
        // Uploads are among the load that requests met, and take no time of the upstream.
        if self.uploads_allowed() <= 0.0 {
            stats.together = rate_together(&stats, &window.success_loads()).unwrap_or_default();
        }
        let has_room = !self.is_congested() && stats.demand < limit;
        self.capacity
            .learn(&stats, self.floor.occupancy(), has_room);
        if is_clean {
            self.unmeasured.learn(window);
        }
        self.weigh_lateness(window, &stats, terms.slo);
        let doubt_lasts = self.doubt_lasts(&stats, terms.slo, now);
        let usual = Reference {
            // Requests that the upstream itself refuses have cost enough already.
            affordable: if self.ceiling.is_in_force() && !is_off(Mechanism::CeilingCostly) {
                0.0
            } else {
                self.affordable(terms.slo)
            },
            latency: self.floor.mean,
            occupancy: self.floor.occupancy(),
            is_capacity_known: self.has_held,
            in_force: (!self.in_force.is_held()).then_some(self.in_force.limit),
        };
        match &mut self.state {
            LimiterState::Cruise(cruise) => {
                let finding = cruise.update(&stats, &usual, now);
                if let LateFinding::Late(before) = late {
                    self.enter_unproven_hold(terms.slo, before);
                } else if finding == CruiseFinding::HiddenQueue && !doubt_lasts {
                    self.enter_unproven_hold(terms.slo, Measurement::of(window));
                } else if finding.stands() || doubt_lasts {
                    self.has_held |= finding.stands();
                    self.enter_hold(terms.slo, Measurement::of(window));
                } else if stats.is_busy
                    && cruise.is_slower(now)
                    && (stats.mean <= harmless(terms.slo) || is_off(Mechanism::SlowerHarmless))
                    && !is_off(Mechanism::SlowerInCruise)
                {
                    self.floor.learn(window, quantile);
                }
            }
            LimiterState::Hold(_) => self.move_hold(window, terms, now + terms.ahead),
        }
    }

    /// The first latencies show a queue. `latency` is that of a request that meets no other, as far as a line tells; the fast requests of the
    /// window had little queue before them, and none takes less than no queue does.
    fn begin_with_queue(&mut self, latency: f64, low: f64) {
        let mean = latency.max(low);
        self.floor = Floor::believed(low, mean, mean);
        self.has_held = true;
    }

    /// The first latencies show no queue. They are those of fast requests: slower ones are still in flight, and the formula has no room for
    /// them. So the limit begins with room for as many as are in flight.
    fn begin_in_flight(&mut self, window: &Sample) {
        if let LimiterState::Cruise(cruise) = &mut self.state
            && !is_off(Mechanism::FirstInFlight)
        {
            *cruise = Cruise::at(f64::from(window.in_flight));
        }
    }

    /// Learns from a complete window without an answer of known latency. The breaker handles a hang; an idle upstream needs nothing. Where
    /// callers leave a full limit, it falls.
    fn judge_unanswered(&mut self, window: &Sample, terms: Terms<'_>, now: Instant) {
        let span = window.span.as_secs_f64();
        let latency = self.floor.mean.max(self.latest.low.get());
        let is_slow = window.in_flight > 0 && span < latency * MOST_WAIT;
        if is_slow || self.is_below_one() && window.span < BEAT {
            // Answers are rare: where a service is slow, or requests are few. Their rate includes the time between them.
            self.window = Some(window.clone());
            return;
        }
        self.capacity.pass(window.span);
        if let LateFinding::Late(before) = self.look_for_late(window, terms, now + terms.ahead) {
            self.enter_unproven_hold(terms.slo, before);
        } else if do_callers_leave(window, &self.floor, terms.slo) && !self.is_late(terms.slo) {
            match &mut self.state {
                LimiterState::Cruise(_) => self.enter_hold(terms.slo, None),
                LimiterState::Hold(hold) => hold.halve(),
            }
        } else if window.in_flight == 0
            && let LimiterState::Cruise(cruise) = &mut self.state
        {
            cruise.run_empty(window.span.as_secs_f64());
        }
    }

    /// Whether a queue stands, and this proxy's share is below one request.
    fn is_below_one(&self) -> bool {
        self.in_force.reason == LimitReason::BelowOne
    }

    /// Looks for late requests, where the least limit admits more than the formula affords. An objective that no request can meet
    /// makes them late without a queue.
    fn look_for_late(&mut self, window: &Sample, terms: Terms<'_>, clock: Instant) -> LateFinding {
        let slo = terms.slo;
        let is_reachable = !self.is_in_doubt(slo) && !self.is_late(slo);
        let least = self.least(terms.limit.initial()).max(1.0);
        let is_blind = terms.limit.min() <= 1 && self.affordable_limit(slo) < least;
        if self.is_congested() || !is_reachable || !is_blind {
            self.late.forget();
            return LateFinding::Nothing;
        }
        self.late.update(window, &self.floor, slo, clock)
    }

    /// Enters hold because of late requests, or of a higher mean. Neither is a sign of a queue, so hold ends unless a test shows one.
    fn enter_unproven_hold(&mut self, slo: &Slo, before: Option<Measurement>) {
        self.enter_hold(slo, before);
        if let LimiterState::Hold(hold) = &mut self.state {
            hold.expect_proof();
        }
    }

    /// Trusts the floor after a long time with few refusals. A queue that had stood from the first answer on would have filled
    /// the limit, and requests would have been refused.
    fn trust_after_quiet(&mut self, stats: &WindowStats, span: Duration) {
        if stats.is_refusing {
            self.unrefused_for = self.unrefused_for.saturating_sub(span * REFUSING_WEIGHT);
        } else if !stats.is_busy {
            self.unrefused_for = self.unrefused_for.saturating_add(span);
        }
        if self.unrefused_for >= QUIET && !is_off(Mechanism::QuietTrust) {
            self.floor.trust();
        }
    }

    /// Compares the window's latencies with the objective, to adjust how much of the wait is used.
    fn weigh_lateness(&mut self, window: &Sample, stats: &WindowStats, slo: &Slo) {
        if self.is_unreachable(slo) {
            return;
        }
        let lateness = Lateness::of(&window.tally.latency, slo.latency_target(), stats.delay);
        // Right after a step, answers are to requests from before it. So those at the beginning of hold were admitted in cruise.
        let (is_cruise, is_draining) = match &self.state {
            LimiterState::Cruise(_) => (true, false),
            LimiterState::Hold(_) if is_off(Mechanism::LateBefore) => (false, false),
            LimiterState::Hold(hold) => (hold.is_entering(), hold.has_earlier()),
        };
        if is_cruise && !self.is_late(slo) && !is_off(Mechanism::BurstFeedback) {
            let wait = self.affordable(slo);
            let shed = ShedRequests {
                refused: stats.refused,
                places: self.capacity.value() * wait,
            };
            self.burst_feedback.weigh(&lateness, wait, shed);
        } else if !is_cruise && !is_draining && !is_off(Mechanism::HoldFeedback) {
            let wait = self.affordable_held(slo) * HELD_SHARE;
            let new = || Box::new(SloFeedback::OF_HOLD);
            let feedback = self.hold_feedback.get_or_insert_with(new);
            feedback.weigh(&lateness, wait, ShedRequests::default());
        }
    }

    /// Whether requests have been refused, while the floor may include a queue, for as long as a queue takes to stand.
    fn doubt_lasts(&mut self, stats: &WindowStats, slo: &Slo, now: Instant) -> bool {
        // If there was room on average, the refused requests came in a pack.
        let has_room = stats.in_flight < self.in_force.limit * APP_LIMITED;
        let is_refusing = stats.refused_share > DOUBTFUL_SHARE && !has_room;
        if !is_refusing || !self.is_in_doubt(slo) {
            self.doubtful_since = None;
            return false;
        }
        let since = *self.doubtful_since.get_or_insert(now);
        now.saturating_since(since) >= STANDING_AFTER && !is_off(Mechanism::DoubtHold)
    }

    /// Enters hold, with a limit at what the upstream carries.
    fn enter_hold(&mut self, slo: &Slo, before: Option<Measurement>) {
        let capacity = self.capacity.before_the_queue();
        let limit = self.carried_limit(capacity, slo);
        let testable = (self.floor.mean * TESTED_RATE).max(LEAST_TESTED);
        let limit = if self.is_in_doubt(slo) && !self.in_force.is_held() {
            limit.max(testable.min(self.in_force.limit))
        } else {
            limit
        };
        let from = self.in_force.limit;
        let step = before
            .filter(|_| !self.is_in_doubt(slo))
            .map(|before| Step { from, before });
        self.state = LimiterState::Hold(Box::new(Hold::enter(limit, step)));
    }

    /// What hold computes the limit from.
    fn target(&self, terms: Terms<'_>) -> HoldTarget {
        let slo = terms.slo;
        let capacity = self.capacity.value();
        HoldTarget {
            capacity,
            latency: self.believed_floor(slo),
            objective: slo.latency_target().as_secs_f64(),
            in_doubt: self.is_in_doubt(slo),
            wait: self.held_wait(capacity, slo),
            is_contended: self.wait_in_use.is_shortened(),
            delay: 0.0,
            harmless: if self.is_unreachable(slo) {
                f64::INFINITY
            } else {
                harmless(slo)
            },
            most: self.cruise_limit(terms),
            hides_queues: self.endpoints > 1,
        }
    }

    fn move_hold(&mut self, window: &Sample, terms: Terms<'_>, clock: Instant) {
        let slo = terms.slo;
        let quantile = slo.latency_quantile().as_f64();
        let wanted = self.target(terms);
        let period = self.floor.test_period(harmless(slo));
        let LimiterState::Hold(hold) = &mut self.state else {
            return;
        };
        let low = self.floor.low * wanted.latency / self.floor.occupancy();
        let verdict = hold.update(window, clock, period, |measured| HoldTarget {
            delay: (measured.tally.latency.quantile(LOW).unwrap_or_default() - low).max(0.0),
            ..wanted
        });
        match verdict {
            HoldFinding::Nothing => {}
            HoldFinding::Over => self.end_hold(),
            HoldFinding::Contended => self.wait_in_use.shorten(),
            HoldFinding::Unproven(measured) => self.end_unproven_hold(&measured, slo),
            HoldFinding::Queue(measured) => {
                self.late.conclude(true);
                self.has_held = true;
                self.unlearn_queue(&measured, slo);
            }
            HoldFinding::Slower(measured) => {
                let limit = hold.limit();
                let latency = measured.mean_latency().unwrap_or_default();
                let is_far = latency > self.floor.mean * (1.0 + UNREACHABLE_WAIT);
                self.floor.restart(&measured, quantile, wanted.in_doubt);
                // A slow service that is short of requests in flight gets them sooner from growth without a queue than from hold's
                // small steps.
                if wanted.in_doubt {
                    // Only the doubt was a reason to hold.
                    self.capacity.return_to_calm();
                    self.state = LimiterState::Cruise(Cruise::default());
                } else if is_far && self.is_unreachable(slo) {
                    // The limit was that of a service some times as fast. What it carries now is unknown.
                    self.state = LimiterState::Cruise(Cruise::at(limit));
                } else {
                    self.capacity.return_to_calm();
                }
            }
        }
    }

    /// Hold ends without a queue: the service is as slow as in this sample.
    pub(super) fn end_unproven_hold(&mut self, measured: &Sample, slo: &Slo) {
        let in_doubt = self.is_in_doubt(slo);
        self.late.conclude(false);
        self.floor
            .restart(measured, slo.latency_quantile().as_f64(), in_doubt);
        self.capacity.return_to_calm();
        self.state = LimiterState::Cruise(Cruise::default());
    }

    /// Corrects the floor after a queue was cut. Latency with less of the queue is nearer to the truth than a floor in doubt,
    /// and than a harmful floor that is far above it.
    fn unlearn_queue(&mut self, measured: &Sample, slo: &Slo) {
        let mean = measured.mean_latency().unwrap_or(f64::INFINITY);
        let may_harm = self.floor.mean > harmless(slo);
        let had_queue = self.is_in_doubt(slo) && mean < self.floor.mean
            || may_harm && mean < self.floor.mean * (1.0 - BUSY_DELAY);
        if had_queue && !is_off(Mechanism::Faster) {
            let quantile = slo.latency_quantile().as_f64();
            self.floor.relearn(measured, quantile);
        }
    }
}

#[cfg(test)]
mod tests;
