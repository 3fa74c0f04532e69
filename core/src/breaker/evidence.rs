//! When is a run of failures an outage?
//!
//! A fixed count is wrong at every rate but one: five failures in a row are an outage at 10 requests a second
//! and an ordinary minute at 10,000 with 10 % errors. This is Page's CUSUM of log-likelihood ratios (E. S. Page,
//! "Continuous Inspection Schemes", Biometrika 1954), which decides between "as usual" and "dead" with as few
//! outcomes as the evidence allows:
//!
//! - every failure adds `ln(p_dead / p_usual)`, every success adds `ln((1 - p_dead) / (1 - p_usual))` (negative),
//!   and the sum never falls below zero;
//! - `p_usual` is the upstream's own failure rate as learned, with a margin: an upstream that always fails a
//!   little needs more evidence;
//! - the sum trips at `ln(outcomes in a day)`: about one false alarm a day at most, whatever the rate.
//!
//! With hardly any failures before, eight in a row trip at 300 requests a second, seven at 10.
//!
//! A failure at a load that nobody has survived lately says little about death: a full queue refuses at once what a
//! shorter one would have served. It weighs a quarter. In a real outage the load falls by itself, as nothing takes
//! time any more, and failures soon weigh in full.
//!
//! Failures that leave the successes of other requests alone are no outage either: what trips also needs
//! [silence](super::silence).
//!
//! Failures that come *because of* load must lower the limit, not open the breaker. They betray themselves: the
//! failed requests were admitted at higher load than the successful ones (a full queue refuses, a short one does
//! not), while a dead upstream fails at any load.

use super::silence::Silence;
use super::thresholds::Thresholds;
use crate::ablation::{Mechanism, is_off};
use crate::time::Instant;

/// An outage shows hardly any success. A sum that got high with more of them is a matter of the success rate.
const MIN_OUTAGE_SHARE: f64 = 0.8;
/// Whatever upstream it is, a few requests at a time it must bear.
const SURELY_SURVIVED: f32 = 4.0;
/// What a failure at a load that nobody survived weighs.
const UNSURVIVED_WEIGHT: f32 = 0.25;
/// How fast the survived load is forgotten, by success.
const SURVIVED_MEMORY: f32 = 0.99;
/// Near the highest load survived, luck decides; well below it, a failure needs another reason.
const SAFELY: f64 = 0.75;
/// Too few of either kind tell nothing about load.
const MIN_PER_SIDE: f64 = 5.0;
/// How many standard errors apart the loads must be (one-sided, 1 in 740 by chance).
const LOAD_SIGNIFICANCE: f64 = 3.0;
/// And how much apart, for a difference that matters.
const MIN_LOAD_RATIO: f64 = 1.03;

/// Sums of the loads at which requests of one kind were admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Loads {
    pub(crate) n: f64,
    pub(crate) sum: f64,
    pub(crate) squares: f64,
}

impl Loads {
    fn add(&mut self, load: u32) {
        let load = f64::from(load);
        self.n += 1.0;
        self.sum += load;
        self.squares += load * load;
    }

    /// Takes back what [`Loads::add`] counted, where there is something.
    fn remove(&mut self, load: u32) {
        let load = f64::from(load);
        self.n = (self.n - 1.0).max(0.0);
        self.sum = (self.sum - load).max(0.0);
        self.squares = (self.squares - load * load).max(0.0);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The mean load, or zero when there is none.
    pub(crate) fn mean(&self) -> f64 {
        if self.n > 0.0 { self.sum / self.n } else { 0.0 }
    }

    pub(crate) fn variance_of_mean(&self) -> f64 {
        if self.n > 1.0 {
            let mean = self.mean();
            ((self.squares / self.n - mean * mean).max(0.0) + 1.0 / 12.0) / self.n
        } else {
            f64::MAX
        }
    }
}

/// The loads of one window's outcomes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowLoads {
    pub(crate) successes: Loads,
    pub(crate) failures: Loads,
}

/// Whether failures come with load: Welch's t-test on the loads at admission (B. L. Welch, Biometrika 1947).
pub(crate) fn is_caused_by_load(failures: &Loads, successes: &Loads) -> bool {
    if failures.n < MIN_PER_SIDE || successes.n < MIN_PER_SIDE {
        return false;
    }
    let error = (failures.variance_of_mean() + successes.variance_of_mean()).sqrt();
    let difference = failures.mean() - successes.mean();
    difference > LOAD_SIGNIFICANCE * error && failures.mean() > MIN_LOAD_RATIO * successes.mean()
}

/// The sum of evidence for an outage, and the loads behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evidence {
    score: f32,
    /// The highest load at which requests succeeded lately.
    survived: f32,
    failures: Loads,
    successes: Loads,
    /// Since when failures are enough to trip, and only silence is missing.
    waiting_since: Option<Instant>,
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            score: 0.0,
            survived: SURELY_SURVIVED,
            failures: Loads::default(),
            successes: Loads::default(),
            waiting_since: None,
        }
    }
}

/// What the evidence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Not enough to say.
    Undecided,
    /// Dead.
    Outage,
    /// Failing because of load: fewer requests help, none do not.
    LoadCaused,
}

impl Evidence {
    /// Since when failures are enough to trip, and only silence is missing. A success of a request that was sent later
    /// shows that some requests fail and others do not.
    pub(crate) const fn waiting_since(&self) -> Option<Instant> {
        self.waiting_since
    }

    /// A success: speaks against an outage.
    pub(crate) fn success(&mut self, load: u32, thresholds: &Thresholds) {
        self.survive(f64::from(load), SURVIVED_MEMORY);
        if self.score <= 0.0 {
            return;
        }
        self.score += thresholds.weights.success;
        if self.score <= 0.0 {
            self.forget();
        } else {
            self.successes.add(load);
        }
    }

    /// A success that turned out to be none: takes back what it said.
    pub(crate) fn retract(&mut self, load: u32, thresholds: &Thresholds) {
        self.score -= thresholds.weights.success;
        self.successes.remove(load);
    }

    /// A failure: speaks for one. Once it is decided, the evidence starts anew.
    pub(crate) fn failure(
        &mut self,
        load: u32,
        thresholds: &Thresholds,
        silence: &Silence,
        now: Instant,
    ) -> Finding {
        self.failures.add(load);
        self.score += thresholds.weights.failure * self.weight(f64::from(load));
        if self.score < thresholds.trip {
            return Finding::Undecided;
        }
        self.decide_in(silence, thresholds, now)
    }

    /// A window's worth of outcomes of which only the sums are known. Their order is lost, so a window that
    /// holds both an end and a beginning decides one window later than single outcomes would.
    pub(crate) fn window(
        &mut self,
        WindowLoads {
            successes,
            failures,
        }: WindowLoads,
        thresholds: &Thresholds,
        silence: &Silence,
        now: Instant,
    ) -> Finding {
        if successes.n > 0.0 {
            #[expect(clippy::cast_possible_truncation, reason = "six digits are plenty")]
            let count = successes.n as f32;
            // Only sums are known: the mean stands for what is surely survived.
            self.survive(successes.mean(), libm::powf(SURVIVED_MEMORY, count));
        }
        let failure_weight = f64::from(thresholds.weights.failure * self.weight(failures.mean()));
        let weight =
            failures.n * failure_weight + successes.n * f64::from(thresholds.weights.success);
        let score = f64::from(self.score) + weight;
        if score <= 0.0 {
            self.forget();
            return Finding::Undecided;
        }
        self.successes.merge(&successes);
        self.failures.merge(&failures);
        if score < f64::from(thresholds.trip) {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "below the trip threshold, about 20"
            )]
            let small = score as f32;
            self.score = small;
            return Finding::Undecided;
        }
        self.decide_in(silence, thresholds, now)
    }

    /// Failures are enough to trip. While successes come as usual the sum waits there.
    fn decide_in(&mut self, silence: &Silence, thresholds: &Thresholds, now: Instant) -> Finding {
        if silence.is_unusual(now) || is_off(Mechanism::Silence) {
            return self.decide();
        }
        self.score = thresholds.trip;
        self.waiting_since.get_or_insert(now);
        Finding::Undecided
    }

    fn decide(&mut self) -> Finding {
        let is_mixed = self.failures.n < MIN_OUTAGE_SHARE * (self.failures.n + self.successes.n);
        if is_mixed && !is_off(Mechanism::OutageShare) || is_off(Mechanism::TripTest) {
            self.forget();
            return Finding::Undecided;
        }
        let finding = if is_caused_by_load(&self.failures, &self.successes)
            && !is_off(Mechanism::LoadCausedTrip)
        {
            Finding::LoadCaused
        } else {
            Finding::Outage
        };
        self.forget();
        finding
    }

    /// The evidence starts anew; what was survived stays true.
    pub(super) fn forget(&mut self) {
        *self = Self {
            survived: self.survived,
            ..Self::default()
        };
    }

    /// Something was survived at `load`; what was known before counts `memory` of itself.
    fn survive(&mut self, load: f64, memory: f32) {
        #[expect(clippy::cast_possible_truncation, reason = "six digits are plenty")]
        let load = load as f32;
        self.survived = load.max(self.survived * memory).max(SURELY_SURVIVED);
    }

    fn weight(&self, load: f64) -> f32 {
        if load > f64::from(self.survived) * SAFELY && !is_off(Mechanism::Unsurvived) {
            UNSURVIVED_WEIGHT
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures_to_trip(thresholds: &Thresholds) -> usize {
        let mut evidence = Evidence::default();
        (1..100)
            .find(|_| {
                evidence.failure(3, thresholds, &Silence::default(), Instant::ZERO)
                    == Finding::Outage
            })
            .unwrap()
    }

    #[test]
    fn an_outage_trips_after_a_handful_at_any_rate() {
        let handful = |rate| failures_to_trip(&Thresholds::new(0.0, rate, 0.5));
        assert_eq!(
            (handful(10.0), handful(300.0), handful(100_000.0)),
            (7, 8, 11)
        );
    }

    #[test]
    fn a_failing_upstream_needs_more_evidence() {
        assert!(failures_to_trip(&Thresholds::new(0.3, 300.0, 0.5)) >= 15);
    }

    #[test]
    fn what_comes_back_may_fail_more_often_than_ever() {
        // Two failures in a row were enough: a service that came back with 30 % errors was never let in again.
        let in_ramp = Thresholds::new(0.0, 300.0, 0.5).in_ramp();
        assert_eq!(failures_to_trip(&in_ramp), 5);
        let mut rng = fastrand::Rng::with_seed(11);
        let mut ramp_fails = || {
            let mut evidence = Evidence::default();
            (0..30).any(|_| {
                if rng.f64() < 0.3 {
                    evidence.failure(3, &in_ramp, &Silence::default(), Instant::ZERO)
                        == Finding::Outage
                } else {
                    evidence.success(3, &in_ramp);
                    false
                }
            })
        };
        let failed = (0..1_000).filter(|_| ramp_fails()).count();
        assert!(failed < 80, "{failed} of 1000 ramps");
    }

    #[test]
    fn a_trickle_with_some_errors_never_trips() {
        let thresholds = Thresholds::new(0.1, 8.0, 0.5);
        let mut evidence = Evidence::default();
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..8 * 3600 * 24 {
            if rng.f64() < 0.1 {
                assert_eq!(
                    evidence.failure(1, &thresholds, &Silence::default(), Instant::ZERO),
                    Finding::Undecided
                );
            } else {
                evidence.success(1, &thresholds);
            }
        }
    }

    #[test]
    fn refusals_of_a_full_queue_are_no_outage() {
        let thresholds = Thresholds::new(0.0, 1200.0, 0.5);
        let mut evidence = Evidence::default();
        for i in 0..10_000 {
            if i % 3 == 0 {
                evidence.success(20 + i % 7, &thresholds);
            } else {
                assert_ne!(
                    evidence.failure(33, &thresholds, &Silence::default(), Instant::ZERO),
                    Finding::Outage
                );
            }
        }
    }

    #[test]
    fn load_and_failures_that_come_together_are_told_from_those_that_do_not() {
        let loads = |range: core::ops::Range<u32>| {
            range.fold(Loads::default(), |mut loads, load| {
                loads.add(load);
                loads
            })
        };
        assert!(is_caused_by_load(&loads(30..40), &loads(10..30)));
        assert!(!is_caused_by_load(&loads(10..30), &loads(10..30)));
        assert!(
            !is_caused_by_load(&loads(1..5), &loads(10..30)),
            "an outage empties the proxy"
        );
        assert!(
            !is_caused_by_load(&loads(30..33), &loads(10..30)),
            "three failures tell nothing"
        );
    }
}
