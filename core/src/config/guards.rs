//! Bounds of the two guards: the concurrency limit and the breaker.
//!
//! Each has a pair that must be in order. Such a contradiction is reported at
//! the end that was written here, and only when both ends are sound: a value
//! that is wrong by itself is no ground for a second complaint.

use std::time::Duration;

use super::duration::Readable;
use super::reader::Section;
use super::schema;
use crate::ratio::Ratio;

/// Bounds of the concurrency limit, in requests in flight per endpoint:
/// `1 <= min <= initial <= max <= 100_000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitConfig {
    min: u32,
    max: u32,
    initial: u32,
    max_open: Option<u32>,
}

impl LimitConfig {
    /// Least, at least 1.
    #[must_use]
    pub const fn min(&self) -> u32 {
        self.min
    }

    /// Greatest, at most 100,000.
    #[must_use]
    pub const fn max(&self) -> u32 {
        self.max
    }

    /// Where learning starts, within [`Self::min`] and [`Self::max`].
    #[must_use]
    pub const fn initial(&self) -> u32 {
        self.initial
    }

    /// Most requests that have not ended, per endpoint, at least [`Self::min`]; `None`: no bound.
    #[must_use]
    pub const fn max_open(&self) -> Option<u32> {
        self.max_open
    }

    pub(super) fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        let errors = s.error_count();
        let min = s.count(schema::LIMIT_MIN, parent.map(Self::min));
        let max = s.count(schema::LIMIT_MAX, parent.map(Self::max));
        let initial = s.count(schema::LIMIT_INITIAL, parent.map(Self::initial));
        let inherited = parent.and_then(Self::max_open);
        let max_open = s.bound(schema::LIMIT_MAX_OPEN, inherited);
        let is_comparable = errors == s.error_count();
        if is_comparable && max_open.is_some_and(|max_open| max_open < min) {
            if s.has("maxOpen") {
                s.refuse("maxOpen", format!("at least limit.min ({min})"));
            } else if let (Some(max_open), true) = (max_open, s.has("min")) {
                s.refuse("min", format!("at most limit.maxOpen ({max_open})"));
            }
        }
        if is_comparable && min > max {
            if s.has("max") {
                s.refuse("max", format!("at least limit.min ({min})"));
            } else if s.has("min") {
                s.refuse("min", format!("at most limit.max ({max})"));
            }
        } else if is_comparable && s.has("initial") && !(min..=max).contains(&initial) {
            let expected = format!("a number from limit.min to limit.max ({min} to {max})");
            s.refuse("initial", expected);
        }
        Self {
            min,
            max,
            // An initial value that was not written here follows the bounds.
            initial: initial.min(max).max(min),
            max_open,
        }
    }
}

/// When the breaker opens and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    enabled: bool,
    trip_ratio: Ratio,
    min_open: Duration,
    max_open: Duration,
}

impl BreakerConfig {
    /// Whether there is a breaker at all; the concurrency limit stays.
    #[must_use]
    pub const fn enabled(&self) -> bool {
        self.enabled
    }

    /// Share of failures from which requests are better refused than sent,
    /// `0.05..=1`.
    #[must_use]
    pub const fn trip_ratio(&self) -> Ratio {
        self.trip_ratio
    }

    /// Shortest open interval, 50 ms to 10 min.
    #[must_use]
    pub const fn min_open(&self) -> Duration {
        self.min_open
    }

    /// Longest open interval, from [`Self::min_open`] to 1 h.
    #[must_use]
    pub const fn max_open(&self) -> Duration {
        self.max_open
    }

    pub(super) fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        let errors = s.error_count();
        let read = Self {
            enabled: s.flag(schema::BREAKER_ENABLED, parent.map(Self::enabled)),
            trip_ratio: s.fraction(schema::TRIP_RATIO, parent.map(Self::trip_ratio)),
            min_open: s.span(schema::MIN_OPEN, parent.map(Self::min_open)),
            max_open: s.span(schema::MAX_OPEN, parent.map(Self::max_open)),
        };
        if errors == s.error_count() && read.min_open > read.max_open {
            if s.has("maxOpen") {
                let expected = format!("at least breaker.minOpen ({})", Readable(read.min_open));
                s.refuse("maxOpen", expected);
            } else if s.has("minOpen") {
                let expected = format!("at most breaker.maxOpen ({})", Readable(read.max_open));
                s.refuse("minOpen", expected);
            }
        }
        read
    }
}
