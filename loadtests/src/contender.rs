//! What protects the upstream in a cell: a contender of the benchmark, or static breakers with values of a study.
//!
//! The benchmark's contenders ([`Variant`]) run with the settings of their documentation. The studies also vary the settings
//! of Istio's `connectionPool`, which are Envoy's thresholds under other names: `maxConnections`, `http1MaxPendingRequests`
//! and `maxRequestsPerConnection`.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::scenario::Scenario;
use tidegate_testbed::envoy::{
    CircuitBreakerThresholds, Cluster, EnvoyBuilder, OutlierSettings, Plugin,
};
use tidegate_testbed::variant::{Variant, tidegate_config};

/// Values of Istio's `connectionPool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSettings {
    /// `tcp.maxConnections`.
    pub connections: u32,
    /// `http.http1MaxPendingRequests`.
    pub pending: u32,
    /// `http.maxRequestsPerConnection`; 0: unlimited.
    pub requests_per_connection: u32,
}

/// What protects the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// A contender of the benchmark.
    Known(Variant),
    /// Static breakers with these values.
    Static(PoolSettings),
    /// Static breakers and outlier detection with these values.
    StaticOutlier(PoolSettings, OutlierSettings),
    /// Static breakers with values multiplied by the number of clients, because the proxy serves all of them.
    Scaled(PoolSettings),
    /// The result of `tidegate migrate` for static breakers: the filter with a bound on requests in flight.
    Migrated {
        /// `limit.max` and `limit.maxOpen`.
        max: u32,
    },
}

impl Protection {
    /// No protection.
    pub const NONE: Self = Self::Known(Variant::None);
    /// This project's filter.
    pub const TIDEGATE: Self = Self::Known(Variant::Tidegate);
    /// This project's filter as a native module.
    pub const NATIVE: Self = Self::Known(Variant::Native);

    /// The values of section 4.2 of "Efficient service mesh traffic management" (2026): 100 connections, 50 pending requests,
    /// ejection for 10 s after 5 errors in a row.
    pub const EFFICIENT: Self = Self::StaticOutlier(
        PoolSettings {
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
            Self::Scaled(_) => "static-scaled",
            Self::Migrated { .. } => "migrated",
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
            Self::Static(pool) | Self::Scaled(pool) => pool.cluster(cluster),
            Self::Migrated { .. } => cluster,
            Self::StaticOutlier(pool, outlier) => pool.cluster(cluster).outlier(*outlier),
        }
    }

    /// Adds its filters to an Envoy; Tidegate gets only the objective of `scenario`.
    #[must_use]
    pub fn envoy(&self, envoy: EnvoyBuilder, scenario: &Scenario) -> EnvoyBuilder {
        match self {
            Self::Known(variant) => variant.envoy(envoy, scenario),
            Self::Static(_) | Self::StaticOutlier(..) | Self::Scaled(_) => envoy,
            Self::Migrated { max } => envoy.plugin(Plugin::tidegate(&migrated(scenario, *max))),
        }
    }
}

/// The configuration of a policy as `tidegate migrate` writes it, but in mode enforce and with the objective of `scenario`.
fn migrated(scenario: &Scenario, max: u32) -> Value {
    let mut config = tidegate_config(scenario);
    if let Some(fields) = config.as_object_mut() {
        fields.insert("limit".to_owned(), json!({"max": max, "maxOpen": max}));
    }
    config
}

impl PoolSettings {
    /// The values of one sidecar, multiplied for a proxy that serves `clients` clients.
    #[must_use]
    pub const fn times(self, clients: u32) -> Self {
        Self {
            connections: self.connections * clients,
            pending: self.pending * clients,
            requests_per_connection: self.requests_per_connection,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::still;
    use tidegate_sim::profile::Behaviour;

    #[test]
    fn what_migrate_writes_is_a_configuration_of_the_filter() {
        let scenario = still(Behaviour::default(), Duration::from_millis(250)).unwrap();
        let text = migrated(&scenario, 16).to_string();
        let config = tidegate_core::config::Config::from_json(text.as_bytes()).unwrap();
        let name = tidegate_core::config::UpstreamName {
            service: None,
            cluster: "main",
            route: None,
        };
        let (index, _) = config.policy_for(&name);
        assert_eq!(config.policy(index).limit().max(), 16);
    }
}
