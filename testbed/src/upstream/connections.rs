//! A limit of connections: some are served, each with one request, and some more wait.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use tidegate_sim::profile::Connections;

/// Decides which connections are accepted, and which are served.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    /// Connections that may be open.
    room: Arc<Semaphore>,
    /// Connections that may be served.
    seats: Arc<Semaphore>,
    limit: Connections,
}

/// The right to open a connection.
#[derive(Debug)]
pub(super) struct Ticket {
    room: OwnedSemaphorePermit,
    seats: Arc<Semaphore>,
}

/// The right to be served; it is given back when the last clone is dropped.
#[derive(Debug, Clone)]
#[expect(dead_code, reason = "the permits are held, not read")]
pub(super) struct ConnectionSeat(Arc<(OwnedSemaphorePermit, OwnedSemaphorePermit)>);

impl ConnectionLimit {
    pub(super) fn new(limit: Connections) -> Self {
        let all = limit.max.saturating_add(limit.backlog);
        Self {
            room: Arc::new(Semaphore::new(permits(all))),
            seats: Arc::new(Semaphore::new(permits(limit.max))),
            limit,
        }
    }

    /// A ticket, if there is room.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        let room = Arc::clone(&self.room).try_acquire_owned().ok()?;
        let seats = Arc::clone(&self.seats);
        Some(Ticket { room, seats })
    }

    pub(super) fn has_room(&self) -> bool {
        self.room.available_permits() > 0
    }

    /// Waits until there is room.
    pub(super) async fn room(&self) {
        // An error would mean that the semaphore is closed, which it never is.
        drop(self.room.acquire().await);
    }

    /// Connections that are open and not served.
    pub(super) fn waiting(&self) -> usize {
        let all = permits(self.limit.max.saturating_add(self.limit.backlog));
        let open = all.saturating_sub(self.room.available_permits());
        let served = permits(self.limit.max).saturating_sub(self.seats.available_permits());
        open.saturating_sub(served)
    }
}

impl Ticket {
    /// Waits to be served, in order.
    pub(super) async fn seat(self) -> Option<ConnectionSeat> {
        let seat = self.seats.acquire_owned().await.ok()?;
        Some(ConnectionSeat(Arc::new((seat, self.room))))
    }
}

fn permits(count: u32) -> usize {
    usize::try_from(count)
        .unwrap_or(usize::MAX)
        .min(Semaphore::MAX_PERMITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn so_many_are_served_and_so_many_more_wait() {
        let gate = ConnectionLimit::new(Connections { max: 1, backlog: 1 });
        let served = gate.ticket().unwrap().seat().await.unwrap();
        let kept_by_its_work = served.clone();
        let waits = tokio::spawn(gate.ticket().unwrap().seat());
        assert!(gate.ticket().is_none(), "no room for a third");
        assert!(!gate.has_room());
        assert_eq!(gate.waiting(), 1);
        drop(served);
        assert!(gate.ticket().is_none(), "its work goes on");
        drop(kept_by_its_work);
        let next = waits.await.unwrap().unwrap();
        assert_eq!(gate.waiting(), 0);
        gate.room().await;
        drop(next);
        assert!(gate.ticket().is_some());
    }
}
