//! Time as core sees it: nanoseconds since an arbitrary start.
//!
//! Core reads no clock. Every verb of the engine takes `now`; the caller owns the clock, Envoy's monotonic clock or a
//! simulator's. Clocks stand still and jump: every operation here saturates, so that a
//! jump backwards makes an age zero instead of a panic, and a jump forwards ends waits early instead of never.

use core::ops::{Add, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since a start that only the caller knows.
///
/// All engines of one proxy must be given the same clock, because instants travel between them.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Instant(u64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);

    /// The instant `nanos` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is before.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_back_makes_ages_zero() {
        let later = Instant::from_nanos(5);
        assert_eq!(Instant::ZERO.saturating_since(later), Duration::ZERO);
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
    }

    #[test]
    fn the_far_end_saturates() {
        let end = Instant::from_nanos(u64::MAX);
        assert_eq!(end + Duration::MAX, end);
    }
}
