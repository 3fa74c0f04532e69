//! Faults of a proxy: crashes, pushed configurations, late workers, clock steps, proxies that come and go.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A fault of a proxy or of its control plane; in a scenario `kind = "worker-crash"` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fault {
    /// A worker's plugin crashes and starts afresh. Its requests in flight go on, and it hears no more of them.
    WorkerCrash {
        /// The worker, below [`crate::scenario::Scenario::workers`].
        worker: u32,
    },
    /// The one that decides for all workers is gone, and nobody takes its place.
    LeaderLost,
    /// The one that decides for all workers hands over to another.
    LeaderChanged,
    /// The configuration is pushed anew.
    Push,
    /// Another one is pushed, which asks for more.
    PushOther,
    /// One is pushed that has errors.
    PushRejected,
    /// The VM of the one that decides for all workers crashes; the lease must run out before another takes its place.
    LeaderCrash,
    /// A worker's thread is so busy that its upkeep waits.
    WorkerLate {
        /// The worker, below [`crate::scenario::Scenario::workers`].
        worker: u32,
        /// For how long.
        #[serde(with = "humantime_serde")]
        lasts: Duration,
    },
    /// The proxy's clock jumps.
    ClockStep {
        /// By so many milliseconds; back where it is less than nothing.
        millis: i64,
    },
    /// The proxy gets no more requests: it drains.
    ProxyLeaves,
    /// A fresh proxy stands where one has left.
    ProxyJoins,
}
