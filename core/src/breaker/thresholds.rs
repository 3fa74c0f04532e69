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
/// Probes of an upstream that is back all fail by chance this often at most: requests of callers whose requests always fail
/// may be the ones that probe.
const PROBES_LIE: f64 = 0.05;
/// The most probes of one half-open.
const MOST_PROBES: u32 = 5;

/// What one outcome weighs, and how much is enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Thresholds {
    pub(super) weights: OutcomeWeights,
    /// The sum that trips.
    pub(super) trip: f32,
    /// Probes that must fail before the upstream is taken to be still down, 1 at least.
    pub(super) probes: u32,
}

/// What one outcome adds to the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OutcomeWeights {
    /// Positive: it speaks for an outage.
    pub(super) failure: f32,
    /// Negative.
    pub(super) success: f32,
}

impl OutcomeWeights {
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
        let usual = (failure_rate * USUAL_MARGIN)
            .max(MIN_USUAL_FAILURE_RATE)
            .min(highest);
        Self {
            weights: OutcomeWeights::against(usual),
            trip: libm::log(rate.max(1.0) * SECONDS_PER_DAY) as f32,
            probes: probes(failure_rate),
        }
    }
}

/// How many probes decide, where the upstream usually fails `failure_rate` (0..=1) of its outcomes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "held between 1 and a few; of no number becomes 1"
)]
fn probes(failure_rate: f64) -> u32 {
    if is_off(Mechanism::ProbeCount) {
        return 1;
    }
    let enough = libm::log(PROBES_LIE) / libm::log(failure_rate.clamp(PROBES_LIE, 0.95));
    (enough.ceil() as u32).clamp(1, MOST_PROBES)
}

#[cfg(test)]
mod tests {
    use super::*;

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
