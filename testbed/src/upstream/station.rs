//! Slots and the waiting line in front of them.
//!
//! A slot is handed from one request to the next in order of arrival. Timers wake
//! up late, by half a millisecond on average; left alone that would make a server
//! of 400 requests a second one of 390, and the oracle wrong. So a station keeps
//! account of the time by which services were too long, and the next ones are
//! shorter by as much: single times are off by a millisecond, the capacity is exact.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

#[derive(Debug)]
pub(super) struct Station {
    line: Mutex<Line>,
}

#[derive(Debug)]
struct Line {
    slots: u32,
    busy: u32,
    waiting: VecDeque<oneshot::Sender<Slot>>,
    /// Time by which services were longer than they should have been.
    overrun: Duration,
}

/// The line is full.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineFull;

/// A slot that is held; dropping it hands it on.
#[derive(Debug)]
pub(super) struct Slot {
    station: Option<Arc<Station>>,
    since: Instant,
}

impl Station {
    pub(super) fn new(slots: u32) -> Arc<Self> {
        let line = Line {
            slots,
            busy: 0,
            waiting: VecDeque::new(),
            overrun: Duration::ZERO,
        };
        Arc::new(Self {
            line: Mutex::new(line),
        })
    }

    /// Waits for a slot, unless `max_waiting` others wait already.
    pub(super) async fn enter(self: Arc<Self>, max_waiting: Option<u32>) -> Result<Slot, LineFull> {
        let turn = {
            let mut line = self.lock();
            if line.busy < line.slots {
                line.busy += 1;
                drop(line);
                return Ok(Slot::now(self));
            }
            let bound = max_waiting.map(|max| usize::try_from(max).unwrap_or(usize::MAX));
            if bound.is_some_and(|max| line.waiting.len() >= max) {
                return Err(LineFull);
            }
            let (sender, turn) = oneshot::channel();
            line.waiting.push_back(sender);
            turn
        };
        // A sender is only dropped unused when the station is.
        turn.await.map_err(|_| LineFull)
    }

    /// Changes the number of slots; those in use beyond it are not handed on.
    pub(super) fn resize(self: &Arc<Self>, slots: u32) {
        self.lock().slots = slots;
        loop {
            let mut line = self.lock();
            if line.busy >= line.slots {
                return;
            }
            let Some(next) = line.waiting.pop_front() else {
                return;
            };
            line.busy += 1;
            drop(line);
            // A slot nobody takes is handed on by its own drop.
            drop(next.send(Slot::now(Arc::clone(self))));
        }
    }

    /// Requests in slots and in the line.
    pub(super) fn occupancy(&self) -> (u32, usize) {
        let line = self.lock();
        (
            line.busy,
            line.waiting.iter().filter(|turn| !turn.is_closed()).count(),
        )
    }

    fn release(self: Arc<Self>) {
        loop {
            let mut line = self.lock();
            if line.busy > line.slots {
                line.busy -= 1;
                return;
            }
            let Some(next) = line.waiting.pop_front() else {
                line.busy -= 1;
                return;
            };
            drop(line);
            match next.send(Slot::now(Arc::clone(&self))) {
                Ok(()) => return,
                // This request has gone away; the slot must not release itself, the loop does.
                Err(mut slot) => slot.station = None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn now(station: Arc<Station>) -> Self {
        Self {
            station: Some(station),
            since: Instant::now(),
        }
    }

    /// Holds the slot for `service`, counted from when it became free.
    pub(super) async fn serve(self, service: Duration) {
        let Some(station) = self.station.clone() else {
            return;
        };
        let paid_back = {
            let mut line = station.lock();
            let paid_back = line.overrun.min(service);
            line.overrun -= paid_back;
            paid_back
        };
        let due = service - paid_back;
        sleep_until(self.since + due).await;
        station.lock().overrun += self.since.elapsed().saturating_sub(due);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(station) = self.station.take() {
            station.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn line_is_first_come_first_served_and_bounded() {
        let station = Station::new(1);
        let slot = Arc::clone(&station).enter(Some(1)).await.unwrap();
        let waiting = tokio::spawn(Arc::clone(&station).enter(Some(1)));
        while station.occupancy() != (1, 1) {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            Arc::clone(&station).enter(Some(1)).await.unwrap_err(),
            LineFull
        );
        drop(slot);
        drop(waiting.await.unwrap().unwrap());
        assert_eq!(station.occupancy(), (0, 0));
    }

    #[tokio::test]
    async fn request_that_went_away_does_not_keep_the_slot() {
        let station = Station::new(1);
        let slot = Arc::clone(&station).enter(None).await.unwrap();
        let gone = tokio::spawn(Arc::clone(&station).enter(None));
        while station.occupancy() != (1, 1) {
            tokio::task::yield_now().await;
        }
        gone.abort();
        let _ = gone.await;
        drop(slot);
        assert_eq!(station.occupancy(), (0, 0));
    }

    #[tokio::test]
    async fn more_slots_let_waiting_requests_in() {
        let station = Station::new(1);
        let _first = Arc::clone(&station).enter(None).await.unwrap();
        let waiting = tokio::spawn(Arc::clone(&station).enter(None));
        while station.occupancy() != (1, 1) {
            tokio::task::yield_now().await;
        }
        station.resize(2);
        let _second = waiting.await.unwrap().unwrap();
        assert_eq!(station.occupancy(), (2, 0));
        station.resize(1);
        drop(_second);
        assert_eq!(station.occupancy(), (1, 0));
    }
}
