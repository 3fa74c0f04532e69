//! How many answers a second the upstream can give.
//!
//! A busy upstream shows it: what comes out while a queue stands is all it can do. One that is not busy shows only
//! that it can do at least so much. A window in which the queue ran empty shows less than the truth, so a lower
//! value is believed only from windows that began and ended with more in flight than the upstream needs.

use super::window::WindowStats;
use crate::ablation::{Mechanism, is_off};
use crate::units::PerSecond;

/// Weight of the newest window of a busy upstream, when it says something else than the ones before ...
const SURPRISE_WEIGHT: f64 = 0.5;
/// ... and when the difference may be chance: within so many standard deviations of a Poisson count.
const BUSY_WEIGHT: f64 = 0.15;
const CHANCE: f64 = 2.0;
/// Weight of the newest window of one that is not.
const IDLE_WEIGHT: f64 = 0.2;

/// The capacity, answers a second; 0 while unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    value: f64,
    /// What it was when the upstream was last not busy.
    calm: f64,
    throughput: f64,
    /// Whether the window before ended with more in flight than the upstream needs.
    full: bool,
}

impl Capacity {
    const fn of(value: f64) -> Self {
        Self {
            value,
            calm: value,
            throughput: 0.0,
            full: false,
        }
    }

    /// Goes on from what a leader knew; 0 is nothing.
    pub(super) const fn resume(known: PerSecond) -> Self {
        Self::of(known.get())
    }

    /// What a successor needs.
    pub(super) const fn checkpoint(&self) -> PerSecond {
        PerSecond::new(self.value)
    }

    pub(super) const fn value(&self) -> f64 {
        self.value
    }

    /// The greater of what it is and what it was before the queue. A service that became slower needs as much in flight
    /// as before; one that lost places needs less, and shows it soon.
    pub(super) fn before_the_queue(&self) -> f64 {
        if self.calm > self.value && !is_off(Mechanism::BeforeTheQueue) {
            self.calm
        } else {
            self.value
        }
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.calm *= factor;
        self.throughput = self.throughput.min(self.value);
    }

    /// Learns from one window; `mean` is the no-load latency in seconds.
    pub(super) fn learn(&mut self, window: &WindowStats, mean: f64) {
        let full = window.ends_full(mean);
        let full_throughout = core::mem::replace(&mut self.full, full) && full;
        let believed = full_throughout || window.throughput > self.value;
        if window.is_busy && self.value > 0.0 && (believed || is_off(Mechanism::FullWindows)) {
            let is_news = is_surprise(window, self.value);
            let weight = if is_news && !is_off(Mechanism::SurpriseWeight) {
                SURPRISE_WEIGHT
            } else {
                BUSY_WEIGHT
            };
            self.value += (window.throughput - self.value) * weight;
            self.throughput = self.value;
        } else if !window.is_busy || self.value <= 0.0 {
            let weight = if self.throughput > 0.0 {
                IDLE_WEIGHT
            } else {
                1.0
            };
            self.throughput += (window.throughput - self.throughput) * weight;
            self.value = self.value.max(self.throughput);
        }
        if !window.is_busy {
            self.calm = self.value;
        }
    }
}

/// Whether so many answers cannot well have come from an upstream of this capacity.
fn is_surprise(window: &WindowStats, capacity: f64) -> bool {
    let expected = capacity * window.span;
    (window.throughput * window.span - expected).abs() > CHANCE * expected.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::testing::{CALM, assert_close};

    const MEAN: f64 = 0.1;

    /// A second with a queue, which ends with more in flight than the upstream needs, or not.
    const fn busy(throughput: f64, is_full: bool) -> WindowStats {
        WindowStats {
            throughput,
            in_flight_at_end: if is_full { 1_000.0 } else { 0.0 },
            is_busy: true,
            ..CALM
        }
    }

    const fn calm(throughput: f64) -> WindowStats {
        WindowStats {
            throughput,
            in_flight_at_end: 0.0,
            ..CALM
        }
    }

    /// What is learned from each, where 100 a second are known.
    #[test]
    fn what_comes_out_while_a_queue_stands_is_all_and_at_least_so_much_otherwise() {
        let table: [(&str, &[WindowStats], f64); 9] = [
            ("less, no queue", &[calm(50.0)], 100.0),
            ("more, no queue", &[calm(200.0)], 200.0),
            ("and again", &[calm(200.0), calm(300.0)], 220.0),
            ("far more, a queue", &[busy(150.0, false)], 125.0),
            ("little more", &[busy(110.0, false)], 101.5),
            (
                "it ran empty",
                &[busy(50.0, false), busy(50.0, false)],
                100.0,
            ),
            ("it began empty", &[busy(50.0, true)], 100.0),
            ("far less", &[busy(100.0, true), busy(50.0, true)], 75.0),
            ("little less", &[busy(100.0, true), busy(90.0, true)], 98.5),
        ];
        for (name, windows, expected) in table {
            let mut capacity = Capacity::of(100.0);
            for window in windows {
                capacity.learn(window, MEAN);
            }
            assert_close(capacity.value(), expected, name);
        }
    }

    #[test]
    fn the_first_window_is_all_that_is_known() {
        for first in [calm(70.0), busy(70.0, true)] {
            let mut capacity = Capacity::of(0.0);
            capacity.learn(&first, MEAN);
            assert_close(capacity.value(), 70.0, "first");
        }
    }

    #[test]
    fn what_it_was_before_the_queue_is_remembered_until_the_next_calm() {
        let mut capacity = Capacity::of(100.0);
        capacity.learn(&busy(100.0, true), MEAN);
        capacity.learn(&busy(50.0, true), MEAN);
        assert_close(capacity.value(), 75.0, "now");
        assert_close(capacity.before_the_queue(), 100.0, "before");
        capacity.learn(&calm(50.0), MEAN);
        assert_close(capacity.before_the_queue(), 75.0, "calm");
    }

    #[test]
    fn capacity_goes_with_the_endpoints() {
        let mut capacity = Capacity::of(100.0);
        capacity.learn(&calm(100.0), MEAN);
        capacity.scale(0.5);
        assert_close(capacity.value(), 50.0, "now");
        assert_close(capacity.before_the_queue(), 50.0, "before");
        capacity.learn(&calm(40.0), MEAN);
        assert_close(
            capacity.value(),
            50.0,
            "what more of them gave is forgotten",
        );
    }
}
