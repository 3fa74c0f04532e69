//! How a cluster's requests are spread over its endpoints.

use serde_json::{Value, json};

/// How Envoy spreads requests over the endpoints of a cluster; each worker does so independently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoadBalancing {
    /// Each endpoint in turn: Envoy's default.
    #[default]
    RoundRobin,
    /// An endpoint drawn at random.
    Random,
    /// The one of two drawn at random that has fewer requests in flight.
    LeastRequest,
    /// By load reports (ORCA) in responses.
    LoadReports,
}

impl LoadBalancing {
    /// The fields of a cluster.
    pub(super) fn fields(self) -> Value {
        let name = match self {
            Self::RoundRobin => "ROUND_ROBIN",
            Self::Random => "RANDOM",
            Self::LeastRequest => "LEAST_REQUEST",
            Self::LoadReports => return by_load_reports(),
        };
        json!({"lb_policy": name})
    }
}

/// Sets the penalty, because Envoy's default is 0: failures would not lower an endpoint's weight.
fn by_load_reports() -> Value {
    let policy = "client_side_weighted_round_robin";
    json!({"load_balancing_policy": {"policies": [{"typed_extension_config": {
        "name": format!("envoy.load_balancing_policies.{policy}"),
        "typed_config": {
            "@type": format!(
                "type.googleapis.com/envoy.extensions.load_balancing_policies.{policy}.v3.ClientSideWeightedRoundRobin"
            ),
            "error_utilization_penalty": 1.0,
        },
    }}]}})
}
