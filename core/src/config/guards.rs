//! Bounds of the two guards: the concurrency limit and the breaker.
//!
//! Each has pairs of values that must be in order. A pair in the wrong order is
//! one error, at the value that is set in this section. It is reported only if
//! both values are valid by themselves: a wrong value gets one error, not two.

use std::fmt;
use std::time::Duration;

use super::duration::Readable;
use super::reader::Section;
use super::schema;
use crate::ratio::Ratio;

/// Bounds of the concurrency limit, in requests in flight per endpoint:
/// `1 <= min <= initial <= max <= 100_000`, and `min <= max_open`.
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

    /// Where learning starts, from [`Self::min`] to [`Self::max`].
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
        let (min, has_min) = sound(s, |s| s.count(schema::LIMIT_MIN, parent.map(Self::min)));
        let (max, has_max) = sound(s, |s| s.count(schema::LIMIT_MAX, parent.map(Self::max)));
        let inherited = parent.map(Self::initial);
        let (initial, has_initial) = sound(s, |s| s.count(schema::LIMIT_INITIAL, inherited));
        let inherited = parent.and_then(Self::max_open);
        let (max_open, has_max_open) = sound(s, |s| s.bound(schema::LIMIT_MAX_OPEN, inherited));
        let has_bounds = has_min && has_max;
        if has_bounds && min > max {
            reject_order(s, "limit", ("min", &min), ("max", &max));
        } else if has_bounds && has_initial && s.has("initial") && !(min..=max).contains(&initial) {
            let expected = format!("a number from limit.min to limit.max ({min} to {max})");
            s.reject("initial", expected);
        }
        if let Some(max_open) = max_open
            && has_min
            && has_max_open
            && min > max_open
        {
            reject_order(s, "limit", ("min", &min), ("maxOpen", &max_open));
        }
        Self {
            min,
            max,
            // An initial value that is not set here follows the bounds.
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

    /// Share of failures from which it is better to shed requests than to send
    /// them, `0.05..=1`.
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
        let enabled = s.flag(schema::BREAKER_ENABLED, parent.map(Self::enabled));
        let trip_ratio = s.fraction(schema::TRIP_RATIO, parent.map(Self::trip_ratio));
        let inherited = parent.map(Self::min_open);
        let (min_open, has_min) = sound(s, |s| s.span(schema::MIN_OPEN, inherited));
        let inherited = parent.map(Self::max_open);
        let (max_open, has_max) = sound(s, |s| s.span(schema::MAX_OPEN, inherited));
        if has_min && has_max && min_open > max_open {
            let (low, high) = (Readable(min_open), Readable(max_open));
            reject_order(s, "breaker", ("minOpen", &low), ("maxOpen", &high));
        }
        Self {
            enabled,
            trip_ratio,
            min_open,
            max_open,
        }
    }
}

/// Reads one value, and returns whether it had no error and so may be compared with others.
fn sound<T>(s: &mut Section<'_>, read: impl FnOnce(&mut Section<'_>) -> T) -> (T, bool) {
    let errors = s.error_count();
    let value = read(s);
    (value, errors == s.error_count())
}

/// Reports two values in the wrong order, at the one that is set in this section.
fn reject_order(
    s: &mut Section<'_>,
    object: &str,
    (low_key, low): (&'static str, &dyn fmt::Display),
    (high_key, high): (&'static str, &dyn fmt::Display),
) {
    if s.has(high_key) {
        s.reject(high_key, format!("at least {object}.{low_key} ({low})"));
    } else if s.has(low_key) {
        s.reject(low_key, format!("at most {object}.{high_key} ({high})"));
    }
}
