//! Whether there is anything to do beside requests: all that a hook looks at, in its worker's own cache line.

use super::sync::{AtomicBool, Ordering};

/// A note to one worker. What was written before it was left is seen by the thread that takes it.
#[derive(Debug)]
pub(crate) struct Notice(AtomicBool);

impl Notice {
    /// A note, because something may have been written before there was anyone to tell.
    pub(crate) fn left() -> Self {
        Self(AtomicBool::new(true))
    }

    /// Leaves a note, after what it is about was written. Not a plain store: loom orders swaps among themselves alone.
    pub(crate) fn leave(&self) {
        self.0.swap(true, Ordering::Release);
    }

    /// Whether a note was left and not taken.
    pub(crate) fn is_left(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes the note, before what it may be about is read: what is written meanwhile leaves another one.
    pub(crate) fn take(&self) {
        self.0.swap(false, Ordering::Acquire);
    }
}
