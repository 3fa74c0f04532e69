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
//! Failures beside other requests that succeed as usual are no outage, so a trip also needs failures that [replace
//! successes](super::successes). So refusals because of a full queue do not open the breaker. Failures that load causes lower
//! the limit (the ceiling in `limit`).

use super::successes::Successes;
use super::thresholds::{OutcomeWeights, Thresholds};
use super::window::BucketOutcomes;
use crate::ablation::{Mechanism, is_off};
use crate::time::Instant;

/// The sum of evidence for an outage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OutageEvidence {
    score: f32,
    /// Since when failures are enough to trip, while successes come as usual.
    waiting_since: Option<Instant>,
}

impl OutageEvidence {
    /// Since when failures are enough to trip, and only silence is missing. A success of a request that was sent after that
    /// shows that only some requests fail.
    pub(crate) const fn waiting_since(&self) -> Option<Instant> {
        self.waiting_since
    }

    /// A success is evidence against an outage.
    pub(crate) fn success(&mut self, thresholds: &Thresholds) {
        if self.score <= 0.0 {
            return;
        }
        self.score += thresholds.weights.success;
        if self.score <= 0.0 {
            self.forget();
        }
    }

    /// A success turned out to be none: takes its evidence back.
    pub(crate) fn retract(&mut self, thresholds: &Thresholds) {
        self.score -= thresholds.weights.success;
    }

    /// A failure is evidence for an outage. Returns whether there is an outage; the evidence then starts over.
    pub(crate) fn failure(
        &mut self,
        thresholds: &Thresholds,
        successes: &Successes,
        now: Instant,
    ) -> bool {
        self.score += thresholds.weights.failure;
        self.decide(thresholds, successes, now)
    }

    /// The outcomes of a window, of which only the counts are known. Returns whether there is an outage. The order is unknown,
    /// so a window with the end of one phase and the beginning of another decides one window later than single outcomes
    /// would.
    #[expect(
        clippy::cast_precision_loss,
        reason = "six digits are plenty for a sum that is held against about 20"
    )]
    pub(crate) fn window(
        &mut self,
        outcomes: BucketOutcomes,
        thresholds: &Thresholds,
        successes: &Successes,
        now: Instant,
    ) -> bool {
        let OutcomeWeights { failure, success } = thresholds.weights;
        self.score += outcomes.failures as f32 * failure + outcomes.successes as f32 * success;
        if self.score <= 0.0 {
            self.forget();
            return false;
        }
        self.decide(thresholds, successes, now)
    }

    /// Whether there are enough failures, and they replace successes. Until then the sum stays at the mark.
    fn decide(&mut self, thresholds: &Thresholds, successes: &Successes, now: Instant) -> bool {
        if self.score < thresholds.trip {
            return false;
        }
        let waiting_since = *self.waiting_since.get_or_insert(now);
        if successes.are_replaced(waiting_since, now) {
            self.forget();
            return !is_off(Mechanism::TripTest);
        }
        self.score = thresholds.trip;
        false
    }

    /// The evidence starts over.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Successes for three seconds, none since, and now a failure.
    fn replaced() -> Successes {
        let mut successes = Successes::default();
        (0..30).for_each(|tenth| successes.succeed(at(tenth * 100)));
        successes.fail(1, at(60_000));
        successes
    }

    fn failures_to_trip(thresholds: &Thresholds) -> usize {
        let mut evidence = OutageEvidence::default();
        (1..100)
            .find(|_| evidence.failure(thresholds, &replaced(), at(60_000)))
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
    fn a_recovering_upstream_may_fail_more_often_than_before() {
        let usually_none = Thresholds::new(0.0, 300.0, 0.5);
        let mut rng = fastrand::Rng::with_seed(11);
        let mut ramp_fails = || {
            let mut evidence = OutageEvidence::default();
            (0..30).any(|_| {
                if rng.f64() < 0.3 {
                    evidence.failure(&usually_none, &replaced(), at(60_000))
                } else {
                    evidence.success(&usually_none);
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
        let mut evidence = OutageEvidence::default();
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..8 * 3600 * 24 {
            if rng.f64() < 0.1 {
                assert!(!evidence.failure(&thresholds, &replaced(), at(60_000)));
            } else {
                evidence.success(&thresholds);
            }
        }
    }

    /// Fails at `ms` milliseconds. Returns whether that trips.
    fn fails(evidence: &mut OutageEvidence, successes: &mut Successes, ms: u64) -> bool {
        let thresholds = Thresholds::new(0.0, 1_200.0, 0.5);
        successes.fail(1, at(ms));
        evidence.failure(&thresholds, successes, at(ms))
    }

    #[test]
    fn failures_beside_usual_successes_wait_until_they_replace_them() {
        let (mut evidence, mut successes) = (OutageEvidence::default(), Successes::default());
        for ms in 0..10_000 {
            if ms % 3 == 0 {
                successes.succeed(at(ms));
                evidence.success(&Thresholds::new(0.0, 1_200.0, 0.5));
            } else {
                assert!(!fails(&mut evidence, &mut successes, ms), "after {ms} ms");
            }
        }
        let trips = (10_000..).find(|ms| fails(&mut evidence, &mut successes, *ms));
        assert!(trips.unwrap() < 10_800, "all of them fail now");
    }

    #[test]
    fn failures_that_come_as_often_as_before_are_no_outage() {
        let (mut evidence, mut successes) = (OutageEvidence::default(), Successes::default());
        for ms in (0..60_000).step_by(25) {
            // A good request a second, and then none for half a minute.
            if ms % 1_000 == 0 && ms < 30_000 {
                successes.succeed(at(ms));
            }
            assert!(!fails(&mut evidence, &mut successes, ms), "after {ms} ms");
        }
    }
}
