//! A number between 0 and 1, checked once.
//!
//! Shares, success rates, quantiles and thresholds are all fractions. As bare
//! `f64` each use would have to ask again whether it is NaN, negative or a
//! percentage. The one constructor refuses all three, so a [`Ratio`] has a
//! total order and is never NaN and never `-0.0`.

use std::cmp::Ordering;
use std::fmt;

/// A fraction in `0..=1`; dimensionless, never NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio(f64);

/// Why a number is no [`Ratio`].
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("found {found}, expected a number from 0 to 1")]
pub struct NotARatio {
    found: f64,
}

impl Ratio {
    /// Nothing: 0.
    pub const ZERO: Self = Self(0.0);
    /// All: 1.
    pub const ONE: Self = Self(1.0);

    /// `value` as a ratio, or `None` when it is NaN or outside `0..=1`.
    #[must_use]
    pub const fn new(value: f64) -> Option<Self> {
        // NaN fails both comparisons. Adding zero turns -0.0 into 0.0.
        if value >= 0.0 && value <= 1.0 {
            Some(Self(value + 0.0))
        } else {
            None
        }
    }

    /// The share `part / whole`, or `None` when `whole` is 0 or less than `part`.
    #[must_use]
    pub const fn of(part: u32, whole: u32) -> Option<Self> {
        if whole == 0 || part > whole {
            return None;
        }
        Some(Self(part as f64 / whole as f64))
    }

    /// The number itself, in `0..=1`.
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.0
    }

    /// What is left: `1 - self`.
    #[must_use]
    pub const fn complement(self) -> Self {
        Self(1.0 - self.0)
    }
}

// Sound because a ratio is never NaN.
impl Eq for Ratio {}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl TryFrom<f64> for Ratio {
    type Error = NotARatio;

    fn try_from(value: f64) -> Result<Self, NotARatio> {
        Self::new(value).ok_or(NotARatio { found: value })
    }
}

impl From<Ratio> for f64 {
    fn from(ratio: Ratio) -> Self {
        ratio.0
    }
}

/// As JSON has it, so that the module holds one way to print floats and not two (14 KB).
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&decimal(self.0))
    }
}

/// The shortest decimal number that is read as `value`, without a point where it is whole; nothing where it is not finite.
pub(crate) fn decimal(value: f64) -> String {
    let Some(number) = serde_json::Number::from_f64(value) else {
        return String::new();
    };
    let mut text = number.to_string();
    if text.ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_from_0_to_1_are_ratios() {
        for refused in [f64::NAN, -0.1, 1.000_000_1, f64::INFINITY, 99.0] {
            assert!(Ratio::new(refused).is_none(), "{refused}");
            assert!(Ratio::try_from(refused).is_err(), "{refused}");
        }
        for taken in [0.0, 0.25, 1.0] {
            assert_eq!(
                f64::from(Ratio::new(taken).unwrap()).to_bits(),
                taken.to_bits()
            );
        }
    }

    #[test]
    fn negative_zero_becomes_zero() {
        let zero = Ratio::new(-0.0).unwrap();

        assert_eq!(zero.as_f64().to_bits(), 0.0_f64.to_bits());
        assert_eq!(zero.cmp(&Ratio::ZERO), Ordering::Equal);
    }

    #[test]
    fn a_share_of_nothing_is_no_ratio() {
        assert_eq!(Ratio::of(0, 0), None);
        assert_eq!(Ratio::of(2, 1), None);
        assert_eq!(Ratio::of(1, 4), Ratio::new(0.25));
        assert_eq!(Ratio::of(u32::MAX, u32::MAX), Some(Ratio::ONE));
    }

    #[test]
    fn the_error_names_what_was_found() {
        let error = Ratio::try_from(99.0).unwrap_err();

        assert_eq!(error.to_string(), "found 99, expected a number from 0 to 1");
    }
}
