//! The limit while a queue stands: what the upstream carries, and a wait that keeps it busy.
//!
//! One formula holds in every state, `limit = C (T + w)`; here `w` is short. Each proxy takes its own throughput for `C`, so
//! that all proxies of an upstream move together by the ratio of the latency they want to the one they have (the gradient
//! of Netflix's limits and of Envoy's, with a target in place of a minimum), whatever their shares.
//!
//! What looks like a queue may be a slower service. Then each step down loses throughput, the capacity looks smaller, and
//! the next step goes further down. So each cut is a test as well ([`judge`]): a queue keeps its throughput, and makes
//! latency fall with what is in flight; a slower service does neither. Nor does a queue that other proxies fill up again.
//! So a step that finds a slower service is believed only where its latency leaves the objective room, and otherwise taken
//! back. What may harm the objective is tried on the beat of a clock that all proxies have, the wall clock: hosts keep it
//! together well within the time that a cut takes to show.
//!
//! A latency without a queue that may harm the objective may have had a queue in it from the first answer on. While it is in
//! doubt, only trials move the limit, one each second; once a trial has found a slower service they become rare. At a limit
//! of one a trial is a step up, or the doubt would have no end.
//!
//! ```text
//!              delay > wait               queue: go on
//!   Settled ------------------> Cut ------------------> Settled
//!      |                         |  slower, and harmless
//!      |                         +--------------------> Settled, the latency without a queue is this
//!      |                         |  slower or undecided: back
//!      |                         +--------------------> Settled, no step until the beat
//!      |  on the beat
//!      +---------------------> Trial --queue--> Settled; a latency in doubt is what is seen now
//!                                |  slower, often enough or in doubt
//!                                +------------> Settled, the latency without a queue is this
//!                                |  undecided: back
//!                                +------------> Settled
//! ```

use core::time::Duration;

use super::queue_test::{Finding, Measurement, judge};
use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::time::Instant;
use crate::units::Requests;

/// Answers that make one measurement; after [`PATIENCE`] fewer must do.
const MEASURED: u64 = 40;
const PATIENCE: Duration = Duration::from_secs(2);
/// A test waits for so long at most.
const TEST_PATIENCE: Duration = Duration::from_secs(4);
/// Trials are made whenever the clock passes a multiple of this.
const BEAT: Duration = Duration::from_secs(4);
/// Most that one step changes the limit by.
const STEP_DOWN: f64 = 0.75;
const STEP_UP: f64 = 1.5;
/// The most that a trial of a latency in doubt goes down by.
const DEEP_DOWN: f64 = 0.5;
/// The least step down that is a test, and the least limit, requests.
const LEAST_STEP: f64 = 1.0;
/// The least step up.
const CREEP_UP: f64 = 1.1;
/// A queue between these shares of the wait wanted is left as it is.
const TOO_LITTLE: f64 = 0.5;
const TOO_MUCH: f64 = 1.5;
/// With so many times what the formula gives in flight, a step down is tried.
const STRETCHED: f64 = 1.5;
/// With less than this share of the limit in flight, it is met for moments only: requests come in packs.
const APP_LIMITED: f64 = 0.6;
/// The queue is over when in-flight stays below this share of the limit for so long.
const ROOM: f64 = 0.9;
const OVER_AFTER: Duration = Duration::from_millis(200);
/// What is left of the wait after a cut that has raised the throughput, the least that ever is, and how it grows back with
/// each beat.
const CONTENDED: f64 = 0.5;
const MIN_SHARE: f64 = 0.05;
const FORGIVEN: f64 = 1.1;
/// So many trials more than not must find a slower service where to believe it may cost the objective.
const VOTES: u32 = 3;

/// What the limit is worked out from.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldTarget {
    /// Capacity, answers a second.
    pub(super) capacity: f64,
    /// Latency without a queue, seconds.
    pub(super) latency: f64,
    /// Whether that may have a queue in it.
    pub(super) in_doubt: bool,
    /// The wait that keeps the upstream busy, seconds.
    pub(super) wait: f64,
    /// The queue delay of the measurement, seconds.
    pub(super) delay: f64,
    /// Whether a longer latency without a queue leaves the objective room, up to this mean; seconds.
    pub(super) harmless: f64,
    /// The most that could be served within the objective.
    pub(super) most: f64,
}

impl HoldTarget {
    /// The formula, with this share of the wait in use.
    fn model(&self, share: f64) -> f64 {
        self.capacity * (self.latency + self.wait * share)
    }
}

/// What a window has shown.
#[derive(Clone, Debug)]
pub(super) enum HoldFinding {
    /// Nothing new.
    Nothing,
    /// There is a queue: what comes out is all that the upstream can do. This is left of it.
    Queue(Box<Sample>),
    /// There is none: the service is as slow as this.
    Slower(Box<Sample>),
}

/// What the measurement under way is for.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// To see whether the wait is as wanted. After a step that failed, none is made before the beat.
    Settled { is_blocked: bool },
    /// A step down was made.
    Cut(Step),
    /// The same, on the beat: its end counts.
    Trial(Step),
}

/// A step, down but for some trials.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The limit before it.
    from: f64,
    /// What was measured there.
    before: Measurement,
}

/// The limit, and the measurement under way.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    limit: f64,
    phase: Phase,
    /// What was measured at this limit.
    settled: Option<Sample>,
    measured: Option<Sample>,
    settling: bool,
    votes: u32,
    /// The second of the common clock.
    second: u64,
    /// Nothing has been refused, with room for more, since.
    calm_since: Option<Instant>,
    /// The part of the wait that is in use: less where more in flight carries less, as behind a contended lock.
    share: f64,
}

impl Hold {
    /// Holds at `limit` from now on.
    pub(super) const fn at(limit: f64) -> Self {
        Self {
            limit,
            phase: Phase::Settled { is_blocked: false },
            settled: None,
            measured: None,
            settling: true,
            votes: 0,
            second: 0,
            calm_since: None,
            share: 1.0,
        }
    }

    /// Goes on from what a leader knew.
    pub(super) const fn resume(known: Requests) -> Self {
        Self::at(known.get())
    }

    /// What a successor needs.
    pub(super) const fn checkpoint(&self) -> Requests {
        Requests::new(self.limit)
    }

    pub(super) const fn limit(&self) -> f64 {
        self.limit
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.limit *= factor;
        self.phase = Phase::Settled { is_blocked: false };
        self.settled = None;
        self.measured = None;
    }

    /// One round. True when the queue is gone: the limit has had room for a while, and not for a moment's lull. Judged by
    /// rounds, as where traffic comes in packs a whole window is never calm.
    pub(super) fn is_over(&mut self, round: &Sample, now: Instant) -> bool {
        let is_calm = round.tally.refused_for_load() == 0
            && f64::from(round.in_flight) < self.limit
            && (round.mean_in_flight() < self.limit * ROOM || is_off(Mechanism::ReliefShare));
        if !is_calm {
            self.calm_since = None;
            return false;
        }
        let since = *self.calm_since.get_or_insert(now);
        now.saturating_since(since) >= OVER_AFTER || is_off(Mechanism::ReliefAfter)
    }

    /// One window. `clock` is the same for all proxies that share the upstream; each time it passes a multiple of `period`
    /// seconds, the latency without a queue is tested.
    pub(super) fn update(
        &mut self,
        window: &Sample,
        clock: Instant,
        period: Option<u64>,
        target: impl Fn(&Sample) -> HoldTarget,
    ) -> HoldFinding {
        let second = clock.saturating_since(Instant::ZERO).as_secs();
        let last = core::mem::replace(&mut self.second, second);
        let on_beat = last / BEAT.as_secs() != second / BEAT.as_secs();
        let on_test = period.is_some_and(|period| last / period != second / period);
        if (on_beat || on_test)
            && let Phase::Settled { is_blocked } = self.phase
        {
            let target = target(window);
            let needs_trial = is_blocked || on_test || self.votes > 0;
            self.phase = Phase::Settled { is_blocked: false };
            if on_beat && self.share < 1.0 && !is_off(Mechanism::Forgiven) {
                self.share = (self.share * FORGIVEN).min(1.0);
            }
            // Where answers are rare, each window passes a second, and there is nothing but the window to go by.
            let seen = match &self.settled {
                None if target.in_doubt && !self.settling => Some(window),
                settled => settled.as_ref(),
            };
            if needs_trial
                && window.tally.refused_for_load() > 0
                && let Some(before) = seen.and_then(Measurement::of)
                && !is_off(Mechanism::Trial)
            {
                self.try_out(before, &target);
                return HoldFinding::Nothing;
            }
            if !target.in_doubt {
                // The window before a beat and the one after it are not of one measurement.
                return HoldFinding::Nothing;
            }
        }
        if self.settling && !is_off(Mechanism::Settling) {
            // What completes right after a step was admitted before it, and a queue takes its time to drain.
            self.settling = f64::from(window.in_flight) > self.limit + 1.0;
            return HoldFinding::Nothing;
        }
        let measured = match self.measured.take() {
            Some(mut measured) => {
                measured.extend(window);
                measured
            }
            None => window.clone(),
        };
        if measured.tally.latency.len() < MEASURED && measured.span < PATIENCE {
            self.measured = Some(measured);
            return HoldFinding::Nothing;
        }
        let Some(point) = Measurement::of(&measured) else {
            return HoldFinding::Nothing;
        };
        let target = target(&measured);
        match self.phase {
            Phase::Settled { is_blocked } => {
                let point = self.settle(&measured).unwrap_or(point);
                // With a floor in doubt only tests move the limit.
                if !target.in_doubt {
                    self.follow(&measured, point, &target, is_blocked);
                }
                HoldFinding::Nothing
            }
            Phase::Cut(step) => self.end_cut(measured, step, point, &target),
            Phase::Trial(step) => self.end_trial(measured, step, point, &target),
        }
    }

    /// A step down whose end counts. One that tests a latency in doubt goes to the model, if that is not too deep. Where the
    /// limit is too small to fall, the step goes up: what two requests show in comparison with one is the same.
    fn try_out(&mut self, before: Measurement, target: &HoldTarget) {
        let from = self.limit;
        self.phase = Phase::Trial(Step { from, before });
        if target.in_doubt && from < 2.0 * LEAST_STEP && !is_off(Mechanism::TrialUp) {
            self.change(from + LEAST_STEP);
            return;
        }
        let step = from * STEP_DOWN;
        self.step_down(if target.in_doubt {
            step.min(target.model(self.share)).max(from * DEEP_DOWN)
        } else {
            step
        });
    }

    /// A step by one request at the least: limits are whole numbers, and less would be no test.
    fn step_down(&mut self, to: f64) {
        self.change(to.min(self.limit - LEAST_STEP).max(LEAST_STEP));
    }

    /// More was measured at this limit. Answers with all of it.
    fn settle(&mut self, measured: &Sample) -> Option<Measurement> {
        let settled = match self.settled.take() {
            Some(mut settled) if settled.span < BEAT => {
                settled.extend(measured);
                settled
            }
            _ => measured.clone(),
        };
        Measurement::of(self.settled.insert(settled))
    }

    /// Nothing is being tried: towards the wait that is wanted.
    fn follow(
        &mut self,
        measured: &Sample,
        point: Measurement,
        target: &HoldTarget,
        is_blocked: bool,
    ) {
        let refused = measured.tally.refused_for_load() > 0;
        if point.in_flight < self.limit * APP_LIMITED && !is_off(Mechanism::AppLimited) {
            self.settled = None;
            if refused {
                let more = (self.limit * STEP_UP).min(target.most).max(self.limit);
                self.change(more);
            }
            return;
        }
        let wait = target.wait * self.share;
        let model = target.model(self.share);
        // More in flight than the formula gives: latency is longer than believed, though the fast answers do not show it.
        let is_stretched = point.in_flight > model * STRETCHED && !is_off(Mechanism::Stretched);
        let is_long = target.delay > wait * TOO_MUCH || is_stretched;
        let can_fall = self.limit > model && self.limit > LEAST_STEP && !is_blocked;
        if is_long && can_fall && !is_off(Mechanism::StepDown) {
            let from = self.limit;
            self.phase = Phase::Cut(Step {
                from,
                before: point,
            });
            self.step_down((from * STEP_DOWN).max(model));
        } else if target.delay < wait * TOO_LITTLE
            && refused
            && !is_stretched
            && !is_off(Mechanism::StepUp)
        {
            let creep = (self.limit * CREEP_UP).max(self.limit + 1.0);
            let more = model.min(self.limit * STEP_UP);
            let is_slow = more < creep && !is_off(Mechanism::CreepUp);
            self.change(if is_slow { creep } else { more.max(self.limit) });
        }
    }

    fn end_cut(
        &mut self,
        measured: Sample,
        step: Step,
        after: Measurement,
        target: &HoldTarget,
    ) -> HoldFinding {
        let finding = judge(&step.before, &after);
        let is_untested = is_off(Mechanism::CutTest);
        match if is_untested { Finding::Queue } else { finding } {
            Finding::Queue => {
                self.phase = Phase::Settled { is_blocked: false };
                let is_contended =
                    after.carries_more_than(&step.before) && !is_off(Mechanism::Contended);
                if is_contended {
                    self.share = (self.share * CONTENDED).max(MIN_SHARE);
                }
                self.settle(&measured);
                self.follow(&measured, after, target, false);
                if is_contended {
                    HoldFinding::Nothing
                } else {
                    HoldFinding::Queue(Box::new(measured))
                }
            }
            Finding::Undecided if measured.span < TEST_PATIENCE => {
                self.measured = Some(measured);
                HoldFinding::Nothing
            }
            Finding::Slower if after.latency <= target.harmless && !is_off(Mechanism::Harmless) => {
                self.phase = Phase::Settled { is_blocked: false };
                self.change(step.from);
                HoldFinding::Slower(Box::new(measured))
            }
            Finding::Undecided | Finding::Slower => {
                let is_blocked = !is_off(Mechanism::StepBlock);
                self.phase = Phase::Settled { is_blocked };
                self.change(step.from);
                HoldFinding::Nothing
            }
        }
    }

    fn end_trial(
        &mut self,
        measured: Sample,
        step: Step,
        after: Measurement,
        target: &HoldTarget,
    ) -> HoldFinding {
        let is_up = self.limit > step.from;
        let finding = if is_up {
            judge(&after, &step.before)
        } else {
            judge(&step.before, &after)
        };
        if finding == Finding::Undecided && measured.span < TEST_PATIENCE {
            self.measured = Some(measured);
            return HoldFinding::Nothing;
        }
        self.phase = Phase::Settled { is_blocked: false };
        match finding {
            Finding::Queue => {
                self.votes = self.votes.saturating_sub(1);
                if is_up {
                    self.change(step.from);
                } else {
                    self.settle(&measured);
                }
                HoldFinding::Queue(Box::new(measured))
            }
            Finding::Undecided => {
                self.change(step.from);
                HoldFinding::Nothing
            }
            Finding::Slower => {
                self.change(step.from.max(self.limit));
                self.votes += 1;
                let is_harmless = after.latency <= target.harmless && !is_off(Mechanism::Harmless);
                let is_sure = is_harmless || target.in_doubt || self.votes >= VOTES;
                if is_sure || is_off(Mechanism::Votes) {
                    self.votes = 0;
                    return HoldFinding::Slower(Box::new(measured));
                }
                let is_blocked = !is_off(Mechanism::StepBlock);
                self.phase = Phase::Settled { is_blocked };
                HoldFinding::Nothing
            }
        }
    }

    /// Another limit: what was measured at the one before says nothing about it.
    fn change(&mut self, limit: f64) {
        self.limit = limit;
        self.settled = None;
        self.measured = None;
        self.settling = true;
    }
}

#[cfg(test)]
mod tests;
