//! No panic leaves the module: it would end Envoy.
//!
//! A hook that panics counts as one that did nothing, so the request passes. A module that keeps panicking turns itself
//! off, and says so. One that panics now and then, over weeks, goes on.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::abi::{log, log_level};

/// So many panics within [`SPAN`] mean that something is wrong for good.
const MOST_PANICS: usize = 10;
const SPAN: Duration = Duration::from_secs(60);

static RECORD: Mutex<PanicRecord> = Mutex::new(PanicRecord::new());
static PANICS: AtomicU32 = AtomicU32::new(0);
/// Panics that no plugin has taken into its metrics.
static UNTOLD: AtomicU32 = AtomicU32::new(0);
static IS_OFF: AtomicBool = AtomicBool::new(false);
static IS_OFF_TOLD: AtomicBool = AtomicBool::new(false);

/// What is remembered of panics.
struct PanicRecord {
    /// Times of the last ones, the newest last.
    times: VecDeque<Instant>,
    /// Names of hooks whose first panic was logged.
    logged: Vec<&'static str>,
}

impl PanicRecord {
    const fn new() -> Self {
        Self {
            times: VecDeque::new(),
            logged: Vec::new(),
        }
    }

    /// There was a panic. Returns whether these are too many.
    fn add(&mut self, now: Instant) -> bool {
        self.times.push_back(now);
        if self.times.len() > MOST_PANICS {
            self.times.pop_front();
        }
        let first = self.times.front();
        let is_recent = first.is_some_and(|first| now.saturating_duration_since(*first) <= SPAN);
        is_recent && self.times.len() == MOST_PANICS
    }

    /// Whether the hook has not panicked before.
    fn is_first(&mut self, name: &'static str) -> bool {
        let is_first = !self.logged.contains(&name);
        if is_first {
            self.logged.push(name);
        }
        is_first
    }
}

/// Calls `hook`; its panic is counted, the first of its name is logged, and `otherwise` is the result.
pub(crate) fn call<T>(name: &'static str, otherwise: T, hook: impl FnOnce() -> T) -> T {
    // What a panic leaves half done concerns numbers alone: the state holds no broken pointers.
    let hook = || {
        #[cfg(any(test, feature = "test-hooks"))]
        crate::crash::panic_if_asked(name);
        hook()
    };
    match catch_unwind(AssertUnwindSafe(hook)) {
        Ok(result) => result,
        Err(panic) => {
            note(name, panic.as_ref(), Instant::now());
            otherwise
        }
    }
}

/// Whether the module has turned itself off.
pub(crate) fn is_off() -> bool {
    IS_OFF.load(Ordering::Relaxed)
}

/// How many panics there were.
#[cfg(test)]
pub(crate) fn panics() -> u32 {
    PANICS.load(Ordering::Relaxed)
}

/// Panics since the last call: the first plugin that asks counts them, because they are those of the module.
pub(crate) fn take_untold() -> u32 {
    match UNTOLD.load(Ordering::Relaxed) {
        0 => 0,
        _ => UNTOLD.swap(0, Ordering::Relaxed),
    }
}

/// Whether the module has turned itself off since the last call.
pub(crate) fn take_off() -> bool {
    is_off() && !IS_OFF_TOLD.swap(true, Ordering::Relaxed)
}

#[cold]
fn note(name: &'static str, panic: &(dyn core::any::Any + Send), now: Instant) {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let count = PANICS.fetch_add(1, Ordering::Relaxed).saturating_add(1);
    UNTOLD.fetch_add(1, Ordering::Relaxed);
    let (is_first, are_many) = {
        let mut record = RECORD.lock().unwrap_or_else(PoisonError::into_inner);
        (record.is_first(name), record.add(now))
    };
    if is_first {
        log(
            log_level::ERROR,
            &format!(
                "tidegate: panic in {name}: {text}; the request passes (further ones there are only counted)"
            ),
        );
    }
    if are_many && !IS_OFF.swap(true, Ordering::Relaxed) {
        log(
            log_level::ERROR,
            &format!(
                "tidegate: {MOST_PANICS} panics within {} seconds, {count} in all: the module is off until Envoy restarts, and all requests pass",
                SPAN.as_secs()
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, ten panics since the start were too many, however long ago.
    #[test]
    fn ten_panics_are_too_many_within_a_minute_and_not_over_weeks() {
        let start = Instant::now();
        let are_many = |between: Duration, count: u32| {
            let mut record = PanicRecord::new();
            (0..count).any(|number| record.add(start + between * number))
        };
        let most_between = SPAN / 9;
        assert!(are_many(Duration::ZERO, 10));
        assert!(are_many(most_between, 10));
        assert!(!are_many(Duration::ZERO, 9));
        assert!(!are_many(most_between + Duration::from_millis(1), 1_000));
    }

    #[test]
    fn the_first_panic_of_each_hook_is_logged() {
        let mut record = PanicRecord::new();
        let firsts = ["a", "b", "a", "b"].map(|name| record.is_first(name));
        assert_eq!(firsts, [true, true, false, false]);
    }
}
