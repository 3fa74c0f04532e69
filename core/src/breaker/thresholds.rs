//! The weights of outcomes in the [trip test](super::evidence), and its threshold.
//!
//! Logarithms are expensive on the path of a request, so they are computed here: when the leader has decided, and when the
//! policy changes. Those of an upstream that seldom fails, or has hardly any requests, are constants: most upstreams are so.

use crate::ablation::{Mechanism, is_off};

/// A dead upstream fails at least this share.
const DEAD_FAILURE_RATE: f64 = 0.95;
/// The least usual failure rate that counts: a few failures in a row can happen to any upstream.
const MIN_USUAL_FAILURE_RATE: f64 = 0.1;
/// The failure rate of an unknown upstream: it may be one that fails often.
pub(crate) const FIRST_FAILURE_RATE: f64 = 0.3;
/// Margin on the learned rate: it is an average over a time that may have been better than now.
const USUAL_MARGIN: f64 = 1.5;
/// The usual rate stays below this part of the trip ratio, or nothing would ever be unusual.
const MAX_USUAL_OF_TRIP_RATIO: f64 = 0.8;
/// False alarms are counted per day.
const SECONDS_PER_DAY: f64 = 86_400.0;
/// The sum that trips an upstream with at most one outcome a second.
const LEAST_TRIP: f32 = 11.366_743;
/// All probes of a recovered upstream fail by chance at most this often: the probes may be requests of callers whose requests
/// always fail.
const PROBES_LIE: f64 = 0.05;
/// The most probes of one half-open.
const MOST_PROBES: u32 = 5;

/// The weights of outcomes, and the threshold of the trip test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thresholds {
    pub(super) weights: OutcomeWeights,
    /// The sum that trips.
    pub(super) trip: f32,
    /// How many probes must fail before the upstream counts as still down, at least 1.
    pub(crate) probes: u32,
}

/// What one outcome adds to the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OutcomeWeights {
    /// Positive: evidence for an outage.
    pub(super) failure: f32,
    /// Negative.
    pub(super) success: f32,
}

impl OutcomeWeights {
    /// Those against [`MIN_USUAL_FAILURE_RATE`].
    const OF_RARE_FAILURES: Self = Self {
        failure: 2.251_291_8,
        success: -2.890_371_8,
    };

    /// The weights that tell a dead upstream from one with a failure rate of `usual`.
    fn against(usual: f64) -> Self {
        if usual <= MIN_USUAL_FAILURE_RATE {
            return Self::OF_RARE_FAILURES;
        }
        Self::computed(usual)
    }

    /// The same, for any rate.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "logarithms of small numbers"
    )]
    fn computed(usual: f64) -> Self {
        let usual = usual.min(DEAD_FAILURE_RATE - 0.05);
        Self {
            failure: libm::log(DEAD_FAILURE_RATE / usual) as f32,
            success: libm::log((1.0 - DEAD_FAILURE_RATE) / (1.0 - usual)) as f32,
        }
    }
}

impl Thresholds {
    /// For an upstream that usually fails `failure_rate` (0..=1) of `rate` outcomes a second.
    pub(crate) fn new(failure_rate: f64, rate: f64, trip_ratio: f64) -> Self {
        let highest = (trip_ratio * MAX_USUAL_OF_TRIP_RATIO).max(MIN_USUAL_FAILURE_RATE);
        let usual = (failure_rate * USUAL_MARGIN)
            .max(MIN_USUAL_FAILURE_RATE)
            .min(highest);
        Self {
            weights: OutcomeWeights::against(usual),
            trip: trip(rate),
            probes: probes(failure_rate),
        }
    }

    /// For another rate of outcomes, where as many usually fail as before.
    pub(crate) fn follow_rate(&mut self, rate: f64) {
        self.trip = trip(rate);
    }
}

/// The sum that trips an upstream with `rate` outcomes a second, or one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the logarithm of a day's outcomes"
)]
fn trip(rate: f64) -> f32 {
    if rate <= 1.0 {
        return LEAST_TRIP;
    }
    libm::log(rate.max(1.0) * SECONDS_PER_DAY) as f32
}

/// How many probes decide for an upstream that usually fails `failure_rate` (0..=1) of its outcomes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped between 1 and a few; NaN becomes 1"
)]
pub(super) fn probes(failure_rate: f64) -> u32 {
    if is_off(Mechanism::ProbeCount) {
        return 1;
    }
    if failure_rate <= PROBES_LIE {
        return 1;
    }
    let enough = libm::log(PROBES_LIE) / libm::log(failure_rate.clamp(PROBES_LIE, 0.95));
    (enough.ceil() as u32).clamp(1, MOST_PROBES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_what_would_be_computed() {
        let computed = OutcomeWeights::computed(MIN_USUAL_FAILURE_RATE);
        assert_eq!(OutcomeWeights::OF_RARE_FAILURES, computed);
        // A rate that is not a number counts as one.
        assert_eq!(LEAST_TRIP.to_bits(), trip(f64::NAN).to_bits());
    }

    #[test]
    fn the_more_requests_usually_fail_the_more_probes_decide() {
        for (failure_rate, expected) in [
            (0.0, 1),
            (0.05, 1),
            (0.06, 2),
            (0.3, 3),
            (0.5, 5),
            (1.0, 5),
            (f64::NAN, 1),
        ] {
            assert_eq!(probes(failure_rate), expected, "{failure_rate}");
        }
    }

    #[test]
    fn no_trip_ratio_makes_thresholds_useless() {
        for trip_ratio in [0.0, 0.01, 0.5, 1.0] {
            for failure_rate in [0.0, 0.5, 1.0] {
                let thresholds = Thresholds::new(failure_rate, 0.0, trip_ratio);
                assert!(
                    thresholds.weights.failure > 0.0
                        && thresholds.weights.success < 0.0
                        && thresholds.trip.is_finite()
                );
            }
        }
    }
}
