//! How load is spread, and what runs in front of the servers.

use serde::Serialize;
use serde_json::{Value, json};

use crate::envoy::{Cluster, LoadBalancing, OutlierSettings};

/// One way to spread load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BalanceContender {
    /// Round robin, without the module.
    RoundRobin,
    /// The same with outlier detection.
    Outlier,
    /// Least request, without the module.
    LeastRequest,
    /// Round robin; the module sheds beside each server.
    ModuleRoundRobin,
    /// The same with outlier detection, which counts sheds as failures.
    ModuleOutlier,
    /// Least request; the module sheds beside each server.
    ModuleLeastRequest,
    /// By load reports that the module writes beside each server.
    ModuleReports,
}

impl BalanceContender {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 7] = [
        Self::RoundRobin,
        Self::Outlier,
        Self::LeastRequest,
        Self::ModuleRoundRobin,
        Self::ModuleOutlier,
        Self::ModuleLeastRequest,
        Self::ModuleReports,
    ];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round robin",
            Self::Outlier => "outlier detection",
            Self::LeastRequest => "least request",
            Self::ModuleRoundRobin => "module, round robin",
            Self::ModuleOutlier => "module, outlier detection",
            Self::ModuleLeastRequest => "module, least request",
            Self::ModuleReports => "module, load reports",
        }
    }

    /// How the caller's Envoy spreads requests over the endpoints of `cluster`.
    pub(super) const fn balance(self, cluster: Cluster) -> Cluster {
        match self {
            Self::RoundRobin | Self::ModuleRoundRobin => cluster,
            Self::Outlier | Self::ModuleOutlier => {
                cluster.outlier(OutlierSettings::envoy_default())
            }
            Self::LeastRequest | Self::ModuleLeastRequest => {
                cluster.balancing(LoadBalancing::LeastRequest)
            }
            Self::ModuleReports => cluster.balancing(LoadBalancing::LoadReports),
        }
    }

    /// The configuration of the module beside each server; `None` without the module.
    pub(super) fn module(self, objective_ms: u128) -> Option<Value> {
        let target = format!("{objective_ms}ms");
        let slo = json!({"latency": {"quantile": 0.99, "target": target}});
        match self {
            Self::RoundRobin | Self::Outlier | Self::LeastRequest => None,
            Self::ModuleRoundRobin | Self::ModuleOutlier | Self::ModuleLeastRequest => {
                Some(json!({"slo": slo}))
            }
            Self::ModuleReports => Some(json!({"slo": slo, "native": {"loadReports": "set"}})),
        }
    }
}
