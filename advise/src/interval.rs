//! The certainty of an observation: intervals that contain the true value with a confidence of 95 %.
//!
//! - A share of requests: the interval of Wilson (1927), which stays within 0 and 1 and is right for shares near them.
//! - A quantile: between two order statistics, whose ranks the binomial distribution gives, whatever the distribution of the
//!   latency. The graph has only a few quantiles instead of single latencies, so each end is the nearest known quantile
//!   outside the ranks. The interval may then be wider than necessary, but never narrower. Without such a quantile, that end
//!   is unknown.
//!
//! Edges: both assume that requests are independent. Latencies close in time are not, so the true uncertainty may be
//! larger.

use schemars::JsonSchema;
use serde::Serialize;

/// Two-sided quantile of the normal distribution for a confidence of 95 %.
const Z: f64 = 1.959_964;

/// An interval of a share, each end from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ShareInterval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// An interval of a latency, in seconds. An end that is not known is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LatencyInterval {
    /// Lower end.
    pub low_seconds: Option<f64>,
    /// Upper end.
    pub high_seconds: Option<f64>,
}

/// The interval of Wilson for a share that was observed in `samples` samples; 0 to 1 if there are none.
#[must_use]
pub fn wilson(share: f64, samples: f64) -> ShareInterval {
    let is_sound = (0.0..=1.0).contains(&share) && samples.is_finite() && samples > 0.0;
    if !is_sound {
        return ShareInterval {
            low: 0.0,
            high: 1.0,
        };
    }
    let doubt = Z * Z / samples;
    let scale = 1.0 / (1.0 + doubt);
    let center = (share + doubt / 2.0) * scale;
    let spread = (share * (1.0 - share) / samples + doubt / (4.0 * samples)).sqrt() * Z * scale;
    // At the ends of the range, rounding would leave the observed share outside.
    ShareInterval {
        low: (center - spread).clamp(0.0, share),
        high: (center + spread).clamp(share, 1.0),
    }
}

/// The interval of the `quantile`, from 0 to 1, of `samples` samples. `known` are quantiles of the same samples as level and
/// latency in seconds, the lowest first.
#[must_use]
pub fn latency_interval(known: &[(f64, f64)], quantile: f64, samples: f64) -> LatencyInterval {
    let levels = levels(quantile, samples);
    let below = known.iter().rfind(|(level, _)| *level <= levels.low);
    let above = known.iter().find(|(level, _)| *level >= levels.high);
    LatencyInterval {
        low_seconds: below.map(|(_, seconds)| *seconds),
        high_seconds: above.map(|(_, seconds)| *seconds),
    }
}

/// The levels of the two order statistics around a quantile. One rank is added on each side for the normal approximation of the
/// binomial distribution.
fn levels(quantile: f64, samples: f64) -> ShareInterval {
    if !(samples.is_finite() && samples > 0.0) {
        return ShareInterval {
            low: 0.0,
            high: 1.0,
        };
    }
    let spread = Z * (quantile * (1.0 - quantile) / samples).sqrt() + 1.0 / samples;
    ShareInterval {
        low: (quantile - spread).max(0.0),
        high: (quantile + spread).min(1.0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KNOWN: [(f64, f64); 3] = [(0.5, 0.018), (0.95, 0.045), (0.99, 0.060)];

    #[test]
    fn wilson_gives_the_published_interval() {
        // Newcombe (1998), table I: 81 of 263, and 0 of 20.
        let found = wilson(81.0 / 263.0, 263.0);
        assert!((found.low - 0.2553).abs() < 1e-4, "{found:?}");
        assert!((found.high - 0.3662).abs() < 1e-4, "{found:?}");
        let none = wilson(0.0, 20.0);
        assert!(none.low.abs() < 1e-12, "{none:?}");
        assert!((none.high - 0.1611).abs() < 1e-4, "{none:?}");
    }

    #[test]
    fn nothing_is_known_of_no_samples() {
        for (share, samples) in [
            (0.5, 0.0),
            (f64::NAN, 10.0),
            (0.5, f64::INFINITY),
            (0.5, f64::NAN),
        ] {
            let found = wilson(share, samples);
            assert_eq!((found.low, found.high), (0.0, 1.0), "{share} {samples}");
        }
        let found = latency_interval(&KNOWN, 0.95, 0.0);
        assert_eq!((found.low_seconds, found.high_seconds), (None, None));
    }

    #[test]
    fn a_quantile_lies_between_known_neighbours() {
        let found = latency_interval(&KNOWN, 0.95, 1_000.0);

        assert_eq!(
            (found.low_seconds, found.high_seconds),
            (Some(0.018), Some(0.060))
        );
    }

    #[test]
    fn the_upper_end_of_the_highest_known_quantile_is_not_known() {
        let found = latency_interval(&KNOWN, 0.99, 1e9);

        assert_eq!((found.low_seconds, found.high_seconds), (Some(0.045), None));
    }

    #[test]
    fn a_neighbour_within_the_ranks_bounds_nothing() {
        // 40 samples: the upper rank is that of 0.95 + 0.068 + 0.025 > 0.99.
        let found = latency_interval(&KNOWN, 0.95, 40.0);

        assert_eq!((found.low_seconds, found.high_seconds), (Some(0.018), None));
    }

    proptest! {
        #[test]
        fn more_samples_never_widen_the_interval(
            share in 0.0..=1.0_f64,
            few in 1.0..1e6_f64,
            more in 0.0..1e9_f64,
        ) {
            let (before, after) = (wilson(share, few), wilson(share, few + more));
            prop_assert!(after.high - after.low <= before.high - before.low + 1e-12);
            prop_assert!(after.low <= share && share <= after.high);

            let before = latency_interval(&KNOWN, share, few);
            let after = latency_interval(&KNOWN, share, few + more);
            prop_assert!(after.low_seconds >= before.low_seconds, "{before:?} {after:?}");
            let high = |found: LatencyInterval| found.high_seconds.unwrap_or(f64::INFINITY);
            prop_assert!(high(after) <= high(before), "{before:?} {after:?}");
        }
    }
}
