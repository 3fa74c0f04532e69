//! A ceiling from failures that load causes.
//!
//! An upstream that refuses requests when its queue is full, or fails under load, shows where its bound is: failed
//! requests were admitted at higher load than successful ones. The ceiling is set just below that load and rises
//! again slowly, as TCP does after a loss. "Too busy" answers (429, RESOURCE_EXHAUSTED, 503 with Retry-After) count as
//! failures here and nothing more: a service gives them to a caller beyond its quota at any load.
//!
//! The correlation can be chance, or load can rise while something else breaks. So the correlation must show in several
//! windows in a row, and a new ceiling is on trial: unless failures become rarer under it, it is removed, and the next
//! suspicion has to wait. It is removed as well if successes become rarer. A caller over its quota sends in packs, so its
//! failures meet more in flight than the successes of others do, and a ceiling makes them rarer. But it sheds as many requests
//! of the others. Shedding that does not help must end.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ablation::{Mechanism, is_off};
use crate::loads::{Loads, is_caused_by_load};
use crate::sample::Sample;
use crate::tally::Count;
use crate::time::Instant;
use crate::units::Requests;

/// Just below the load at which requests failed.
const BELOW_FAILURES: f64 = 0.9;
/// Windows in a row that must show the correlation.
const CONFIRMATIONS: u32 = 3;
/// One window of evidence; also the time a cut gets to show.
const WINDOW: Duration = Duration::from_millis(300);
/// A cut helps when failures become rarer by this factor, ...
const HELPED: f64 = 0.7;
/// ... and by more than this many standard deviations of a Poisson count (and of a mean load), ...
const CHANCE: f64 = 1.75;
/// ... judged once this many failures would be expected if nothing had changed.
const ENOUGH: f64 = 20.0;
/// A cut costs successes when they become rarer by this factor, and by more than chance, ...
const COST: f64 = 0.95;
/// ... judged once it has lasted this many times as long as the suspicion took. Until then it stays.
const PATIENCE: f64 = 2.0;
/// After this long without load-caused failures the ceiling rises.
const QUIET: Duration = Duration::from_secs(1);
/// How fast, a second.
const RISE: f64 = 0.1;
/// How long a refuted suspicion delays the next one, at first and at most.
const FIRST_DOUBT: Duration = Duration::from_secs(5);
const LONGEST_DOUBT: Duration = Duration::from_secs(60);

/// The state of a ceiling that a successor starts from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CeilingCheckpoint {
    /// The most requests in flight.
    pub limit: Requests,
    /// Whether failures became rarer under it.
    pub is_proven: bool,
}

/// The ceiling, while there is one, and the evidence of the window under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ceiling {
    value: Option<f64>,
    /// The ceiling has reduced failures once. From then on it follows the bound without a trial.
    proven: bool,
    evidence: Evidence,
    /// Made by the first window that shows the correlation. Most upstreams never have one.
    suspicion: Option<Box<Suspicion>>,
}

/// What follows from windows that have shown the correlation.
#[derive(Clone, Debug, Default)]
struct Suspicion {
    /// How many in a row have, and their outcomes.
    confirmations: u32,
    suspected: Outcomes,
    /// The cut that has yet to prove itself.
    trial: Option<Trial>,
    /// When the last cut was.
    failed_at: Instant,
    doubted_until: Instant,
    doubt: Duration,
}

#[derive(Clone, Debug, Default)]
struct Evidence {
    since: Option<Instant>,
    successes: Loads,
    failures: Loads,
    /// Request-seconds in flight, and seconds.
    in_flight: f64,
    span: f64,
    /// Requests that asked for admission.
    arrived: f64,
}

impl Evidence {
    fn outcomes(&self) -> Outcomes {
        Outcomes {
            all: self.failures.n + self.successes.n,
            failed: self.failures.n,
            arrived: self.arrived,
            span: self.span,
        }
    }

    /// Whether failures come with load. While load rises, a fast answer belongs to a request that was admitted at a higher
    /// load than that of a slow answer. So failed requests must also have met more in flight than the average.
    fn blames_load(&self) -> bool {
        let usual = self.in_flight / self.span;
        let error = self.failures.variance_of_mean().sqrt();
        is_caused_by_load(&self.failures, &self.successes)
            && self.failures.mean() - usual > CHANCE * error
    }
}

/// How many requests ended, how many of them failed, and how many asked for admission in how many seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Outcomes {
    all: f64,
    failed: f64,
    arrived: f64,
    span: f64,
}

impl Outcomes {
    fn add(&mut self, more: Self) {
        self.all += more.all;
        self.failed += more.failed;
        self.arrived += more.arrived;
        self.span += more.span;
    }

    fn succeeded(self) -> f64 {
        self.all - self.failed
    }

    /// 0..=1.
    fn failure_share(self) -> f64 {
        self.failed / self.all.max(1.0)
    }
}

/// The outcomes before a cut, and after it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    before: Outcomes,
    after: Outcomes,
}

impl Trial {
    /// Whether the cut helps: failures have become rarer, and successes have not. `None` while there are too few to tell.
    fn verdict(&self) -> Option<bool> {
        let Self { before, after } = *self;
        let expected = before.failure_share() * after.all;
        // Both counts vary by chance.
        let error = (expected * (1.0 + after.all / before.all.max(1.0))).sqrt();
        let is_rarer =
            after.failed <= expected * HELPED && expected - after.failed > CHANCE * error;
        if expected < ENOUGH {
            None
        } else if is_rarer {
            (after.span >= before.span * PATIENCE).then(|| !self.costs_successes())
        } else {
            Some(false)
        }
    }

    /// Whether there are fewer successes than before, both in a second and of the requests that ask: more or fewer callers
    /// change only one of the two.
    fn costs_successes(&self) -> bool {
        let Self { before, after } = *self;
        let is_fewer = |before_size: f64, after_size: f64| {
            let ratio = after_size / before_size.max(f64::MIN_POSITIVE);
            let expected = before.succeeded() * ratio;
            let error = (expected * (1.0 + ratio)).sqrt();
            after.succeeded() < expected * COST - CHANCE * error
        };
        is_fewer(before.span, after.span) && is_fewer(before.arrived, after.arrived)
    }
}

impl Suspicion {
    /// The next window is the first of a row.
    fn restart(&mut self) {
        self.confirmations = 0;
        self.suspected = Outcomes::default();
    }
}

impl Ceiling {
    /// Continues from the state of an earlier leader. A ceiling that was on trial gets a new trial at the next window that
    /// shows the correlation.
    pub(super) fn resume(known: Option<CeilingCheckpoint>) -> Self {
        Self {
            value: known.map(|ceiling| ceiling.limit.get()),
            proven: known.is_some_and(|ceiling| ceiling.is_proven),
            ..Self::default()
        }
    }

    /// What a successor needs.
    pub(super) fn checkpoint(&self) -> Option<CeilingCheckpoint> {
        self.value.map(|value| CeilingCheckpoint {
            limit: Requests::new(value),
            is_proven: self.proven,
        })
    }

    /// One round. `wanted` is the limit without a ceiling; a share of failures up to `tolerated` is within the
    /// objective and no reason to shed.
    pub(crate) fn update(&mut self, sample: &Sample, wanted: f64, tolerated: f64, now: Instant) {
        let evidence = &mut self.evidence;
        let since = *evidence.since.get_or_insert(now);
        evidence.successes.merge(&sample.success_loads());
        evidence.failures.merge(&sample.failure_loads());
        // The load at admission counts uploads, too.
        let in_flight = sample.mean_in_flight() + f64::from(sample.uploading);
        evidence.in_flight += in_flight * sample.span.as_secs_f64();
        evidence.span += sample.span.as_secs_f64();
        evidence.arrived += sample.count(Count::Arrivals);
        if now.saturating_since(since) >= WINDOW {
            let evidence = core::mem::take(&mut self.evidence);
            self.judge(&evidence, tolerated, now);
        }
        self.rise(sample, wanted, now);
    }

    /// Whether load makes requests fail.
    pub(crate) const fn is_in_force(&self) -> bool {
        self.value.is_some()
    }

    /// `limit`, but not above the ceiling.
    pub(crate) fn hold(&self, limit: f64) -> f64 {
        self.value.map_or(limit, |value| limit.min(value))
    }

    pub(crate) fn scale(&mut self, factor: f64) {
        self.value = self.value.map(|value| value * factor);
    }

    fn judge(&mut self, evidence: &Evidence, tolerated: f64, now: Instant) {
        let outcomes = evidence.outcomes();
        self.judge_trial(outcomes, now);
        let within_objective = outcomes.failure_share() <= tolerated
            && !(outcomes.failed > 0.0 && is_off(Mechanism::CeilingTolerance));
        let is_doubted = |suspicion: &Suspicion| now < suspicion.doubted_until;
        if self.suspicion.as_deref().is_some_and(is_doubted)
            || within_objective
            || !evidence.blames_load()
        {
            if let Some(suspicion) = &mut self.suspicion {
                suspicion.restart();
            }
            return;
        }
        let suspicion = self.suspicion.get_or_insert_default();
        suspicion.confirmations += 1;
        suspicion.suspected.add(outcomes);
        if suspicion.confirmations >= CONFIRMATIONS
            || self.value.is_some()
            || is_off(Mechanism::CeilingConfirmations)
        {
            // A proven ceiling that rose until the first requests failed has found the bound again. These are too few
            // failures to tell whether they became rarer.
            if !self.proven && suspicion.trial.is_none() && !is_off(Mechanism::CeilingTrial) {
                suspicion.trial = Some(Trial {
                    before: suspicion.suspected,
                    after: Outcomes::default(),
                });
            }
            if !is_off(Mechanism::Ceiling) {
                let load = evidence.failures.mean() * BELOW_FAILURES;
                suspicion.failed_at = now;
                suspicion.restart();
                self.value = Some(self.value.map_or(load, |value| load.min(value)).max(1.0));
            }
        }
    }

    /// Adds the outcomes of a window to the trial of a cut, if there is one, and judges the cut.
    fn judge_trial(&mut self, outcomes: Outcomes, now: Instant) {
        let Some(suspicion) = &mut self.suspicion else {
            return;
        };
        let Some(trial) = &mut suspicion.trial else {
            return;
        };
        trial.after.add(outcomes);
        if let Some(is_rarer) = trial.verdict() {
            suspicion.trial = None;
            self.proven = is_rarer;
            if !is_rarer {
                self.value = None;
                suspicion.doubt = (suspicion.doubt * 2).clamp(FIRST_DOUBT, LONGEST_DOUBT);
                suspicion.doubted_until = now + suspicion.doubt;
            }
        }
    }

    fn rise(&mut self, sample: &Sample, wanted: f64, now: Instant) {
        let suspicion = self.suspicion.as_deref();
        let failed_at = suspicion.map_or(Instant::ZERO, |it| it.failed_at);
        if let Some(value) = self.value
            && now.saturating_since(failed_at) >= QUIET
        {
            let risen = value + (value * RISE).max(1.0) * sample.span.as_secs_f64();
            self.value = (risen < wanted).then_some(risen);
            if self.value.is_none() {
                self.proven = false;
                if let Some(suspicion) = &mut self.suspicion {
                    suspicion.trial = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
