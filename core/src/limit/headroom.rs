//! Requests in flight above Little's law: the room that keeps an upstream busy between arrivals.

use crate::ablation::{Mechanism, is_off};

/// Room above Little's law, in standard deviations of a Poisson in-flight.
const HEADROOM_DEVIATIONS: f64 = 1.5;
/// And this power of the number of lines that these requests fill.
const LINES: f64 = 0.25;
/// Fewer requests than this above Little's law are no queue.
const MIN_HEADROOM: f64 = 2.0;

/// Room above `carried` requests in flight, behind so many `endpoints` (0: unknown).
///
/// Endpoints have a line each, and one may run empty while another is long. Lines that know nothing of each other
/// would need the root of their number times as much room; a balancer evens out a part of that. Who has fewer in flight
/// than there are endpoints is not alone in front of a service that is full, and what stands in those lines is of others.
pub(super) fn headroom(carried: f64, endpoints: u32) -> f64 {
    let carried = carried.max(0.0);
    let endpoints = f64::from(endpoints).max(1.0);
    let filled = (carried / endpoints).min(1.0);
    let used = (endpoints * filled * filled).max(1.0);
    let lines = if used > 1.0 && !is_off(Mechanism::HeadroomLines) {
        libm::pow(used, LINES)
    } else {
        1.0
    };
    let room = HEADROOM_DEVIATIONS * carried.sqrt() * lines;
    if room > MIN_HEADROOM && !is_off(Mechanism::Headroom) {
        room
    } else {
        MIN_HEADROOM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_lines_is_for_those_who_fill_them() {
        let lone = headroom(400.0, 1);
        assert!(
            (headroom(400.0, 16) / lone - 2.0).abs() < 1e-9,
            "all lines are full"
        );
        assert!(
            (headroom(400.0, 800) / headroom(400.0, 200) - 1.0).abs() < 1e-9,
            "half full, 800 x 1/4"
        );
        assert!(
            (headroom(3.2, 1_000) - headroom(3.2, 1)).abs() < 1e-9,
            "one of many"
        );
    }
}
