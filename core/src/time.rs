//! Time as core sees it: nanoseconds since an arbitrary start.
//!
//! Core reads no clock. Every verb of the engine takes `now`; the caller owns the clock, Envoy's monotonic clock or a
//! simulator's. Clocks stand still and jump: every operation here saturates, so that a
//! jump backwards makes an age zero instead of a panic, and a jump forwards ends waits early instead of never.

use core::num::NonZeroU64;
use core::ops::{Add, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since a start that only the caller knows.
///
/// All engines of one proxy must be given the same clock, because instants travel between them.
///
/// One more than the nanoseconds is kept, so that an `Option<Instant>` takes no more room: the state of an upstream has two dozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Instant(NonZeroU64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Self = Self(NonZeroU64::MIN);

    /// The instant `nanos` nanoseconds after the start. The last one is a nanosecond before `u64::MAX`, after 584 years.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// How long after `earlier` this is; zero when it is before.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// The same in nanoseconds, without the divisions of a [`Duration`].
    #[must_use]
    pub(crate) const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }
}

impl Default for Instant {
    fn default() -> Self {
        Self::ZERO
    }
}

impl From<u64> for Instant {
    fn from(nanos: u64) -> Self {
        Self::from_nanos(nanos)
    }
}

impl From<Instant> for u64 {
    fn from(instant: Instant) -> Self {
        instant.as_nanos()
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(Nanos::from(span).0))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self::from_nanos(self.as_nanos().saturating_sub(Nanos::from(span).0))
    }
}

/// A length of time in half the room of a [`Duration`], at most 584 years.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nanos(u64);

impl Nanos {
    pub(crate) const fn get(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
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

    #[test]
    fn an_optional_one_takes_no_more_room() {
        assert_eq!(size_of::<Option<Instant>>(), 8);
    }
}
