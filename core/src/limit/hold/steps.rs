//! Steps of the limit that are tests: how each begins and ends.

use core::time::Duration;

use super::{
    BEAT, DEEP_DOWN, Hold, HoldFinding, HoldTarget, LEAST_STEP, Phase, STEP_DOWN, TESTED_FOR,
    patience,
};
use crate::ablation::{Mechanism, is_off};
use crate::limit::queue_test::{Finding, Measurement, is_rather_a_queue, judge};
use crate::sample::Sample;

/// A test waits for at most this long.
pub(super) const TEST_PATIENCE: Duration = Duration::from_secs(4);
/// Where a slower service may cost the objective, tests that find one must outnumber the others by this many to be believed. One with
/// the deepest step counts for more.
const VOTES: u32 = 3;
const DEEP_VOTES: u32 = 2;

/// A step of the limit: down, except in some trials.
#[derive(Clone, Copy, Debug)]
pub(in crate::limit) struct Step {
    /// The limit before it.
    pub(in crate::limit) from: f64,
    /// What was measured at that limit.
    pub(in crate::limit) before: Measurement,
}

/// Whether a test is undecided, and more answers may still decide it.
fn needs_more(finding: Finding, measured: &Sample) -> bool {
    finding == Finding::Undecided && needs_time(measured)
}

/// Whether a test has been measured for less than it may take.
pub(super) fn needs_time(measured: &Sample) -> bool {
    measured.span < patience(TEST_PATIENCE, TESTED_FOR, measured)
}

impl Hold {
    /// Whether a test has been measured for less than one latency, or [`TEST_PATIENCE`] if that is shorter. A limit that is full
    /// starts requests in the rhythm in which earlier ones end: where all take about the same time, throughput rises and falls
    /// within each latency.
    pub(super) fn is_cycle_open(&self, measured: &Sample) -> bool {
        let is_test = !matches!(self.phase, Phase::Settled { .. });
        let cycle = patience(Duration::ZERO, 1.0, measured).min(TEST_PATIENCE);
        is_test && measured.span < cycle && !is_off(Mechanism::WholeCycles)
    }

    /// Begins a trial: a step down whose result counts. A test of a floor in doubt goes down to the model, but not too deep.
    /// If the limit is too small to fall, the step goes up: two requests compared with one show the same.
    pub(super) fn try_out(&mut self, before: Measurement, target: &HoldTarget) {
        let from = self.limit;
        self.phase = Phase::Trial(Step { from, before });
        if target.in_doubt && from < 2.0 * LEAST_STEP && !is_off(Mechanism::TrialUp) {
            self.change(from + LEAST_STEP.min(from));
            return;
        }
        let (step, deepest) = (from * STEP_DOWN, from * DEEP_DOWN);
        let to = if self.is_below_one() && !is_off(Mechanism::TrialBelowOne) {
            // Few answers show the result of a deep step only.
            deepest
        } else if target.in_doubt || before.latency > target.objective {
            step.min(target.model()).max(deepest)
        } else {
            step
        };
        let lower = self.lower(to);
        self.change(lower);
    }

    pub(super) fn end_cut(
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
                self.settle(&measured);
                if after.carries_more_than(&step.before) && !is_off(Mechanism::Contended) {
                    self.follow(&measured, after, &target.shortened(), false);
                    HoldFinding::Contended
                } else {
                    self.follow(&measured, after, target, false);
                    HoldFinding::Queue(Box::new(measured))
                }
            }
            Finding::Undecided if needs_more(finding, &measured) => {
                self.measured = Some(measured);
                HoldFinding::Nothing
            }
            Finding::Slower if after.latency <= target.harmless && !is_off(Mechanism::Harmless) => {
                self.phase = Phase::Settled { is_blocked: false };
                self.change(step.from);
                HoldFinding::Slower(Box::new(measured))
            }
            Finding::Undecided | Finding::Slower => {
                // A cut is no trial, because other proxies may fill the queue up. One that takes longer than a beat has the trials of the
                // others in it.
                if finding == Finding::Slower && measured.span >= BEAT {
                    self.votes += self.weight(step);
                }
                let is_blocked = !is_off(Mechanism::StepBlock);
                self.phase = Phase::Settled { is_blocked };
                self.change(step.from);
                HoldFinding::Nothing
            }
        }
    }

    /// Ends the test that holding began with. It is not on the beat, and other proxies may fill a queue up again. So a slower service
    /// counts for as much as a deep trial, and only the next trial can make sure.
    pub(super) fn end_entry(
        &mut self,
        measured: Sample,
        step: Step,
        after: Measurement,
    ) -> HoldFinding {
        let finding = judge(&step.before, &after);
        if needs_more(finding, &measured) {
            self.measured = Some(measured);
            return HoldFinding::Nothing;
        }
        if self.is_unproven {
            self.settle(&measured);
            let is_rather = is_rather_a_queue(&step.before, &after);
            return self.prove(measured, finding, is_rather);
        }
        let is_slower = finding == Finding::Slower;
        if is_slower {
            self.votes = DEEP_VOTES;
        }
        self.phase = Phase::Settled {
            is_blocked: is_slower && !is_off(Mechanism::StepBlock),
        };
        self.settle(&measured);
        HoldFinding::Nothing
    }

    pub(super) fn end_trial(
        &mut self,
        measured: Sample,
        step: Step,
        after: Measurement,
        target: &HoldTarget,
    ) -> HoldFinding {
        let is_up = self.limit > step.from;
        let (high, low) = if is_up {
            (&after, &step.before)
        } else {
            (&step.before, &after)
        };
        let finding = judge(high, low);
        if needs_more(finding, &measured) {
            self.measured = Some(measured);
            return HoldFinding::Nothing;
        }
        if self.is_unproven {
            let is_rather = is_rather_a_queue(high, low);
            self.change(step.from);
            return self.prove(measured, finding, is_rather);
        }
        self.phase = Phase::Settled { is_blocked: false };
        match finding {
            Finding::Queue => {
                self.votes = self.votes.saturating_sub(1);
                // A service that became faster in the trial looks like a queue, too. The next trial is compared with new measurements.
                if is_up {
                    self.change(step.from);
                }
                HoldFinding::Queue(Box::new(measured))
            }
            Finding::Undecided => {
                self.change(step.from);
                HoldFinding::Nothing
            }
            Finding::Slower => {
                self.votes += self.weight(step);
                self.change(step.from.max(self.limit));
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

    /// Ends a test of a hold that began without a sign of a queue. The burden of proof is on the queue.
    fn prove(
        &mut self,
        measured: Sample,
        finding: Finding,
        is_rather_a_queue: bool,
    ) -> HoldFinding {
        self.phase = Phase::Settled { is_blocked: false };
        match finding {
            Finding::Queue => {
                self.is_unproven = false;
                HoldFinding::Queue(Box::new(measured))
            }
            Finding::Undecided if is_rather_a_queue => HoldFinding::Nothing,
            Finding::Undecided | Finding::Slower => HoldFinding::Unproven(Box::new(measured)),
        }
    }

    /// How many votes the step in force counts for: a deep one shows more.
    fn weight(&self, step: Step) -> u32 {
        let is_deep = self.limit <= step.from * DEEP_DOWN;
        if is_deep { DEEP_VOTES } else { 1 }
    }
}
