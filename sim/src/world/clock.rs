//! The simulated time: where it begins, and how often a run is looked at.

use std::time::Duration;

use tidegate_core::Instant;

/// The run begins at this instant of the contenders' clock, because no proxy's clock begins with it.
pub const START: Instant = Instant::from_nanos(1_000_000_000);

/// Interval between two samples of upstreams and contenders.
pub const SAMPLE_EVERY: Duration = Duration::from_millis(100);
