//! One value that threads change, and the bit by which Envoy is told of it.
//!
//! ```text
//!  worker: value + 1, then bit set, if it is not          main thread: bits taken, then value read
//! ```
//!
//! All of it is in one order for all threads (`SeqCst`): a thread that finds a bit set has changed the value before the bit is taken, so
//! no change is missed. Most find it set, and write nothing that other threads read.

use super::sync::{AtomicU64, Ordering};

/// Cells of one word of bits.
pub(super) const BITS: usize = 64;

/// A value, and what Envoy knows of it, which is written under the mutex.
#[derive(Debug, Default)]
pub(super) struct MetricCell {
    pub(super) value: AtomicU64,
    pub(super) published: AtomicU64,
}

/// Which cells have changed.
#[derive(Debug, Default)]
pub(super) struct ChangedBits(AtomicU64);

impl ChangedBits {
    /// Notes that a cell has changed, after its value did.
    pub(super) fn mark(&self, bit: u64) {
        if self.0.load(Ordering::SeqCst) & bit == 0 {
            self.0.fetch_or(bit, Ordering::SeqCst);
        }
    }

    /// Notes it for all cells.
    pub(super) fn mark_all(&self) {
        self.0.store(u64::MAX, Ordering::SeqCst);
    }

    /// Takes the bits, before values are read.
    pub(super) fn take(&self) -> u64 {
        match self.0.load(Ordering::SeqCst) {
            0 => 0,
            _ => self.0.swap(0, Ordering::SeqCst),
        }
    }
}
