//! The last graph that was read, and the last failure.

use std::sync::Arc;

use jiff::Timestamp;
use tidegate_graph::BuiltGraph;
use tokio::sync::watch;

/// A graph that was read.
#[derive(Debug)]
pub struct GoodRead {
    /// The graph.
    pub built: BuiltGraph,
    /// When it was read.
    pub at: Timestamp,
}

/// A failure to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFailure {
    /// When it failed.
    pub at: Timestamp,
    /// Why, on one line, safe to print.
    pub message: String,
}

/// The state at one moment.
#[derive(Clone, Debug, Default)]
pub struct TrafficSnapshot {
    /// Grows with every read, whether it succeeds or fails.
    pub revision: u64,
    /// The last graph that could be read.
    pub good: Option<Arc<GoodRead>>,
    /// The last failure; it may be older than the graph.
    pub last_failure: Option<ReadFailure>,
}

impl TrafficSnapshot {
    /// The last failure, if no graph was read since.
    #[must_use]
    pub fn failure(&self) -> Option<&ReadFailure> {
        let read_at = self.good.as_ref().map(|good| good.at);
        let failure = self.last_failure.as_ref();
        failure.filter(|failure| read_at.is_none_or(|read_at| read_at <= failure.at))
    }
}

/// Handle to the state; cheap to clone.
#[derive(Clone, Debug)]
pub struct LiveTraffic(Arc<watch::Sender<TrafficSnapshot>>);

impl Default for LiveTraffic {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(TrafficSnapshot::default())))
    }
}

impl LiveTraffic {
    /// The state now.
    #[must_use]
    pub fn snapshot(&self) -> TrafficSnapshot {
        self.0.borrow().clone()
    }

    /// Changes with every read.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<TrafficSnapshot> {
        self.0.subscribe()
    }

    /// Sets the result of a read. After a failure, the last graph stays.
    pub fn set(&self, read: Result<BuiltGraph, String>, at: Timestamp) {
        self.0.send_modify(|state| {
            state.revision += 1;
            match read {
                Ok(built) => state.good = Some(Arc::new(GoodRead { built, at })),
                Err(message) => state.last_failure = Some(ReadFailure { at, message }),
            }
        });
    }
}
