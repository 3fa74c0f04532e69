//! How many answers a second the upstream can give.
//!
//! While a queue stands, the throughput is the capacity. While no queue stands, the capacity is at least the throughput.
//! A window in which the queue ran empty shows less than the capacity. So the capacity falls only on windows that began
//! and ended with more in flight than the upstream needs.
//!
//! Where requests come in packs, the throughput while they are in flight is the lower bound.
//!
//! A service that has become slower looks busy, too. While more requests come into flight, there are fewer answers than requests. But
//! its capacity may be the same. Two signs tell it from a queue: its latency does not go on rising, and the limit has room for all
//! requests. So with both signs the capacity does not fall. Nor does it where the fast requests are as fast as ever and only the mean is
//! higher: one endpoint of several may be slow.

use core::time::Duration;

use super::window::WindowStats;
use crate::ablation::{Mechanism, is_off};
use crate::units::PerSecond;

/// Weight of the newest window of a busy upstream when it differs from the ones before ...
const SURPRISE_WEIGHT: f64 = 0.5;
/// ... and when the difference may be chance: within this many standard deviations of a Poisson count.
const BUSY_WEIGHT: f64 = 0.15;
const CHANCE: f64 = 2.0;
/// Weight of the newest window of an upstream that is not busy.
const IDLE_WEIGHT: f64 = 0.2;
/// These weights are for windows with this many answers; a window with fewer weighs less.
const WHOLE_WINDOW: f64 = 10.0;
/// The latency rises if a window's mean is above that of the windows before by more than this share. The weight of the newest window in
/// the latter.
const RISING: f64 = 0.05;
const LATENCY_WEIGHT: f64 = 0.5;

/// The capacity, answers a second; 0 while unknown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Capacity {
    value: f64,
    /// The value when requests were last fast and none was refused.
    calm: f64,
    throughput: f64,
    /// Mean latency of the windows before, seconds; 0 before the first.
    latency: f64,
    /// Whether the window before ended with more in flight than the upstream needs.
    full: bool,
}

impl Capacity {
    const fn of(value: f64) -> Self {
        Self {
            value,
            calm: value,
            throughput: 0.0,
            latency: 0.0,
            full: false,
        }
    }

    /// Continues from the state of an earlier leader; 0: unknown.
    pub(super) const fn resume(known: PerSecond) -> Self {
        Self::of(known.get())
    }

    /// The state for a successor.
    pub(super) const fn checkpoint(&self) -> PerSecond {
        PerSecond::new(self.value)
    }

    pub(super) const fn value(&self) -> f64 {
        self.value
    }

    /// The capacity now or before the queue, whichever is greater. A service that became slower needs as many requests in
    /// flight as before. A service that lost servers needs fewer, and shows that soon.
    pub(super) fn before_the_queue(&self) -> f64 {
        if self.calm > self.value && !is_off(Mechanism::BeforeTheQueue) {
            self.calm
        } else {
            self.value
        }
    }

    /// There was no queue: what looked like a lower capacity was the limit's.
    pub(super) fn return_to_calm(&mut self) {
        self.value = self.before_the_queue();
        self.throughput = self.value;
    }

    pub(super) fn scale(&mut self, factor: f64) {
        self.value *= factor;
        self.calm *= factor;
        self.throughput = self.throughput.min(self.value);
    }

    /// Learns that there was no answer for so long. Where answers are rare, many windows have none.
    pub(super) fn pass(&mut self, span: Duration) {
        if !is_off(Mechanism::AnswersWeigh) {
            let expected = self.throughput * span.as_secs_f64();
            self.throughput *= 1.0 - IDLE_WEIGHT * (expected / WHOLE_WINDOW).min(1.0);
        }
    }

    /// Learns from one window; `mean` is the no-load latency in seconds. `has_room` tells whether the limit has room for all requests
    /// that came.
    pub(super) fn learn(&mut self, window: &WindowStats, mean: f64, has_room: bool) {
        let full = window.ends_full(mean);
        let full_throughout = core::mem::replace(&mut self.full, full) && full;
        let is_rising = self.learn_latency(window.mean);
        let is_hidden = window.is_hidden && !is_off(Mechanism::HiddenLimit);
        let is_only_slower =
            is_hidden || has_room && !is_rising && !is_off(Mechanism::SteadyCapacity);
        let believed = full_throughout && !is_only_slower || window.throughput > self.value;
        if window.is_busy && self.value > 0.0 && (believed || is_off(Mechanism::FullWindows)) {
            let weight = if is_surprise(window, self.value) && !is_off(Mechanism::SurpriseWeight) {
                SURPRISE_WEIGHT
            } else {
                BUSY_WEIGHT
            };
            self.value += (window.throughput - self.value) * weight * evidence(window, self.value);
            self.throughput = self.value;
        } else if !window.is_busy || self.value <= 0.0 {
            let weight = if self.throughput > 0.0 {
                IDLE_WEIGHT * evidence(window, self.throughput)
            } else {
                1.0
            };
            self.throughput += (window.throughput - self.throughput) * weight;
            self.value = self.value.max(self.throughput);
        }
        if window.together > self.value {
            let answers = window.throughput * window.span;
            self.value += (window.together - self.value) * (answers / WHOLE_WINDOW).min(1.0);
        }
        let is_calm = window.is_fast && !window.is_refusing || is_off(Mechanism::CalmCapacity);
        if !window.is_busy && is_calm {
            self.calm = self.value;
        }
    }

    /// Learns the mean latency of the newest window, seconds. Returns whether the latency rises.
    fn learn_latency(&mut self, latency: f64) -> bool {
        let is_rising = latency > self.latency * (1.0 + RISING);
        self.latency += (latency - self.latency) * LATENCY_WEIGHT;
        is_rising
    }
}

/// How much a window tells, 0..=1: by the answers that are expected in it at the rate that is believed. Where answers are rare, a window ends with
/// the answer that it waited for. So the answers that it has would make each short window tell of a high rate. They count if chance does not
/// explain so many.
fn evidence(window: &WindowStats, believed: f64) -> f64 {
    if is_off(Mechanism::AnswersWeigh) {
        return 1.0;
    }
    let rate = if is_surprise(window, believed) {
        window.throughput.max(believed)
    } else {
        believed
    };
    (rate * window.span / WHOLE_WINDOW).min(1.0)
}

/// Whether an upstream of this capacity is unlikely to give as many answers as the window has.
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

    /// The capacity after these windows, if it was 100 a second before.
    #[test]
    fn throughput_is_the_capacity_while_a_queue_stands_and_a_lower_bound_otherwise() {
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
                capacity.learn(window, MEAN, false);
            }
            assert_close(capacity.value(), expected, name);
        }
    }

    /// Answers of a second, the rate while they came together, and the capacity, which was 100 a second before.
    #[test]
    fn a_pack_raises_the_capacity_and_never_lowers_it() {
        for (answers, together, expected) in [
            (50.0, 0.0, 100.0),
            (50.0, 90.0, 100.0),
            (50.0, 500.0, 500.0),
            (5.0, 500.0, 300.0),
        ] {
            for is_busy in [false, true] {
                let mut capacity = Capacity::of(100.0);
                let window = WindowStats {
                    together,
                    is_busy,
                    ..calm(answers)
                };
                capacity.learn(&window, MEAN, false);
                assert_close(capacity.value(), expected, "together");
            }
        }
    }

    #[test]
    fn the_capacity_does_not_fall_where_only_the_mean_shows_a_queue() {
        for (is_hidden, expected) in [(false, 75.0), (true, 100.0)] {
            let mut capacity = Capacity::of(100.0);
            for throughput in [100.0, 50.0] {
                let window = WindowStats {
                    is_hidden,
                    ..busy(throughput, true)
                };
                capacity.learn(&window, MEAN, false);
            }
            assert_close(capacity.value(), expected, "hidden or not");
        }
    }

    #[test]
    fn the_first_window_sets_the_capacity() {
        for first in [calm(70.0), busy(70.0, true)] {
            let mut capacity = Capacity::of(0.0);
            capacity.learn(&first, MEAN, false);
            assert_close(capacity.value(), 70.0, "first");
        }
    }

    #[test]
    fn the_capacity_before_a_queue_is_remembered_until_the_next_calm_window() {
        let mut capacity = Capacity::of(100.0);
        capacity.learn(&busy(100.0, true), MEAN, false);
        capacity.learn(&busy(50.0, true), MEAN, false);
        assert_close(capacity.value(), 75.0, "now");
        assert_close(capacity.before_the_queue(), 100.0, "before");
        capacity.learn(&calm(50.0), MEAN, false);
        assert_close(capacity.before_the_queue(), 75.0, "calm");
    }

    /// A limit that leaves no room for a queue of one request shows no queue, whatever the capacity is.
    #[test]
    fn a_window_of_few_slow_or_refused_requests_is_no_calm_one() {
        let slow = WindowStats {
            is_fast: false,
            ..calm(50.0)
        };
        let refusing = WindowStats {
            is_refusing: true,
            ..calm(50.0)
        };
        let mut capacity = Capacity::of(100.0);
        capacity.learn(&busy(100.0, true), MEAN, false);
        capacity.learn(&busy(50.0, true), MEAN, false);
        capacity.learn(&slow, MEAN, false);
        capacity.learn(&refusing, MEAN, false);
        assert_close(capacity.before_the_queue(), 100.0, "as before");
        capacity.learn(&calm(50.0), MEAN, false);
        assert_close(capacity.before_the_queue(), 75.0, "calm");
    }

    #[test]
    fn capacity_scales_with_the_endpoints() {
        let mut capacity = Capacity::of(100.0);
        capacity.learn(&calm(100.0), MEAN, false);
        capacity.scale(0.5);
        assert_close(capacity.value(), 50.0, "now");
        assert_close(capacity.before_the_queue(), 50.0, "before");
        capacity.learn(&calm(40.0), MEAN, false);
        assert_close(
            capacity.value(),
            50.0,
            "the throughput of more endpoints is forgotten",
        );
    }

    /// The mean latency of a second with half of the throughput, where answers took 0.2 s before; whether the limit has room for all
    /// requests; and the capacity, which was 100 a second before.
    #[test]
    fn a_service_that_is_only_slower_keeps_its_capacity() {
        for (name, latency, has_room, expected) in [
            ("slower, with room", 0.2, true, 100.0),
            ("by chance a bit slower", 0.209, true, 100.0),
            ("slower again: a queue grows", 0.211, true, 75.0),
            ("more than fits: a queue stands", 0.2, false, 75.0),
        ] {
            let mut capacity = Capacity::of(100.0);
            capacity.latency = 0.2;
            capacity.full = true;
            let window = WindowStats {
                mean: latency,
                ..busy(50.0, true)
            };
            capacity.learn(&window, MEAN, has_room);
            assert_close(capacity.value(), expected, name);
        }
    }

    #[test]
    fn more_throughput_is_believed_where_requests_have_room_too() {
        let mut capacity = Capacity::of(100.0);
        capacity.latency = 1.0;
        capacity.learn(&busy(150.0, true), MEAN, true);
        assert_close(capacity.value(), 125.0, "more");
    }

    #[test]
    fn what_the_limit_took_from_the_capacity_comes_back() {
        let mut capacity = Capacity::of(100.0);
        capacity.learn(&calm(100.0), MEAN, false);
        (0..5).for_each(|_| capacity.learn(&busy(20.0, true), MEAN, false));
        assert!(capacity.value() < 50.0);
        capacity.return_to_calm();
        assert_close(capacity.value(), 100.0, "there was no queue");
        capacity.learn(&busy(150.0, true), MEAN, false);
        let more = capacity.value();
        capacity.return_to_calm();
        assert_close(capacity.value(), more, "it is more than before");
    }

    /// Answers, seconds, and the capacity, which was 10 a second before. Chance does not explain ten answers in half a second.
    #[test]
    fn a_window_counts_for_as_much_as_answers_are_expected_in_it() {
        for (answers, span, expected) in [
            (20.0, 1.0, 12.0),
            (10.0, 0.5, 12.0),
            (3.0, 0.2, 10.2),
            (1.0, 0.05, 10.1),
        ] {
            let mut capacity = Capacity::of(10.0);
            capacity.throughput = 10.0;
            let window = WindowStats {
                span,
                throughput: answers / span,
                ..CALM
            };
            capacity.learn(&window, MEAN, false);
            assert_close(capacity.value(), expected, "capacity");
        }
    }

    /// Where answers are rare, each window ends with one. A third of the time has a rate of 1 a second, and the rest a third of this.
    #[test]
    fn windows_that_end_with_an_answer_show_no_higher_capacity() {
        let mut capacity = Capacity::of(0.5);
        for window in 0..1_000 {
            let span = if window % 2 == 0 { 1.0 } else { 3.0 };
            let stats = WindowStats {
                span,
                ..busy(1.0 / span, true)
            };
            capacity.learn(&stats, MEAN, false);
        }
        let value = capacity.value();
        assert!((value - 0.5).abs() < 0.01, "{value}");
    }

    #[test]
    fn time_without_an_answer_lowers_the_throughput_and_not_the_capacity() {
        let mut capacity = Capacity::of(1.0);
        capacity.throughput = 1.0;
        (0..100).for_each(|_| capacity.pass(Duration::from_secs(1)));
        assert!(capacity.throughput < 0.5, "{}", capacity.throughput);
        assert_close(capacity.value(), 1.0, "capacity");
    }
}
