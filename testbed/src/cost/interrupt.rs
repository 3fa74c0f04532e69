//! Ctrl-C: everything that was started ends, and no folder stays behind.
//!
//! The measurement blocks in one thread, so that a signal cannot drop what it holds. A
//! second thread waits for the signal and raises a flag; the loops that take long look at
//! it and end with an error, which drops everything in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::CostError;
use crate::run;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on a signal to end raises the flag instead of ending the process at once.
pub fn watch() {
    thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        // Without a runtime the signals do what they always do.
        if let Ok(runtime) = runtime {
            runtime.block_on(run::interrupted());
            INTERRUPTED.store(true, Ordering::Relaxed);
        }
    });
}

/// An error once the flag is raised.
pub(super) fn check() -> Result<(), CostError> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        Err(CostError::Interrupted)
    } else {
        Ok(())
    }
}
