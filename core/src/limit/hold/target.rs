//! The formula while a queue stands, with its terms.

use crate::limit::contention::shortened;

/// A queue delay of up to this share of the wanted wait changes nothing.
const TOO_MUCH: f64 = 1.5;

/// What the limit is computed from.
#[derive(Clone, Copy, Debug)]
pub(in crate::limit) struct HoldTarget {
    /// Capacity, answers a second.
    pub(in crate::limit) capacity: f64,
    /// Latency without a queue, seconds.
    pub(in crate::limit) latency: f64,
    /// Whether that latency may include a queue.
    pub(in crate::limit) in_doubt: bool,
    /// The objective, seconds.
    pub(in crate::limit) objective: f64,
    /// The wait that keeps the upstream busy, seconds: less of it where requests slow each other down.
    pub(in crate::limit) wait: f64,
    /// Whether it is less of it.
    pub(in crate::limit) is_contended: bool,
    /// The queue delay of the measurement, seconds.
    pub(in crate::limit) delay: f64,
    /// A mean latency up to this leaves the objective room, seconds.
    pub(in crate::limit) harmless: f64,
    /// The greatest limit that the objective allows.
    pub(in crate::limit) most: f64,
    /// Whether the fast answers may hide a queue, because an endpoint without one gave them.
    pub(in crate::limit) hides_queues: bool,
}

impl HoldTarget {
    /// The formula.
    pub(super) fn model(&self) -> f64 {
        self.capacity * (self.latency + self.wait)
    }

    /// Whether the queue delay is longer than wanted.
    pub(super) fn is_long(&self) -> bool {
        self.delay > self.wait * TOO_MUCH
    }

    /// After fewer requests in flight have achieved more.
    pub(super) const fn shortened(&self) -> Self {
        Self {
            wait: shortened(self.wait),
            is_contended: true,
            ..*self
        }
    }
}
