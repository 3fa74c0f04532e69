//! Whether the first latencies are those of all requests, or only of the fast ones.
//!
//! What has been answered shortly after the first request was fast: the slow ones are still in flight. A baseline of
//! those alone takes every window that follows for a queue, and never learns better. By Little's law the mean latency
//! is the time that requests have spent in flight, for each answer; while the answers themselves say much less, the slow
//! ones are missing among them (statistics calls them censored).

use core::time::Duration;

use crate::sample::Sample;
use crate::tally::Count;

/// The answers are of all requests when their mean is this share of what Little's law says.
const ALIKE: f64 = 0.8;
/// Streams and hangs never end: after so long, what there is has to do.
const PATIENCE: Duration = Duration::from_secs(10);

/// What has been seen since the first request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Forming {
    span: Duration,
    /// Time spent in flight, and latencies of all answers; seconds.
    in_flight: f64,
    answered: f64,
}

impl Forming {
    /// One more window, with or without answers. True when the baseline is formed.
    pub(super) fn see(&mut self, window: &Sample) -> bool {
        let latency = &window.tally.latency;
        let answers = window.throughput() * window.span.as_secs_f64();
        self.span += window.span;
        self.in_flight += window.count(Count::InFlightMicros) / 1e6;
        self.answered += answers * latency.mean().unwrap_or_default();
        let is_alike = self.answered >= self.in_flight * ALIKE;
        self.answered > 0.0 && (is_alike || self.span >= PATIENCE)
    }
}
