//! Conversions between counts, durations and floating point.
//!
//! Charts and scores need floats; clocks and counters give integers. All conversions are here, so that rounding is decided
//! in one place: counts stay below 2^53, and a float that is not a count becomes 0.

use std::time::Duration;

/// A count as a float; exact below 2^53.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a run stay far below 2^53"
)]
pub const fn float(count: u64) -> f64 {
    count as f64
}

/// A length as a float; exact below 2^53.
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    reason = "lengths of a run stay far below 2^53"
)]
pub const fn float_len(len: usize) -> f64 {
    len as f64
}

/// A float as an index or count, rounded down; NaN and negative values become 0.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates: NaN and negative values become 0, which is what is wanted"
)]
pub const fn floor(value: f64) -> usize {
    value as usize
}

/// A duration in milliseconds, as it is shown to people.
#[must_use]
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// A duration from seconds; NaN, negative and too large values become zero.
#[must_use]
pub fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or(Duration::ZERO)
}

/// How evenly something is shared: 1 when all have the same, 1/n when one has all; none when all have nothing. The index of
/// Jain, Chiu and Hawe, "A Quantitative Measure of Fairness", 1984.
#[must_use]
pub fn fairness(shares: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        n += 1.0;
        sum += share;
        squares += share * share;
    }
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// `part / whole`, and 0 where there is no whole.
#[must_use]
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        float(part) / float(whole)
    }
}

/// The value below which the share `quantile` of `sorted` lies (nearest rank), or `None` when it is empty.
#[must_use]
pub fn quantile<T: Copy>(sorted: &[T], quantile: f64) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    let rank = (float_len(sorted.len()) * quantile.clamp(0.0, 1.0)).ceil();
    sorted.get(floor(rank).saturating_sub(1).min(last)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_is_the_nearest_rank() {
        let sorted: Vec<u32> = (1..=100).collect();
        assert_eq!(quantile(&sorted, 0.99), Some(99));
        assert_eq!(quantile(&sorted, 0.0), Some(1));
        assert_eq!(quantile(&sorted, 1.0), Some(100));
        assert_eq!(quantile::<u32>(&[], 0.5), None);
    }

    #[test]
    fn fairness_is_one_for_equals_and_a_share_for_one_who_has_all() {
        let fairness = |shares: &[f64]| fairness(shares.iter().copied());
        assert_eq!(fairness(&[0.0, 0.0]), None);
        assert!((fairness(&[2.0, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert!((fairness(&[0.0, 0.0, 5.0, 0.0]).unwrap() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn floats_that_are_no_count_become_zero() {
        assert_eq!(floor(f64::NAN), 0);
        assert_eq!(floor(-3.0), 0);
        assert_eq!(seconds(-1.0), Duration::ZERO);
        assert_eq!(seconds(f64::INFINITY), Duration::ZERO);
    }
}
