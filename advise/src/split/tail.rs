//! The probability that a service takes longer than a budget, from its few known quantiles.
//!
//! Between two quantiles the tail is assumed to fall exponentially, and beyond the last one as between the last two.
//! Below the median the probability falls linearly from 1. These are assumptions: the graph has nothing better.
//!
//! A caller's view of a call contains what the upstream calls in turn. The service's own part is the share of its mean that is
//! not in those calls, with the quantiles scaled alike: means of calls in sequence can be subtracted, quantiles cannot.

/// Least share of a call that is the service's own. Undeclared parallel calls would otherwise leave nothing.
const MIN_OWN_SHARE: f64 = 0.05;

/// The distribution of a service's own time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OwnTime {
    /// Level and seconds; the lowest first, at least one, the seconds not falling.
    quantiles: Vec<(f64, f64)>,
}

impl OwnTime {
    /// `quantiles` of the whole call, and the share of it that is the service's own. `None` without quantiles.
    pub(super) fn new(quantiles: &[(f64, f64)], own_share: f64) -> Option<Self> {
        let share = own_share.clamp(MIN_OWN_SHARE, 1.0);
        let scaled = quantiles
            .iter()
            .map(|(level, seconds)| (*level, seconds * share));
        (!quantiles.is_empty()).then(|| Self {
            quantiles: scaled.collect(),
        })
    }

    /// The lowest known quantile, in seconds.
    pub(super) fn least(&self) -> f64 {
        self.quantiles.first().map_or(0.0, |(_, seconds)| *seconds)
    }

    /// The probability that it takes longer than `seconds`.
    pub(super) fn missed(&self, seconds: f64) -> f64 {
        let mut before = (0.0, 0.0);
        let mut slope = None;
        for (level, at) in &self.quantiles {
            if seconds < *at {
                return between(before, (*level, *at), seconds);
            }
            if *at > before.1 {
                slope = Some(fall(before, (*level, *at)));
            }
            before = (*level, *at);
        }
        // Without a slope no request takes any time.
        slope.map_or(0.0, |slope| {
            (1.0 - before.0) * (-slope * (seconds - before.1)).exp()
        })
    }
}

/// How fast the logarithm of the probability of a longer time falls between two points, per second.
fn fall(low: (f64, f64), high: (f64, f64)) -> f64 {
    ((1.0 - low.0) / (1.0 - high.0)).ln() / (high.1 - low.1)
}

fn between(low: (f64, f64), high: (f64, f64), seconds: f64) -> f64 {
    if low.0 <= 0.0 {
        return 1.0 - high.0 * (seconds / high.1).clamp(0.0, 1.0);
    }
    (1.0 - low.0) * (-fall(low, high) * (seconds - low.1)).exp()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_quantiles_are_met_and_the_tail_goes_on() {
        let known = [(0.5, 0.02), (0.95, 0.05), (0.99, 0.08)];
        let own = OwnTime::new(&known, 1.0).unwrap();
        for (seconds, missed) in [
            (0.0, 1.0),
            (0.01, 0.75),
            (0.02, 0.5),
            (0.05, 0.05),
            (0.08, 0.01),
            (0.11, 0.002),
        ] {
            assert!((own.missed(seconds) - missed).abs() < 1e-9, "{seconds}");
        }
    }

    #[test]
    fn a_share_scales_all_quantiles() {
        let own = OwnTime::new(&[(0.5, 0.02), (0.99, 0.08)], 0.5).unwrap();
        assert!((own.missed(0.04) - 0.01).abs() < 1e-9);
        assert!((own.least() - 0.01).abs() < 1e-9);
        let little = OwnTime::new(&[(0.5, 0.02)], -3.0).unwrap();
        assert!((little.least() - 0.001).abs() < 1e-9, "at least 0.05");
        assert_eq!(OwnTime::new(&[], 1.0), None);
    }

    #[test]
    fn equal_quantiles_are_a_step() {
        let own = OwnTime::new(&[(0.5, 0.02), (0.95, 0.02), (0.99, 0.02)], 1.0).unwrap();
        assert!(own.missed(0.019) > 0.5);
        assert!(own.missed(0.02) < 0.011);
        let nothing = OwnTime::new(&[(0.5, 0.0)], 1.0).unwrap();
        assert!(nothing.missed(0.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn a_larger_budget_is_never_missed_more_often(
            p50 in 0.0..1.0_f64, to95 in 0.0..1.0_f64, to99 in 0.0..1.0_f64,
            budget in 0.0..5.0_f64, more in 0.0..5.0_f64,
        ) {
            let known = [(0.5, p50), (0.95, p50 + to95), (0.99, p50 + to95 + to99)];
            let own = OwnTime::new(&known, 1.0).unwrap();
            let (before, after) = (own.missed(budget), own.missed(budget + more));
            prop_assert!((0.0..=1.0).contains(&before), "{before}");
            prop_assert!(after <= before + 1e-12, "{before} {after}");
        }
    }
}
