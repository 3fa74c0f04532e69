//! Faults of a proxy: crashes, pushed configurations, late workers, clock steps, proxies that come and go.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A fault of a proxy or of its control plane; in a scenario `kind = "worker-crash"` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ProxyFault {
    /// A worker's plugin crashes and restarts. Its requests in flight continue, but the new plugin is not told about them.
    WorkerCrash {
        /// The worker, below [`crate::scenario::Scenario::workers`].
        worker: u32,
    },
    /// The leader, which decides for all workers, is gone and is not replaced.
    LeaderLost,
    /// The leader hands over to another worker.
    LeaderChanged,
    /// The same configuration is pushed again.
    Push,
    /// Another configuration is pushed, with a stricter objective.
    PushOther,
    /// The configuration is pushed with another latency objective, which holds from now on.
    PushObjective {
        /// The new target.
        #[serde(with = "humantime_serde")]
        latency: Duration,
    },
    /// A configuration with errors is pushed.
    PushRejected,
    /// The leader's VM crashes; its lease must expire before another worker replaces it.
    LeaderCrash,
    /// A worker's thread is so busy that its ticks are delayed.
    WorkerLate {
        /// The worker, below [`crate::scenario::Scenario::workers`].
        worker: u32,
        /// For how long.
        #[serde(with = "humantime_serde")]
        lasts: Duration,
    },
    /// The proxy's clock jumps.
    ClockStep {
        /// By how many milliseconds; negative: backward.
        millis: i64,
    },
    /// The proxy gets no more requests: it drains.
    ProxyLeaves,
    /// A new proxy replaces one that left.
    ProxyJoins,
}
