//! What protects the upstream in a cell: a contender of the benchmark, or static breakers with values of a study.
//!
//! The benchmark's contenders ([`Variant`]) run with the settings of their documentation. The studies also turn the
//! knobs of Istio's `connectionPool`; these are Envoy's thresholds under other names: `maxConnections`,
//! `http1MaxPendingRequests` and `maxRequestsPerConnection`.

use std::time::Duration;

use tidegate_sim::scenario::Scenario;
use tidegate_testbed::envoy::{CircuitBreakerThresholds, Cluster, EnvoyBuilder, OutlierSettings};
use tidegate_testbed::variant::Variant;

/// Values of Istio's `connectionPool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    /// `tcp.maxConnections`.
    pub connections: u32,
    /// `http.http1MaxPendingRequests`.
    pub pending: u32,
    /// `http.maxRequestsPerConnection`; 0: without end.
    pub requests_per_connection: u32,
}

/// What protects the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// One of the benchmark's.
    Known(Variant),
    /// Static breakers with these values.
    Static(Pool),
    /// Static breakers and outlier detection with these values.
    StaticOutlier(Pool, OutlierSettings),
}

impl Protection {
    /// No protection.
    pub const NONE: Self = Self::Known(Variant::None);
    /// This project's filter.
    pub const TIDEGATE: Self = Self::Known(Variant::Tidegate);

    /// The values of section 4.2 of "Efficient service mesh traffic management" (2026): 100 connections, a pool of
    /// 50, out for 10 s after 5 errors in a row.
    pub const EFFICIENT: Self = Self::StaticOutlier(
        Pool {
            connections: 100,
            pending: 50,
            requests_per_connection: 0,
        },
        OutlierSettings {
            consecutive_5xx: 5,
            interval: Duration::from_secs(1),
            base_ejection_time: Duration::from_secs(10),
            max_ejection_percent: 100,
        },
    );

    /// Its name in results.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Known(variant) => variant.name(),
            Self::Static(_) => "static",
            Self::StaticOutlier(..) => "static-outlier",
        }
    }

    /// Whether it is this project's filter.
    #[must_use]
    pub fn is_tidegate(&self) -> bool {
        *self == Self::TIDEGATE
    }

    /// Adds its settings to a cluster.
    #[must_use]
    pub const fn cluster(&self, cluster: Cluster) -> Cluster {
        match self {
            Self::Known(variant) => variant.cluster(cluster),
            Self::Static(pool) => pool.cluster(cluster),
            Self::StaticOutlier(pool, outlier) => pool.cluster(cluster).outlier(*outlier),
        }
    }

    /// Adds its filters to an Envoy; Tidegate gets the objective of `scenario` only.
    #[must_use]
    pub fn envoy(&self, envoy: EnvoyBuilder, scenario: &Scenario) -> EnvoyBuilder {
        match self {
            Self::Known(variant) => variant.envoy(envoy, scenario),
            Self::Static(_) | Self::StaticOutlier(..) => envoy,
        }
    }
}

impl Pool {
    const fn cluster(self, cluster: Cluster) -> Cluster {
        let thresholds = CircuitBreakerThresholds {
            max_connections: self.connections,
            max_pending_requests: self.pending,
            ..CircuitBreakerThresholds::unlimited()
        };
        cluster
            .thresholds(thresholds)
            .requests_per_connection(self.requests_per_connection)
    }
}
