//! Which numbers from elsewhere are believed.
//!
//! Shared data is one table for all plugins of a VM id, and Istio leaves the id empty: whoever writes there may write
//! over ours. One float that is no number would go from a directive into every law and stay. So each number has a
//! range, [`Learned`] is written within it and refused outside, and with one number its whole record.

use super::{Directive, WireError};
use crate::breaker::BreakerState;
use crate::level::Level;
use crate::limit::Learned;

/// Numbers that make sense, both ends included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    min: f32,
    max: f32,
}

/// Seconds: none lasts longer than the clock runs, 2^64 ns.
pub(crate) const SECONDS: Range = Range::up_to(1.844_674_4e10);
/// Anything a second: each in a nanosecond of its own, on every one of 2^32 endpoints.
pub(crate) const PER_SECOND: Range = Range::up_to(4.3e18);
/// Requests in flight: limits are counts of 32 bits.
pub(crate) const PLACES: Range = Range::up_to(4_294_967_296.0);
/// A factor around 1.
pub(crate) const GAIN: Range = Range::up_to(2.0);
/// A share of a whole.
pub(crate) const SHARE: Range = Range::up_to(1.0);

impl Range {
    const fn up_to(max: f32) -> Self {
        Self { min: 0.0, max }
    }

    /// The nearest number within; the least for what is no number.
    #[expect(clippy::cast_possible_truncation, reason = "six digits are plenty")]
    pub(crate) fn hold(self, number: f64) -> f32 {
        (number as f32).max(self.min).min(self.max)
    }

    fn has(self, number: f32) -> bool {
        (self.min..=self.max).contains(&number)
    }
}

/// Refuses a directive that no leader can have written.
pub(super) fn check(directive: &Directive) -> Result<(), WireError> {
    let Directive {
        limit,
        reserve,
        margin,
        workers,
        breaker,
        ..
    } = directive;
    let counts = [
        ("limit", *limit >= 1),
        ("reserve", reserve >= limit),
        ("workers", *workers >= 1),
        ("margin.level", margin.level.index() < Level::COUNT),
        ("margin.share", SHARE.has(margin.share)),
        // A ramp doubles; nothing doubled stays nothing.
        (
            "breaker.limit",
            !matches!(breaker, BreakerState::Ramp { limit: 0 }),
        ),
    ];
    let learned =
        numbers(&directive.learned).map(|(field, number, range)| (field, range.has(number)));
    let mut all = counts.into_iter().chain(learned);
    all.find(|(_, is_plausible)| !is_plausible)
        .map_or(Ok(()), |(field, _)| Err(WireError::OutOfRange { field }))
}

/// Every float, with its name and its range.
fn numbers(learned: &Learned) -> [(&'static str, f32, Range); 11] {
    [
        ("learned.baseline_low", learned.baseline_low, SECONDS),
        ("learned.baseline_mean", learned.baseline_mean, SECONDS),
        ("learned.baseline_tail", learned.baseline_tail, SECONDS),
        ("learned.sample_low", learned.sample_low, SECONDS),
        ("learned.sample_tail", learned.sample_tail, SECONDS),
        ("learned.capacity", learned.capacity, PER_SECOND),
        ("learned.hold", learned.hold, PLACES),
        ("learned.failure_rate", learned.failure_rate, SHARE),
        ("learned.rate", learned.rate, PER_SECOND),
        ("learned.ceiling", learned.ceiling, PLACES),
        ("learned.burst_gain", learned.burst_gain, GAIN),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_within_its_range_whatever_the_law_says() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e39, 0.5] {
            for range in [SECONDS, PER_SECOND, PLACES, SHARE] {
                assert!(range.has(range.hold(number)), "{number} in {range:?}");
            }
        }
        assert!((PLACES.hold(16.25) - 16.25).abs() < f32::EPSILON);
    }

    #[test]
    fn a_ramp_that_can_never_grow_is_refused_by_name() {
        let directive = Directive {
            breaker: BreakerState::Ramp { limit: 0 },
            ..Directive::unknown(7)
        };
        let refused = WireError::OutOfRange {
            field: "breaker.limit",
        };
        assert_eq!(check(&directive), Err(refused));
        assert_eq!(check(&Directive::unknown(7)), Ok(()));
    }
}
