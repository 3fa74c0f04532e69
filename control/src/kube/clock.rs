//! The clocks of the Kubernetes controller.

use std::time::Instant;

use jiff::Timestamp;

/// One moment on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Monotonic: for waits.
    pub instant: Instant,
    /// Wall clock: for people.
    pub wall: Timestamp,
}

impl ClockReading {
    /// Reads both clocks.
    pub(super) fn now() -> Self {
        Self {
            instant: tokio::time::Instant::now().into_std(),
            wall: Timestamp::now(),
        }
    }
}
