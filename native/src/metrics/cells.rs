//! The values of metrics, in chunks that never move.

use super::cell::{BITS, ChangedBits, MetricCell};

/// Cells are made in chunks, so that none ever moves.
pub(super) const CHUNK: usize = 1024;

/// Some cells, and one bit for each that changed since Envoy was told.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) cells: [MetricCell; CHUNK],
    pub(super) changed: [ChangedBits; CHUNK / BITS],
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            cells: core::array::from_fn(|_| MetricCell::default()),
            changed: core::array::from_fn(|_| ChangedBits::default()),
        }
    }
}

impl Chunk {
    /// Notes that the cell at a place has changed.
    pub(super) fn mark(&self, at: usize) -> Option<()> {
        self.changed.get(at / BITS)?.mark(1 << (at % BITS));
        Some(())
    }
}
