//! Where callers' requests come from.

use super::call::SimCall;
use crate::arrivals::{self, ArrivalStream};
use crate::scenario::Scenario;

/// The requests of callers.
#[derive(Debug)]
pub(super) enum RequestSource<'a> {
    /// All of them are calls from the beginning; `next` is not due yet.
    Listed { next: usize, count: usize },
    /// Each is drawn when the one before it is due.
    Drawn(ArrivalStream<'a>),
}

impl<'a> RequestSource<'a> {
    /// All requests, in the order of time, and their calls.
    pub(super) fn list(scenario: &Scenario) -> (Self, Vec<SimCall>) {
        let arrivals = arrivals::schedule(scenario).into_iter();
        let calls: Vec<SimCall> = arrivals.map(SimCall::new).collect();
        let count = calls.len();
        (Self::Listed { next: 0, count }, calls)
    }

    /// Requests that are drawn one after the other; there is no call yet.
    pub(super) fn drawn(scenario: &'a Scenario) -> (Self, Vec<SimCall>) {
        (Self::Drawn(ArrivalStream::new(scenario)), Vec::new())
    }
}
