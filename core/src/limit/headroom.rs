//! Requests in flight above Little's law: the room that keeps an upstream busy between arrivals.

use crate::ablation::{Mechanism, is_off};

/// Room above Little's law, in standard deviations of a Poisson in-flight.
const HEADROOM_DEVIATIONS: f64 = 1.5;
/// The room grows with this power of the number of endpoint queues that these requests fill.
const LINES: f64 = 0.25;
/// Fewer requests than this above Little's law are no queue.
const MIN_HEADROOM: f64 = 2.0;

/// Room above `carried` requests in flight for this many `endpoints` (0: unknown).
///
/// Each endpoint has its own queue, and one may run empty while another is long. Independent queues would need the square
/// root of their number times as much room; a load balancer evens out a part of that. A proxy with fewer requests in flight
/// than there are endpoints shares a full service with other proxies, and those queues hold their requests.
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
    fn more_endpoints_need_more_room_only_if_requests_fill_their_queues() {
        let lone = headroom(400.0, 1);
        assert!(
            (headroom(400.0, 16) / lone - 2.0).abs() < 1e-9,
            "all endpoint queues are full"
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
