//! No panic leaves the module: it would end Envoy.
//!
//! A hook that panics counts as one that did nothing, so the request passes. A module that keeps panicking turns itself
//! off, and says so.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::{log, log_level};

/// After this many panics something is wrong for good.
const MOST_PANICS: u32 = 10;

static PANICS: AtomicU32 = AtomicU32::new(0);
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// Calls `hook`; its panic is logged, and `otherwise` is the result.
pub(crate) fn call<T>(name: &str, otherwise: T, hook: impl FnOnce() -> T) -> T {
    // What a panic leaves half done concerns numbers alone: the state holds no broken pointers.
    let hook = || {
        #[cfg(any(test, feature = "test-hooks"))]
        crate::crash::panic_if_asked(name);
        hook()
    };
    match catch_unwind(AssertUnwindSafe(hook)) {
        Ok(result) => result,
        Err(panic) => {
            note(name, panic.as_ref());
            otherwise
        }
    }
}

/// Whether the module has turned itself off.
pub(crate) fn is_off() -> bool {
    IS_OFF.load(Ordering::Relaxed)
}

/// How many panics there were.
pub(crate) fn panics() -> u32 {
    PANICS.load(Ordering::Relaxed)
}

fn note(name: &str, panic: &(dyn core::any::Any + Send)) {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let count = PANICS.fetch_add(1, Ordering::Relaxed).saturating_add(1);
    // There are few before the module is off, so each is logged.
    if count <= MOST_PANICS {
        log(
            log_level::ERROR,
            &format!("tidegate: panic in {name}: {text}; the request passes"),
        );
    }
    if count == MOST_PANICS && !IS_OFF.swap(true, Ordering::Relaxed) {
        log(
            log_level::ERROR,
            &format!(
                "tidegate: {count} panics: the module is off until Envoy restarts, and all requests pass"
            ),
        );
    }
}
