//! How many answers a second the upstream gives while requests come together.
//!
//! The throughput of a window is low if its requests came in one pack: the upstream had nothing to do for most of the time. While the pack
//! was in flight, it gave more. By Little's law, the upstream gives n / T answers a second while n requests are in flight that take T each.
//! The number that a request of the window met is the load at its admission. Poisson arrivals meet the average number in flight (R. W. Wolff,
//! "Poisson Arrivals See Time Averages", Operations Research 30(2), 1982). To meet more than chance explains means to come together.
//! In a pack of n requests each meets half of the others on average. So a pack shows half of what it may be, with or without a queue.

use super::window::WindowStats;
use crate::ablation::{Mechanism, is_off};
use crate::loads::Loads;

/// Requests came together if they met more others than the average in flight by this many standard deviations of chance.
const CHANCE: f64 = 3.0;

/// Answers a second while the requests of a window came together; `None` if they did not. `met` are the loads at the admission of those
/// that were answered.
pub(super) fn rate_together(window: &WindowStats, met: &Loads) -> Option<f64> {
    // How long requests are in flight for each answer, without a latency too, seconds.
    let occupancy = window.in_flight / window.throughput;
    if met.n < 2.0 || !occupancy.is_normal() || is_off(Mechanism::Together) {
        return None;
    }
    // A load includes the request itself.
    let others = met.mean() - 1.0;
    // The variance of a time average of Poisson arrivals.
    let chance = (2.0 * window.in_flight * occupancy / window.span.max(occupancy)).sqrt();
    if others <= window.in_flight + CHANCE * chance {
        return None;
    }
    Some(others / occupancy.max(window.mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::testing::{CALM, assert_close};

    /// A second with packs of this many requests that take 0.1 s each.
    fn packs(count: u32, of: u32) -> (WindowStats, Loads) {
        let answers = f64::from(count * of);
        let window = WindowStats {
            throughput: answers,
            in_flight: answers * 0.1,
            in_flight_at_end: 0.0,
            ..CALM
        };
        let met = Loads {
            n: answers,
            sum: answers * f64::from(of + 1) / 2.0,
            squares: 0.0,
        };
        (window, met)
    }

    #[test]
    fn a_pack_shows_half_of_what_was_served_at_once() {
        for (count, of) in [(1, 10), (1, 100), (1, 1_000), (2, 100)] {
            let (window, met) = packs(count, of);
            let rate = rate_together(&window, &met).unwrap();
            assert_close(rate, f64::from(of - 1) / 2.0 / 0.1, "half of the others");
        }
    }

    #[test]
    fn requests_that_meet_no_more_than_chance_explains_came_apart() {
        // 100 a second that take 0.1 s: ten are in flight on average.
        let met = |others: f64| Loads {
            n: 100.0,
            sum: 100.0 * (others + 1.0),
            squares: 0.0,
        };
        for (others, expected) in [(8.0, false), (10.0, false), (14.0, false), (14.5, true)] {
            let found = rate_together(&CALM, &met(others));
            assert_eq!(found.is_some(), expected, "{others}: {found:?}");
        }
    }

    #[test]
    fn one_answer_or_none_in_flight_shows_nothing() {
        let (window, met) = packs(1, 1);
        assert_eq!(rate_together(&window, &met), None);
        let (window, met) = packs(1, 10);
        let instant = WindowStats {
            in_flight: 0.0,
            ..window
        };
        assert_eq!(rate_together(&instant, &met), None);
    }

    /// Requests that go on without a latency are in flight all the time, and no pack.
    #[test]
    fn streams_that_stay_in_flight_are_no_pack() {
        let (window, met) = packs(10, 1);
        let streams = 500.0;
        let beside = WindowStats {
            in_flight: window.in_flight + streams,
            ..window
        };
        let met = Loads {
            sum: met.sum + streams * met.n,
            ..met
        };
        assert_eq!(rate_together(&beside, &met), None);
    }
}
