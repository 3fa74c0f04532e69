//! How the plugin's configuration gets to Envoy.

use serde_json::{Value, json};

/// How the configuration gets to Envoy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConfigSource {
    Inline,
    File,
    Served {
        cluster: String,
        by: DiscoveryProtocol,
    },
}

/// The protocol by which Envoy requests its configuration from a control service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscoveryProtocol {
    /// Extension configuration discovery, state of the world.
    Ecds,
    /// Extension configuration discovery, incremental.
    DeltaEcds,
    /// Aggregated discovery, state of the world.
    Ads,
    /// Aggregated discovery, incremental.
    DeltaAds,
}

impl DiscoveryProtocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ecds, Self::DeltaEcds, Self::Ads, Self::DeltaAds];

    pub(super) const fn is_aggregated(self) -> bool {
        matches!(self, Self::Ads | Self::DeltaAds)
    }

    /// Envoy's description of a gRPC service that speaks this protocol.
    pub(super) fn api(self, cluster: &str) -> Value {
        let kind = match self {
            Self::Ecds | Self::Ads => "GRPC",
            Self::DeltaEcds | Self::DeltaAds => "DELTA_GRPC",
        };
        json!({
            "api_type": kind,
            "transport_api_version": "V3",
            "set_node_on_first_message_only": true,
            "grpc_services": [{"envoy_grpc": {
                "cluster_name": cluster,
                // The default pauses between two attempts grow to more than a test waits.
                "retry_policy": {"retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"}},
            }}],
        })
    }
}
