//! Drawn numbers, rounded so that the file of a story holds their exact values.

use std::time::Duration;

use crate::number;

/// With two decimals, as people write a rate or a share.
pub(super) fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The nearest count.
pub(super) fn count(value: f64) -> u32 {
    u32::try_from(number::floor(value.round())).unwrap_or(u32::MAX)
}

/// Whole milliseconds.
pub(super) fn millis(value: f64) -> Duration {
    Duration::from_millis(u64::from(count(value)))
}

/// Whole microseconds.
pub(super) fn micros(value: f64) -> Duration {
    Duration::from_micros(u64::from(count(value)))
}

/// The moment at which a share of `length` is over, in whole milliseconds.
pub(super) fn part(length: Duration, share: f64) -> Duration {
    millis(number::millis(length) * share)
}
