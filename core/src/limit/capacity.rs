//! How many answers a second the upstream can give.
//!
//! A busy upstream shows it: what comes out while a queue stands is all it can do. One that is not busy shows only
//! that it can do at least so much. A window in which the queue ran empty shows less than the truth, so a lower
//! value is believed only from windows that began and ended with more in flight than the upstream needs.

use super::figures::Figures;
use crate::ablation::{Mechanism, is_off};

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
    /// Whether a queue that stood has shown it.
    shown: bool,
    /// Whether the window before ended with more in flight than the upstream needs.
    full: bool,
}

impl Capacity {
    pub(super) const fn of(value: f64) -> Self {
        Self {
            value,
            calm: value,
            throughput: 0.0,
            shown: false,
            full: false,
        }
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

    /// Whether more than the value would have to queue: else it is only what has been asked for.
    pub(super) const fn is_shown(&self) -> bool {
        self.shown
    }

    /// A queue stands: what comes out is all that the upstream can do.
    pub(super) const fn show(&mut self) {
        self.shown = true;
    }

    /// There was no queue.
    pub(super) const fn doubt(&mut self) {
        self.shown = false;
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.calm *= factor;
        self.throughput = self.throughput.min(self.value);
    }

    /// Learns from one window; `mean` is the no-load latency in seconds.
    pub(super) fn learn(&mut self, figures: &Figures, mean: f64) {
        let full = figures.in_flight_at_end > figures.throughput * mean;
        let full_throughout = core::mem::replace(&mut self.full, full) && full;
        let believed =
            full_throughout || figures.throughput > self.value || is_off(Mechanism::FullWindows);
        if figures.busy && self.value > 0.0 && believed {
            let weight = if is_surprise(figures, self.value) && !is_off(Mechanism::SurpriseWeight) {
                SURPRISE_WEIGHT
            } else {
                BUSY_WEIGHT
            };
            self.value += (figures.throughput - self.value) * weight;
            self.throughput = self.value;
        } else if !figures.busy || self.value <= 0.0 {
            let weight = if self.throughput > 0.0 {
                IDLE_WEIGHT
            } else {
                1.0
            };
            self.throughput += (figures.throughput - self.throughput) * weight;
            self.value = self.value.max(self.throughput);
        }
        if !figures.busy {
            self.calm = self.value;
        }
    }
}

/// Whether so many answers cannot well have come from an upstream of this capacity.
fn is_surprise(figures: &Figures, capacity: f64) -> bool {
    let expected = capacity * figures.span;
    (figures.throughput * figures.span - expected).abs() > CHANCE * expected.sqrt()
}
