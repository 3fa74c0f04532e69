//! Envoy's own static protection of a cluster, beside Tidegate's.

use std::time::Duration;

/// Envoy's static circuit breaker of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CircuitBreakerThresholds {
    /// Maximum of connections (HTTP/1.1) of the cluster.
    pub max_connections: u32,
    /// Maximum of requests that wait for a connection.
    pub max_pending_requests: u32,
    /// Maximum of requests in flight.
    pub max_requests: u32,
}

impl CircuitBreakerThresholds {
    /// Envoy's defaults: 1,024 of each.
    #[must_use]
    pub const fn envoy_default() -> Self {
        Self {
            max_connections: 1_024,
            max_pending_requests: 1_024,
            max_requests: 1_024,
        }
    }

    /// Effectively no limit.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self {
            max_connections: 1_000_000,
            max_pending_requests: 1_000_000,
            max_requests: 1_000_000,
        }
    }

    /// At most `requests` in flight, none waiting: right only for a known capacity.
    #[must_use]
    pub const fn tuned(requests: u32) -> Self {
        // A pending request has no connection yet. With HTTP/1.1, requests wait there for a new connection, so that 0 would
        // refuse even the first request.
        Self {
            max_connections: requests,
            max_pending_requests: requests,
            max_requests: requests,
        }
    }
}

/// Outlier detection of a cluster: failing hosts are ejected for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutlierSettings {
    /// Failures in a row that eject a host.
    pub consecutive_5xx: u32,
    /// Interval between two checks of ejected hosts.
    pub interval: Duration,
    /// Length of the first ejection; grows with each further one.
    pub base_ejection_time: Duration,
    /// Greatest share of hosts that may be ejected, in percent.
    pub max_ejection_percent: u32,
}

impl OutlierSettings {
    /// Envoy's defaults, except that a single host may be ejected.
    #[must_use]
    pub const fn envoy_default() -> Self {
        Self {
            consecutive_5xx: 5,
            interval: Duration::from_secs(10),
            base_ejection_time: Duration::from_secs(30),
            max_ejection_percent: 100,
        }
    }
}
