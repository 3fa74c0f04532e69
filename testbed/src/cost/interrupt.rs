//! Ctrl-C: every started process ends, and no folder stays behind.
//!
//! The measurement blocks in one thread, so a signal cannot drop what it holds. A second thread waits for the signal and
//! raises a flag; long loops check it and end with an error, which drops everything in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::CostError;
use crate::run;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes a signal to end raise the flag instead of ending the process at once.
pub fn watch() {
    thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        // Without a runtime the signals keep their default effect.
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
