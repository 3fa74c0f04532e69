//! Numbers with a unit and a range, in which the laws keep state for a successor.
//!
//! They travel through shared data, to which other plugins may write. A single NaN would spread from there into every law and
//! stay. So each unit has a range. A law's number is clamped to the range when it is written. A number from shared data that
//! is outside the range is rejected, with the whole payload.
//!
//! Six digits are plenty, so each is held in 32 bits.

use serde::{Deserialize, Serialize};

/// A number from elsewhere is none, or outside the range of its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("number out of range")]
pub struct OutOfRange;

/// Defines numbers from zero to the most that makes sense.
macro_rules! units {
    ($($(#[$doc:meta])* $unit:ident up to $most:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f32", into = "f32")]
        pub struct $unit(f32);

        impl $unit {
            /// The greatest there is.
            pub const MAX: Self = Self($most);

            /// The nearest number within the range; zero for NaN.
            #[must_use]
            #[expect(clippy::cast_possible_truncation, reason = "six digits are plenty")]
            pub const fn new(number: f64) -> Self {
                Self((number as f32).max(0.0).min($most))
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> f64 {
                self.0 as f64
            }
        }

        impl TryFrom<f32> for $unit {
            type Error = OutOfRange;

            fn try_from(number: f32) -> Result<Self, OutOfRange> {
                (0.0..=$most).contains(&number).then_some(Self(number)).ok_or(OutOfRange)
            }
        }

        impl From<$unit> for f32 {
            fn from(number: $unit) -> Self {
                number.0
            }
        }
    )*};
}

units! {
    /// A time, seconds: 0 to 2^64 ns, as long as the clock runs.
    Seconds up to 1.844_674_4e10;

    /// Anything a second: 0 to one in each nanosecond on each of 2^32 endpoints.
    PerSecond up to 4.3e18;

    /// Requests in flight: 0 to 2^32, as limits are counts of 32 bits. A limit may lie between two whole numbers.
    Requests up to 4_294_967_296.0;

    /// A share of a whole: 0 to 1.
    Share up to 1.0;

    /// A factor around 1: 0 to 2.
    Gain up to 2.0;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of which none is within any range.
    const OUTSIDE: [f32; 6] = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        -1.0,
        -f32::MIN_POSITIVE,
    ];

    macro_rules! check {
        ($($unit:ident),*) => {$({
            let name = stringify!($unit);
            for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1e39, 0.5] {
                let written = postcard::to_allocvec(&$unit::new(number)).unwrap();
                let read = postcard::from_bytes::<$unit>(&written);
                assert_eq!(read, Ok($unit::new(number)), "{name} {number}");
            }
            assert_eq!($unit::new(f64::NAN), $unit::default(), "{name}");
            assert_eq!($unit::new(f64::INFINITY), $unit::MAX, "{name}");
            assert_eq!($unit::default().get().to_bits(), 0, "{name}");
            assert_eq!($unit::try_from(f32::from($unit::MAX)), Ok($unit::MAX), "{name}");
            let beyond = f32::from($unit::MAX).next_up();
            for number in OUTSIDE.into_iter().chain([beyond]) {
                assert_eq!($unit::try_from(number), Err(OutOfRange), "{name} {number}");
                let written = postcard::to_allocvec(&number).unwrap();
                let read = postcard::from_bytes::<$unit>(&written);
                assert!(read.is_err(), "{name} {number}");
            }
        })*};
    }

    #[test]
    fn what_is_written_is_within_its_range_whatever_the_law_says() {
        check!(Seconds, PerSecond, Requests, Share, Gain);
    }

    #[test]
    fn a_number_within_its_range_is_kept_to_six_digits() {
        assert_eq!(Requests::new(16.25).get().to_bits(), 16.25_f64.to_bits());
        let third = Share::new(1.0 / 3.0).get();
        assert!((third - 1.0 / 3.0).abs() < 1e-7, "{third}");
    }
}
