//! The work that an upstream did, and for which request of a caller: the basis of wasted work.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::header::HeaderMap;
use tokio::time::Instant;

use crate::client::headers::ORIGIN_HEADER;

/// The work for one request.
#[derive(Debug, Clone, Copy)]
pub struct LoggedWork {
    /// The number of the caller's request that caused it.
    pub origin: u64,
    /// When the request was complete at this upstream.
    pub arrived_at: Instant,
    /// Its service time, counted when it got a slot, as in the simulator: work that is broken off counts in full.
    pub work: Duration,
}

/// All work of an upstream so far.
#[derive(Debug, Default)]
pub(super) struct WorkLog(Mutex<Vec<LoggedWork>>);

/// A request whose work will be logged once it has a slot.
#[derive(Debug)]
pub(super) struct LogEntry {
    log: Arc<WorkLog>,
    origin: u64,
    arrived_at: Instant,
}

/// The number of the caller's request that caused this request; `None` if the header is missing.
pub(super) fn origin(headers: &HeaderMap) -> Option<u64> {
    headers.get(ORIGIN_HEADER)?.to_str().ok()?.parse().ok()
}

impl WorkLog {
    /// The entry of a request that is complete now; `None` if its origin is not known.
    pub(super) fn entry(self: &Arc<Self>, headers: &HeaderMap) -> Option<LogEntry> {
        Some(LogEntry {
            log: Arc::clone(self),
            origin: origin(headers)?,
            arrived_at: Instant::now(),
        })
    }

    pub(super) fn read(&self) -> Vec<LoggedWork> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LoggedWork>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogEntry {
    /// Logs the work as it begins.
    pub(super) fn note(self, work: Duration) {
        self.log.lock().push(LoggedWork {
            origin: self.origin,
            arrived_at: self.arrived_at,
            work,
        });
    }
}
