//! How time passes for an endpoint, which may pause at regular intervals.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use tidegate_sim::profile::{PauseClock, Pauses};

/// Position of an endpoint within its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EndpointPlace {
    pub(super) index: u32,
    pub(super) count: u32,
}

/// The clock of one endpoint.
#[derive(Debug)]
pub(super) struct EndpointClock {
    place: EndpointPlace,
    pace: Mutex<PausesInForce>,
}

/// The pauses that are in force.
#[derive(Debug, Clone, Copy)]
pub(super) struct PausesInForce {
    /// When the run began.
    start: Instant,
    pauses: Option<PauseClock>,
}

impl EndpointClock {
    /// A clock on which the run begins now.
    pub(super) fn new(place: EndpointPlace, pauses: Option<Pauses>) -> Self {
        let clock = Self {
            place,
            pace: Mutex::new(PausesInForce {
                start: Instant::now(),
                pauses: None,
            }),
        };
        clock.change(pauses);
        clock
    }

    /// Begins the run at `start`.
    pub(super) fn begin(&self, start: Instant) {
        self.edit(|pace| pace.start = start);
    }

    pub(super) fn change(&self, pauses: Option<Pauses>) {
        let EndpointPlace { index, count } = self.place;
        let pauses = pauses.and_then(|pauses| pauses.clock(index, count));
        self.edit(|pace| pace.pauses = pauses);
    }

    pub(super) fn pace(&self) -> PausesInForce {
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn edit(&self, edit: impl FnOnce(&mut PausesInForce)) {
        edit(&mut self.pace.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl PausesInForce {
    /// When work that begins at `from` is done.
    pub(super) fn finish(&self, from: Instant, work: Duration) -> Instant {
        match self.pauses {
            None => from + work,
            Some(clock) => {
                let done = clock.finish(from.saturating_duration_since(self.start), work);
                self.start + done
            }
        }
    }

    /// Waits until the endpoint runs.
    pub(super) async fn awake(&self) {
        let now = Instant::now();
        let moment = self.finish(now, Duration::ZERO);
        if moment > now {
            sleep_until(moment).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_stands_still_in_the_pauses_of_the_run() {
        let pauses = Pauses {
            every: Duration::from_secs(2),
            length: Duration::from_secs(1),
            together: false,
        };
        let second = Duration::from_secs(1);
        let of = |index| EndpointClock::new(EndpointPlace { index, count: 2 }, Some(pauses));
        let (first, other) = (of(0), of(1));
        let start = Instant::now() + 100 * second;
        for clock in [&first, &other] {
            clock.begin(start);
        }
        let done = |clock: &EndpointClock| clock.pace().finish(start + second / 2, second) - start;
        assert_eq!(
            done(&first),
            second * 5 / 2,
            "runs until 1 s, then from 2 s"
        );
        assert_eq!(done(&other), second * 2, "runs from 1 s to 2 s");
        first.change(None);
        assert_eq!(done(&first), second * 3 / 2);
    }
}
