//! The limit while a queue stands: what the upstream carries, and a wait that keeps it busy.
//!
//! The formula is that of every state, `limit = C (T + w)` (docs/laws/limit.md); here `w` is short.
//!
//! A slower service can look like a queue, so each step down is a test as well ([`judge`](super::queue_test::judge)). Below one request in
//! flight it is not: one proxy of many moves the common queue too little. There the limit only follows the delay between trials. Where a wrong
//! answer may harm the objective, all proxies make their trials at the same moments, on the beat of the wall clock. What the tests
//! ask, and why, is in docs/laws/queue-or-slower.md; a [`raise`] tests whether refusing helps at all, and a [`dip`] whether fewer
//! requests in flight achieve more. Hold also ends where [long latencies](long_latencies) are no queue. Where all callers leave before they get an answer, there is nothing to measure: any phase ends,
//! and the limit falls by half. A step that is taken back is marked `back`:
//!
//! ```text
//!    Entry --- queue or undecided ------------> Settled
//!      |  all callers fit, and slower so far
//!      +--------------------> no hold, this is the new floor
//!      |  slower: two votes
//!      +--------------------> Settled, no step until the beat
//!      |  without a sign of a queue: rather slower
//!      +--------------------> no hold, this is the new floor
//!
//!         delay > wait, or in flight
//!         > STRETCHED x C (T + w)          queue: go on
//!   Settled ------------------> Cut ------------------> Settled
//!      |                         |  more throughput: go on
//!      |                         +--------------------> Settled, half of the wait
//!      |                         |  slower, and harmless: back
//!      |                         +--------------------> Settled, this is the new floor
//!      |                         |  slower or undecided: back
//!      |                         +--------------------> Settled, no step until the beat
//!      |  on the beat
//!      +---------------------> Trial --queue--> Settled; a floor in doubt is replaced by this
//!      |                         |  slower, not often enough: back
//!      |                         +------------> Settled, no step until the beat
//!      |                         |  slower, harmless or often enough: back
//!      |                         +------------> Settled, this is the new floor
//!      |                         |  slower, and the floor was in doubt, or slower by far: back
//!      |                         +------------> no hold, this is the new floor
//!      |                         |  without a sign of a queue: rather slower
//!      |                         +------------> no hold, this is the new floor
//!      |                         |  undecided: back
//!      |                         +------------> Settled
//!      |  on every fourth beat
//!      +---------------------> Raise --all callers fit--> no hold
//!      |                         |  they do not: back
//!      |                         +------------> Settled
//!      |  latencies stay long, and the fast requests show no queue
//!      +---------------------> no hold, this is the new floor
//!      |  on some beats
//!      +---------------------> Dip --more throughput--> Settled, half of the wait
//!                                |  no more: back
//!                                +------------> Settled
//! ```

mod dip;
mod earlier;
mod follow;
mod long_latencies;
mod raise;
mod steps;
mod target;

use core::time::Duration;

use super::MAX_WINDOW;
use super::queue_test::{Finding, Measurement, judge};
use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;
use crate::units::Requests;

use dip::DipSchedule;
use earlier::Earlier;
use long_latencies::LongLatencies;
use raise::Raise;
pub(super) use steps::Step;
pub(super) use target::HoldTarget;

/// Answers that make one measurement; after [`PATIENCE`] fewer are enough.
const MEASURED: u64 = 40;
const PATIENCE: Duration = Duration::from_secs(2);
/// The same in mean latencies, where these are longer: for a measurement, and for a test.
const MEASURED_FOR: f64 = 2.0;
const TESTED_FOR: f64 = 6.0;
/// The fewest answers of one window that a trial of a floor in doubt is compared with.
const FEW: f64 = 4.0;
/// Trials are made whenever the clock passes a multiple of this.
pub(super) const BEAT: Duration = Duration::from_secs(4);
/// The largest step down, as a factor of the limit.
const STEP_DOWN: f64 = 0.75;
/// The deepest step down of a floor in doubt, or where all answers are late.
const DEEP_DOWN: f64 = 0.5;
/// The smallest step of a limit that is a number of places, and the smallest such limit, requests.
const LEAST_STEP: f64 = 1.0;
/// The smallest limit, requests.
const LEAST_LIMIT: f64 = 0.01;
/// With less than this share of the limit in flight on average, requests come in packs and reach the limit only at moments.
pub(super) const APP_LIMITED: f64 = 0.6;
/// The queue is over when in-flight stays below this share of the limit for this long.
const ROOM: f64 = 0.9;
const OVER_AFTER: Duration = Duration::from_millis(200);
/// The same in answers, if the limit takes longer to give so many. Where requests are rare, none comes for a while by chance, even if
/// more come than are answered: in the time of two answers one time in seven at the capacity, one in 400 at three times as much.
const OVER_AFTER_ANSWERS: f64 = 2.0;
/// The same below one request in flight, where grants are saved while no request comes.
const OVER_AFTER_GRANTS: f64 = 10.0;
/// Weight of a slower window in the latency by which requests are granted.
const LATENCY_WEIGHT: f64 = 0.5;

/// How long to measure for: `least`, or so many mean latencies of what was measured if that is longer.
fn patience(least: Duration, latencies: f64, measured: &Sample) -> Duration {
    let latency = measured.mean_latency().unwrap_or_default();
    let slow = Duration::try_from_secs_f64(latency * latencies).unwrap_or_default();
    least.max(slow)
}

/// What a window has shown.
#[derive(Clone, Debug)]
pub(super) enum HoldFinding {
    /// Nothing new.
    Nothing,
    /// There is a queue, so the throughput is the capacity. The sample was measured with the rest of the queue.
    Queue(Box<Sample>),
    /// Fewer requests in flight achieve more.
    Contended,
    /// There is no queue: the service is as slow as in this sample.
    Slower(Box<Sample>),
    /// There is room under the limit for all callers.
    Over,
    /// Hold began without a sign of a queue, and a test has shown none; or latencies stay long, and the fast requests show none. The
    /// service is as slow as in this sample.
    Unproven(Box<Sample>),
}

/// What the measurement under way is for.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It checks whether the wait is as wanted. After a failed step, no step down is made before the beat.
    Settled { is_blocked: bool },
    /// A step down was made.
    Cut(Step),
    /// Holding began with a step down.
    Entry(Step),
    /// A step on the beat, whose result counts.
    Trial(Step),
    /// A step up, to see whether fewer requests come.
    Raise(Raise),
    /// A step down, to see whether fewer requests in flight achieve more.
    Dip(Step),
}

/// The limit, and the measurement under way.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    limit: f64,
    phase: Phase,
    /// What was measured at this limit.
    settled: Option<Sample>,
    measured: Option<Sample>,
    /// Whether more may be in flight than the limit, so that nothing is measured yet.
    settling: bool,
    /// Requests from before the last step. Their answers come for longer: a step is measured with some of them, or tests would take too long.
    earlier: Earlier,
    votes: u32,
    /// Whether hold began without a sign of a queue, and no test has shown one yet.
    is_unproven: bool,
    /// The second of the common clock.
    second: u64,
    /// The mean latency of the last windows, of the newest if that was faster, seconds; 0 before the first answer.
    latency: f64,
    /// Since when nothing has been refused and there was room.
    calm_since: Option<Instant>,
    /// The limit before it was halved because all callers left; `None` if it was not, or since answers have
    /// brought it back.
    halved_from: Option<f64>,
    /// When dips are due.
    dips: DipSchedule,
    /// Latencies that stay long without a queue.
    long: LongLatencies,
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
            earlier: Earlier::Uncounted,
            votes: 0,
            is_unproven: false,
            second: 0,
            latency: 0.0,
            calm_since: None,
            halved_from: None,
            dips: DipSchedule::START,
            long: LongLatencies::NONE,
        }
    }

    /// Begins to hold at `limit`. The step down to it is a test.
    pub(super) fn enter(limit: f64, step: Option<Step>) -> Self {
        let test = step.filter(|step| limit < step.from && !is_off(Mechanism::EntryTest));
        Self {
            phase: test.map_or(Phase::Settled { is_blocked: false }, Phase::Entry),
            ..Self::at(limit)
        }
    }

    /// There is no sign of a queue: hold ends unless a test shows one.
    pub(super) const fn expect_proof(&mut self) {
        // Without a measurement from before there is nothing to test.
        self.is_unproven = matches!(self.phase, Phase::Entry(_));
    }

    /// Whether hold began without a sign of a queue, and no test has shown one yet.
    pub(super) const fn is_unproven(&self) -> bool {
        self.is_unproven
    }

    /// Whether answers may still be to requests from before the last step.
    pub(super) const fn has_earlier(&self) -> bool {
        !matches!(self.earlier, Earlier::Gone)
    }

    /// The same for the step with which hold began.
    pub(super) const fn is_entering(&self) -> bool {
        self.has_earlier() && matches!(self.phase, Phase::Entry(_))
    }

    /// Continues from the state of an earlier leader.
    pub(super) const fn resume(known: Requests) -> Self {
        Self::at(known.get())
    }

    /// The state for a successor.
    pub(super) const fn checkpoint(&self) -> Requests {
        Requests::new(self.limit)
    }

    /// The mean latency of the last windows, of the newest if that was faster, seconds; 0 before the first answer.
    pub(super) const fn latency(&self) -> f64 {
        self.latency
    }

    pub(super) const fn limit(&self) -> f64 {
        self.limit
    }

    /// Whether the limit is no number of places: requests are granted one by one.
    const fn is_below_one(&self) -> bool {
        self.limit < LEAST_STEP
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.limit *= factor;
        self.halved_from = None;
        self.phase = Phase::Settled { is_blocked: false };
        self.settled = None;
        self.measured = None;
    }

    /// Learns from one round. Returns whether the queue is gone: there was room under the limit for longer than a short lull.
    /// It looks at rounds, because a whole window is never calm where traffic comes in packs.
    pub(super) fn is_over(&mut self, round: &Sample, now: Instant) -> bool {
        let is_calm = round.tally.refused_for_load() == 0
            && f64::from(round.in_flight) < self.limit
            && (round.mean_in_flight() < self.limit * ROOM || is_off(Mechanism::ReliefShare));
        if !is_calm {
            self.calm_since = None;
            return false;
        }
        let since = *self.calm_since.get_or_insert(now);
        let is_long = now.saturating_since(since) >= self.over_after();
        // While requests are in flight from before hold began, room may be the gap that refusals left.
        let is_early = self.is_entering() && !is_off(Mechanism::EntryOver);
        (is_long || is_off(Mechanism::ReliefAfter)) && !is_early
    }

    /// What was measured so far of the test that hold began with, if it shows a slower service. Where answers take longer than a beat, those
    /// from before the step are to requests that met another load.
    pub(super) fn slower_since_entry(&self) -> Option<&Sample> {
        let Phase::Entry(step) = &self.phase else {
            return None;
        };
        let measured = self.measured.as_ref()?;
        let after = Measurement::of(measured)?;
        let is_slower = judge(&step.before, &after) == Finding::Slower;
        let is_soon = after.latency < BEAT.as_secs_f64();
        (is_slower && is_soon && !is_off(Mechanism::EntryOver)).then_some(measured)
    }

    /// How long there must be room. By Little's law, the limit gives one answer every latency / limit.
    fn over_after(&self) -> Duration {
        let answers = if self.is_below_one() {
            OVER_AFTER_GRANTS
        } else {
            OVER_AFTER_ANSWERS
        };
        let few = answers * self.latency / self.limit;
        OVER_AFTER.max(Duration::try_from_secs_f64(few).unwrap_or_default())
    }

    /// Learns the latency by which requests are granted.
    pub(super) fn learn_latency(&mut self, window: &Sample) {
        if let Some(latency) = window.mean_latency() {
            // A faster window counts in full: the queue is gone, and what was slow in it is past.
            let is_longer = self.latency > 0.0 && latency > self.latency;
            self.latency += (latency - self.latency) * if is_longer { LATENCY_WEIGHT } else { 1.0 };
        }
    }

    /// Learns from one window. `clock` is the same for all proxies that share the upstream. Each time it passes a multiple of
    /// `period` seconds, the floor is tested.
    pub(super) fn update(
        &mut self,
        window: &Sample,
        clock: Instant,
        period: Option<u64>,
        target: impl Fn(&Sample) -> HoldTarget,
    ) -> HoldFinding {
        self.learn_latency(window);
        self.earlier = self.earlier.after(window);
        if self.double_again(window, &target) {
            return HoldFinding::Nothing;
        }
        if let Some(measured) = self.long.add(window, clock, &target) {
            return HoldFinding::Unproven(measured);
        }
        let second = clock.saturating_since(Instant::ZERO).as_secs();
        let last = core::mem::replace(&mut self.second, second);
        let has_passed = |period: u64| last / period != second / period;
        let on_beat = has_passed(BEAT.as_secs());
        let on_test = period.is_some_and(has_passed);
        if (on_beat || on_test)
            && let Phase::Settled { is_blocked } = self.phase
        {
            let is_raise_due = has_passed(raise::PERIOD.as_secs());
            let needs_trial = is_blocked
                || on_test
                || self.votes > 0
                || self.is_unproven
                || is_raise_due && self.is_long_below_one(&target);
            let of_settled = self.settled.as_ref().map(&target);
            let target = target(window);
            // Where answers are rare, each window is longer than a second, and only the window itself can be compared.
            let seen = match &self.settled {
                None if target.in_doubt
                    && !self.settling
                    && window.count(Count::Answers) >= FEW =>
                {
                    Some(window)
                }
                settled => settled.as_ref(),
            };
            let is_refusing = window.tally.refused_for_load() > 0;
            let before = seen.and_then(Measurement::of);
            if needs_trial
                && is_refusing
                && let Some(before) = before
                && !is_off(Mechanism::Trial)
            {
                self.try_out(before, &target);
                return HoldFinding::Nothing;
            }
            let may_raise = is_raise_due && !needs_trial && is_refusing;
            if may_raise && self.begin_raise(&target) {
                return HoldFinding::Nothing;
            }
            let is_dip_due = self.dips.is_due(last, second);
            let may_dip = is_dip_due && !needs_trial && is_refusing;
            if may_dip
                && let (Some(before), Some(target)) = (before, of_settled)
                && self.begin_dip(before, &target)
            {
                return HoldFinding::Nothing;
            }
            // Until the limit is measured there is nothing to compare a trial with.
            let waits = is_blocked && is_refusing && before.is_none();
            self.phase = Phase::Settled { is_blocked: waits };
            // Windows before and after a beat must not be mixed in one measurement. Where answers are rare, and take longer than the window,
            // all of its answers are to requests from before the beat.
            let is_slow = window.span >= MAX_WINDOW
                && window.mean_latency() > Some(window.span.as_secs_f64());
            if !target.in_doubt && !is_slow {
                return HoldFinding::Nothing;
            }
        }
        if self.settling && !is_off(Mechanism::Settling) {
            // Requests that complete right after a step were admitted before it, and a queue takes time to drain.
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
        let has_few = measured.tally.latency.len() < MEASURED
            && measured.span < patience(PATIENCE, MEASURED_FOR, &measured);
        if has_few || self.is_cycle_open(&measured) {
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
                // While the floor is in doubt, only tests move the limit.
                if !target.in_doubt {
                    self.follow(&measured, point, &target, is_blocked);
                }
                HoldFinding::Nothing
            }
            Phase::Cut(step) => self.end_cut(measured, step, point, &target),
            Phase::Entry(step) => self.end_entry(measured, step, point),
            Phase::Trial(step) => self.end_trial(measured, step, point, &target),
            Phase::Dip(step) => self.end_dip(measured, step, point, &target),
            Phase::Raise(raise) => self.end_raise(measured, raise, &target),
        }
    }

    /// Whether the wait is too long, and steps of the limit are no tests because it is below one.
    fn is_long_below_one(&self, target: impl Fn(&Sample) -> HoldTarget) -> bool {
        let is_long = |settled| target(settled).is_long();
        self.is_below_one()
            && self.settled.as_ref().is_some_and(is_long)
            && !is_off(Mechanism::TrialBelowOne)
    }

    /// The limit after a step down to `to`, by at least one request: limits are whole numbers from one on, and a smaller step would be no
    /// test.
    fn lower(&self, to: f64) -> f64 {
        let whole = to.min(self.limit - LEAST_STEP);
        if whole >= LEAST_STEP || is_off(Mechanism::BelowOne) {
            whole.max(LEAST_STEP)
        } else {
            to.max(LEAST_LIMIT)
        }
    }

    /// Adds to the measurements at this limit. Returns all of them.
    fn settle(&mut self, measured: &Sample) -> Option<Measurement> {
        let settled = match self.settled.take() {
            Some(mut settled) if settled.span < patience(BEAT, TESTED_FOR, &settled) => {
                settled.extend(measured);
                settled
            }
            _ => measured.clone(),
        };
        Measurement::of(self.settled.insert(settled))
    }

    /// Changes the limit: measurements at the old one do not apply to it.
    fn change(&mut self, limit: f64) {
        self.limit = limit;
        self.settled = None;
        self.measured = None;
        self.settling = true;
        self.earlier = Earlier::Uncounted;
    }
}

#[cfg(test)]
mod tests;
