//! The values of metrics, in chunks that never move.

use core::sync::atomic::{AtomicU64, Ordering};

/// Cells are made in chunks, so that none ever moves.
pub(super) const CHUNK: usize = 1024;

/// A value, and what Envoy knows of it, which is written under the mutex.
#[derive(Debug)]
pub(super) struct MetricCell {
    pub(super) value: AtomicU64,
    pub(super) published: AtomicU64,
}

/// Some cells, and one bit for each that changed since Envoy was told.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) cells: [MetricCell; CHUNK],
    pub(super) changed: [AtomicU64; CHUNK / BITS],
}

/// The cells of one word of bits.
pub(super) const BITS: usize = 64;

impl Default for Chunk {
    fn default() -> Self {
        Self {
            cells: [const { MetricCell::new() }; CHUNK],
            changed: [const { AtomicU64::new(0) }; CHUNK / BITS],
        }
    }
}

impl Chunk {
    /// Notes that the cell at a place has changed. The bit is set after the value, and taken before the value is read, in one
    /// order for all threads: no change is missed. Most find it set, and write nothing that other threads read.
    pub(super) fn mark(&self, at: usize) -> Option<()> {
        let (word, bit) = (self.changed.get(at / BITS)?, 1 << (at % BITS));
        if word.load(Ordering::SeqCst) & bit == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        }
        Some(())
    }
}

impl MetricCell {
    const fn new() -> Self {
        Self {
            value: AtomicU64::new(0),
            published: AtomicU64::new(0),
        }
    }
}
