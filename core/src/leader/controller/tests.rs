use core::cmp::Ordering;

use super::*;
use crate::breaker::{LocalTrip, TripReason};
use crate::config::{Config, MINIMAL_EXAMPLE};
use crate::tally::Count;

/// A round of 100 ms with this many answers of 50 ms.
fn reports(answers: u64, trips: &[LocalTrip]) -> MergedReports {
    let mut round = MergedReports::empty();
    round.clear(Duration::from_millis(100));
    round.sample.tally.add(Count::Arrivals, answers);
    for _ in 0..answers {
        round.sample.tally.add_success(Duration::from_millis(50));
    }
    round.trips = trips.to_vec();
    round
}

#[test]
fn the_limit_learns_first_then_the_breaker_judges_and_a_trip_lowers_the_next_limit() {
    let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
    let policy = config.default_policy();
    let mut controller = Controller::new(1, None, Instant::ZERO);
    let reason = TripReason::ConsecutiveFailures;
    let failing: &[LocalTrip] = &[LocalTrip {
        sequence: 1,
        epoch: 0,
        reason,
    }];
    let tripped = Some(BreakerTransition::Trip(reason));
    let (same, hold) = (Ordering::Equal, Some(LimitReason::Hold));
    let mut before = policy.limit().initial();
    // The answers and trips of a round; its events, and its limit compared with that of the round before.
    for (tenths, (name, answers, trips, events, order)) in (1..).zip([
        ("has learned", 20, &[][..], (None, None), Ordering::Greater),
        ("trips", 20, failing, (tripped, None), same),
        ("after a trip", 20, &[], (None, hold), Ordering::Less),
        ("is open", 500, &[], (None, None), same),
    ]) {
        let inputs = RoundInputs {
            policy,
            granted: 0,
            uniform: 0.5,
            ahead: Duration::ZERO,
        };
        let now = Instant::ZERO + Duration::from_millis(100 * tenths);
        let changes = controller.decide(&reports(answers, trips), &inputs, now);
        assert_eq!((changes.transition, changes.limit_reason), events, "{name}");
        let limit = controller.directive.limit;
        assert_eq!(limit.cmp(&before), order, "{name}: {limit} after {before}");
        before = limit;
    }
}

/// When any worker answered a request that was admitted at this second, what is known of it.
#[test]
fn the_latest_answered_admission_is_that_of_any_worker_until_the_clock_jumps_back() {
    let config = Config::from_json(MINIMAL_EXAMPLE.as_bytes()).unwrap();
    let mut controller = Controller::new(1, None, Instant::ZERO);
    let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
    for (now, answered, expected) in [(5, 3, 3), (6, 0, 3), (7, 6, 6), (4, 2, 2), (4, 9, 2)] {
        let mut round = reports(1, &[]);
        round.answered_up_to = at(answered);
        let inputs = RoundInputs {
            policy: config.default_policy(),
            granted: 0,
            uniform: 0.0,
            ahead: Duration::ZERO,
        };
        let _ = controller.decide(&round, &inputs, at(now));
        assert_eq!(
            controller.directive.answered_up_to,
            at(expected),
            "{now} {answered}"
        );
    }
}
