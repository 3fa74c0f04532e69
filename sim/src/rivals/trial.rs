//! Requests for the tests of single rivals.

use std::time::Duration;

use tidegate_core::{Criticality, Failure, Instant, Outcome};

use crate::contender::{Admission, Ask, Contender, Done};

/// The time `millis` after the start.
pub(super) fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A first attempt of no special importance, for upstream 0 by worker 0, with nothing in flight.
pub(super) const fn first_ask() -> Ask<'static> {
    Ask {
        request: 1,
        worker: 0,
        upstream: 0,
        service: None,
        path: "/",
        criticality: Criticality::Critical,
        cohort: 0,
        caller: None,
        agent: None,
        time_left: None,
        attempt: 1,
        endpoints: 1,
        in_flight: 0,
        has_body: false,
    }
}

/// The end of such a request.
pub(super) const fn done(outcome: Outcome, latency_ms: u64) -> Done {
    Done {
        request: 1,
        worker: 0,
        upstream: 0,
        endpoint: 0,
        outcome,
        is_answered: !matches!(outcome, Outcome::Cancelled),
        latency: Duration::from_millis(latency_ms),
        waited: None,
        in_flight_before: 1,
        in_flight: 1,
        criticality: Criticality::Critical,
        attempt: 1,
    }
}

/// A 500 of the upstream's own.
pub(super) const FAILURE: Outcome = Outcome::Failure(Failure::Status);

/// Ends a request well.
pub(super) fn complete_ok(contender: &mut dyn Contender, latency_ms: u64, now_ms: u64) {
    contender.complete(&done(Outcome::Success, latency_ms), at(now_ms));
}

/// Sends a request that ends with `outcome` at once; returns whether it was admitted.
pub(super) fn send(contender: &mut dyn Contender, outcome: Outcome, now_ms: u64) -> bool {
    let is_admitted = contender.admit(&first_ask(), at(now_ms)) == Admission::Admit;
    if is_admitted {
        contender.complete(&done(outcome, 1), at(now_ms));
    }
    is_admitted
}
