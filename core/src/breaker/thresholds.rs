//! What outcomes weigh in the [trip test](super::evidence), and how much is enough.
//!
//! Logarithms are dear on the path of a request, so they are taken here: when the leader has decided, and when another policy
//! holds.

use crate::ablation::{Mechanism, is_off};

/// A dead upstream fails at least this share.
const DEAD_FAILURE_RATE: f64 = 0.95;
/// Below this the usual failure rate is taken for this: a few failures in a row happen to everybody.
const MIN_USUAL_FAILURE_RATE: f64 = 0.1;
/// The failure rate of an upstream that nothing is known of: it may be one that fails often.
pub(crate) const FIRST_FAILURE_RATE: f64 = 0.3;
/// The learned rate is an average over a time that may have been better than now.
const USUAL_MARGIN: f64 = 1.5;
/// "Usual" stays below the trip ratio, else nothing would ever be unusual.
const MAX_USUAL_OF_TRIP_RATIO: f64 = 0.8;
/// False alarms are counted per day.
const SECONDS_PER_DAY: f64 = 86_400.0;
/// After a trip the upstream is more likely dead than not: odds of 1 : 50 against tripping again suffice. This is ln(50).
const RAMP_TRIP: f32 = 3.912_023;

/// What one outcome weighs, and how much is enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thresholds {
    pub(super) weights: Weights,
    /// The sum that trips.
    pub(super) trip: f32,
    /// What an outcome weighs in the ramp. Worked out beforehand: a failure there is on the request path.
    ramp: Weights,
}

/// What one outcome adds to the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weights {
    /// Positive: it speaks for an outage.
    pub(super) failure: f32,
    /// Negative.
    pub(super) success: f32,
}

impl Weights {
    /// Dead against a failure rate of `usual`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "logarithms of small numbers"
    )]
    fn against(usual: f64) -> Self {
        let usual = usual.min(DEAD_FAILURE_RATE - 0.05);
        Self {
            failure: libm::log(DEAD_FAILURE_RATE / usual) as f32,
            success: libm::log((1.0 - DEAD_FAILURE_RATE) / (1.0 - usual)) as f32,
        }
    }
}

impl Thresholds {
    /// For an upstream that usually fails `failure_rate` (0..=1) of `rate` outcomes a second.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the logarithm of a day's outcomes"
    )]
    pub(crate) fn new(failure_rate: f64, rate: f64, trip_ratio: f64) -> Self {
        let highest = (trip_ratio * MAX_USUAL_OF_TRIP_RATIO).max(MIN_USUAL_FAILURE_RATE);
        let usual = (failure_rate * USUAL_MARGIN).clamp(MIN_USUAL_FAILURE_RATE, highest);
        Self {
            weights: Weights::against(usual),
            trip: libm::log(rate.max(1.0) * SECONDS_PER_DAY) as f32,
            ramp: Weights::against(highest),
        }
    }

    /// Evidence right after a trip. What was usual before says little about what came back: it may fail more often than
    /// ever, and is not dead below the trip ratio.
    pub(crate) fn in_ramp(self) -> Self {
        if is_off(Mechanism::RampTrip) {
            return self;
        }
        Self {
            weights: self.ramp,
            trip: RAMP_TRIP,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
