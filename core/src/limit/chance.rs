//! Room in Cruise for requests that come together by chance.
//!
//! Where few requests are in flight, their number varies by as much as its mean. An objective that leaves little time to wait affords less than
//! that, and healthy requests would be refused all the time. The number in flight without a queue is a Poisson count, whatever
//! the latencies are, so the room is a multiple of its standard deviation.

use super::{Limiter, LimiterState};
use crate::ablation::{Mechanism, is_off};
use crate::config::Slo;

/// Room in standard deviations of a Poisson in-flight, and in requests. Of Poisson arrivals, fewer than one in 200 would be refused at any
/// load (Erlang's loss formula).
const DEVIATIONS: f64 = 3.0;
const REQUESTS: f64 = 1.0;
/// After so many seconds without a standing queue there is room again. Before, the capacity is known, and a queue may come back.
const QUEUE_REMEMBERED: f64 = 10.0;

impl Limiter {
    /// What arrivals that come together by chance may need, where the objective affords less. 0 if a queue stood lately, or if the
    /// floor is in doubt and may include one.
    pub(super) fn chance_limit(&self, slo: &Slo) -> f64 {
        let is_clear = match &self.state {
            LimiterState::Cruise(cruise) => !self.has_held || cruise.lasts() >= QUEUE_REMEMBERED,
            LimiterState::Hold(_) => false,
        };
        if !is_clear || self.is_in_doubt(slo) || is_off(Mechanism::ChanceRoom) {
            return 0.0;
        }
        let carried = self.carried();
        let gain = self.burst_feedback.gain().min(1.0) * self.wait_in_use.share_of_bursts();
        carried + room(carried) * gain
    }
}

/// Room above this many requests in flight.
fn room(carried: f64) -> f64 {
    DEVIATIONS * carried.max(0.0).sqrt() + REQUESTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::cruise::Cruise;
    use crate::limit::floor::Floor;
    use crate::limit::in_force::count;
    use crate::limit::testing::{Rig, window};

    /// Erlang's loss formula, by its recursion: the share of Poisson arrivals that meet all places taken.
    fn refused(carried: f64, places: u32) -> f64 {
        (1..=places).fold(1.0, |refused, place| {
            carried * refused / (f64::from(place) + carried * refused)
        })
    }

    #[test]
    fn few_arrivals_come_together_in_greater_numbers_by_chance() {
        for carried in [
            0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 16.0, 50.0, 200.0, 1_000.0,
        ] {
            let places = count(carried + room(carried));
            let share = refused(carried, places);
            assert!(share < 1.0 / 200.0, "{carried} in {places}: {share}");
        }
    }

    /// A limiter that knows a latency of 200 ms, 10 answers a second, and an objective of 300 ms.
    fn with_few_in_flight(has_held: bool) -> Rig {
        let mut rig = Rig::new();
        rig.limiter.floor = Floor::believed(0.2, 0.2, 0.2);
        rig.rounds(20, &window(1_000, 10, 200));
        rig.limiter.has_held = has_held;
        rig
    }

    #[test]
    fn arrivals_that_come_together_by_chance_have_room() {
        // Two are in flight on average. The objective affords them 85 ms, which is one more.
        let mut rig = with_few_in_flight(false);
        assert_eq!(rig.limit(), 7, "2 + 3 x 1.4 + 1");
        rig.limiter.floor = Floor::believed(0.25, 0.25, 0.25);
        assert_eq!(rig.limit(), 4, "the floor may include a queue");
    }

    #[test]
    fn after_a_queue_the_capacity_is_known_for_a_while() {
        let mut rig = with_few_in_flight(true);
        assert_eq!(rig.limit(), 7, "20 s without a queue");
        rig.limiter.state = LimiterState::Cruise(Cruise::default());
        assert_eq!(rig.rounds(9, &window(1_000, 10, 200)).0, 3);
        assert_eq!(rig.rounds(1, &window(1_000, 10, 200)).0, 7);
        rig.limiter.state = LimiterState::Cruise(Cruise::default());
        rig.rounds(10, &window(1_000, 0, 0));
        assert_eq!(rig.limit(), 7, "idle");
    }
}
