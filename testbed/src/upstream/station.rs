//! Slots and the waiting line in front of them.
//!
//! A slot passes from one request to the next in order of arrival. Timers fire late, by half a millisecond on average;
//! uncorrected, that would turn a server of 400 requests a second into one of 390, and make the oracle wrong. So a station
//! sums up the time by which services were too long, and shortens the next ones by as much: single times are off by a
//! millisecond, but the capacity is exact.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::pauses::PausesInForce;
use tidegate_sim::profile::Contention;

#[derive(Debug)]
pub(super) struct Station {
    line: Mutex<WaitingLine>,
}

#[derive(Debug)]
struct WaitingLine {
    slots: u32,
    busy: u32,
    waiting: VecDeque<oneshot::Sender<HeldSlot>>,
    contention: Option<Contention>,
    /// Time by which services were longer than they should have been.
    overrun: Duration,
}

/// The line is full.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineFull;

/// A place in the line, or the slot itself if one was free.
#[derive(Debug)]
pub(super) enum Turn {
    Now(HeldSlot),
    Later(oneshot::Receiver<HeldSlot>),
}

impl Turn {
    /// Waits for the slot; `None` when the station is gone.
    pub(super) async fn slot(self) -> Option<HeldSlot> {
        match self {
            Self::Now(slot) => Some(slot),
            Self::Later(turn) => turn.await.ok(),
        }
    }
}

/// A slot in use; dropping it passes it on.
#[derive(Debug)]
pub(super) struct HeldSlot {
    station: Option<Arc<Station>>,
    since: Instant,
    /// By which factor the requests in the other slots lengthen service.
    slowdown: f64,
}

impl Station {
    pub(super) fn new(slots: u32, contention: Option<Contention>) -> Arc<Self> {
        let line = WaitingLine {
            slots,
            busy: 0,
            waiting: VecDeque::new(),
            contention,
            overrun: Duration::ZERO,
        };
        Arc::new(Self {
            line: Mutex::new(line),
        })
    }

    /// Takes a slot or a place in the line, unless `max_waiting` others wait already.
    pub(super) fn line_up(self: &Arc<Self>, max_waiting: Option<u32>) -> Result<Turn, LineFull> {
        let mut line = self.lock();
        if line.busy < line.slots {
            line.busy += 1;
            return Ok(Turn::Now(HeldSlot::now(self, &line)));
        }
        let bound = max_waiting.map(|max| usize::try_from(max).unwrap_or(usize::MAX));
        if bound.is_some_and(|max| line.waiting.len() >= max) {
            return Err(LineFull);
        }
        let (sender, turn) = oneshot::channel();
        line.waiting.push_back(sender);
        Ok(Turn::Later(turn))
    }

    /// Changes how much requests that get a slot from now on are slowed down.
    pub(super) fn contend(&self, contention: Option<Contention>) {
        self.lock().contention = contention;
    }

    /// Changes the number of slots; surplus slots in use are not passed on.
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
            let slot = HeldSlot::now(self, &line);
            drop(line);
            // A slot that is not taken is passed on when it is dropped.
            drop(next.send(slot));
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
            let slot = HeldSlot::now(&self, &line);
            drop(line);
            match next.send(slot) {
                Ok(()) => return,
                // This request has gone away. The loop passes the slot on, so the slot must not release itself.
                Err(mut slot) => slot.station = None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingLine> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldSlot {
    fn now(station: &Arc<Station>, line: &WaitingLine) -> Self {
        let contention = line.contention;
        Self {
            station: Some(Arc::clone(station)),
            since: Instant::now(),
            slowdown: contention.map_or(1.0, |contention| contention.factor(line.busy.into())),
        }
    }

    /// How long service takes that would take `service` on an otherwise idle endpoint.
    pub(super) fn length(&self, service: Duration) -> Duration {
        service.mul_f64(self.slowdown)
    }

    /// Works for `service`, counted from when the slot became free; keeps the slot.
    pub(super) async fn serve(&mut self, service: Duration, pace: PausesInForce) {
        let Some(station) = self.station.as_ref() else {
            return;
        };
        let service = self.length(service);
        let paid_back = {
            let mut line = station.lock();
            let paid_back = line.overrun.min(service);
            line.overrun -= paid_back;
            paid_back
        };
        let due = pace.finish(self.since, service - paid_back);
        sleep_until(due).await;
        station.lock().overrun += due.elapsed();
    }
}

impl Drop for HeldSlot {
    fn drop(&mut self) {
        if let Some(station) = self.station.take() {
            station.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_up(station: &Arc<Station>) -> Turn {
        station.line_up(Some(1)).unwrap()
    }

    async fn slot(turn: Turn) -> HeldSlot {
        turn.slot().await.unwrap()
    }

    #[tokio::test]
    async fn line_is_first_come_first_served_and_bounded() {
        let station = Station::new(1, None);
        let first = slot(line_up(&station)).await;
        let waiting = line_up(&station);
        assert_eq!(station.occupancy(), (1, 1));
        assert_eq!(station.line_up(Some(1)).unwrap_err(), LineFull);
        drop(first);
        drop(slot(waiting).await);
        assert_eq!(station.occupancy(), (0, 0));
    }

    #[tokio::test]
    async fn request_that_went_away_does_not_keep_the_slot() {
        let station = Station::new(1, None);
        let first = slot(line_up(&station)).await;
        let gone = line_up(&station);
        assert_eq!(station.occupancy(), (1, 1));
        drop(gone);
        drop(first);
        assert_eq!(station.occupancy(), (0, 0));
    }

    #[tokio::test]
    async fn more_slots_let_waiting_requests_in() {
        let station = Station::new(1, None);
        let _first = slot(line_up(&station)).await;
        let waiting = line_up(&station);
        station.resize(2);
        let second = slot(waiting).await;
        assert_eq!(station.occupancy(), (2, 0));
        station.resize(1);
        drop(second);
        assert_eq!(station.occupancy(), (1, 0));
    }

    #[tokio::test]
    async fn slots_slow_each_other_down_above_the_bound() {
        let contention = Contention {
            above: 1,
            slope: 0.5,
        };
        let station = Station::new(2, Some(contention));
        let first = slot(line_up(&station)).await;
        let second = slot(line_up(&station)).await;
        let third = line_up(&station);
        drop(first);
        let third = slot(third).await;
        let slowdowns = [second.slowdown, third.slowdown];
        station.contend(None);
        drop((second, third));
        let free = slot(line_up(&station)).await;
        let is = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(
            slowdowns.iter().all(|found| is(*found, 1.5)),
            "{slowdowns:?}"
        );
        assert!(is(free.slowdown, 1.0), "{}", free.slowdown);
    }
}
