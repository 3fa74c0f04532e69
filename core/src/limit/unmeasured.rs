//! How many of the requests in flight have no latency that says anything.
//!
//! By Little's law the throughput times the latency is the number in flight, if each request has a latency that was measured.
//! Some have none. A slow path, a dependency that hangs, or a stream holds requests until they no longer count as load, because
//! later ones overtook them or because they go on and on. They take places beside requests that are answered at once. A limit
//! from latencies alone has no room for them: they fill it, the others are shed, and without answers the upstream looks dead.
//!
//! ```text
//! unmeasured = time in flight of requests that stopped counting without a latency / time        over MEMORY, without a queue
//! ```

use crate::ablation::{Mechanism, is_off};
use crate::sample::Sample;
use crate::tally::Count;

/// Time over which the mean is taken, seconds; shorter at first, so that it does not start from zero. An outage is noticed in
/// a small part of it.
const MEMORY: f64 = 5.0;

/// The mean number of requests in flight without a latency.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unmeasured {
    mean: f64,
    /// Seconds from which it was learned, at most [`MEMORY`].
    span: f64,
}

impl Unmeasured {
    /// Requests in flight; 0 while none is known.
    pub(super) fn value(self) -> f64 {
        if is_off(Mechanism::Unmeasured) {
            0.0
        } else {
            self.mean
        }
    }

    /// Learns from a window without a queue.
    pub(super) fn learn(&mut self, window: &Sample) {
        let span = window.span.as_secs_f64();
        if span <= 0.0 {
            return;
        }
        self.span = (self.span + span).min(MEMORY);
        let in_flight = window.count(Count::UnmeasuredMicros) / 1e6 / span;
        // A window may be longer than the memory.
        self.mean += (in_flight - self.mean) * (span / self.span).min(1.0);
    }

    /// The upstream has `factor` times as many endpoints.
    pub(super) fn scale(&mut self, factor: f64) {
        self.mean *= factor;
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::limit::testing::assert_close;

    /// A second in which requests stopped counting that were in flight for so many seconds in sum.
    fn second(in_flight: u64) -> Sample {
        let mut window = Sample::empty(Duration::from_secs(1));
        let micros = in_flight * 1_000_000;
        window.tally.add(Count::UnmeasuredMicros, micros);
        window
    }

    #[test]
    fn it_is_the_mean_of_all_at_first_and_then_of_the_last_seconds() {
        let mut unmeasured = Unmeasured::default();
        unmeasured.learn(&second(10));
        assert_close(unmeasured.value(), 10.0, "the first window");
        unmeasured.learn(&second(20));
        assert_close(unmeasured.value(), 15.0, "two windows");
        for _ in 0..100 {
            unmeasured.learn(&second(30));
        }
        assert_close(unmeasured.value(), 30.0, "the last seconds");
    }

    #[test]
    fn an_outage_is_noticed_in_a_small_part_of_the_memory() {
        let mut unmeasured = Unmeasured::default();
        for _ in 0..10 {
            unmeasured.learn(&second(10));
        }
        unmeasured.learn(&second(0));
        assert_close(unmeasured.value(), 8.0, "a second of five");
    }

    #[test]
    fn a_window_longer_than_the_memory_is_all_that_is_known() {
        let mut unmeasured = Unmeasured::default();
        unmeasured.learn(&second(10));
        unmeasured.learn(&Sample::empty(Duration::from_secs(60)));
        assert_close(unmeasured.value(), 0.0, "a quiet minute");
    }

    #[test]
    fn nothing_is_nothing() {
        let mut unmeasured = Unmeasured::default();
        unmeasured.learn(&Sample::empty(Duration::ZERO));
        assert_close(unmeasured.value(), 0.0, "no time has passed");
    }
}
