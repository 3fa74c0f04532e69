//! Upstream clusters in Envoy's configuration.

mod balancing;
mod protection;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use super::duration::duration;

pub use balancing::LoadBalancing;
pub use protection::{CircuitBreakerThresholds, OutlierSettings};

/// An upstream cluster, by default with fixed endpoints.
#[derive(Debug, Clone)]
pub struct Cluster {
    name: String,
    discovery: EndpointDiscovery,
    endpoints: Vec<SocketAddr>,
    http2: bool,
    thresholds: CircuitBreakerThresholds,
    requests_per_connection: u32,
    idle_timeout: Option<Duration>,
    outlier: Option<OutlierSettings>,
    balancing: LoadBalancing,
    connect_timeout: Duration,
}

/// Where a cluster's endpoints come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndpointDiscovery {
    Static,
    DynamicForwardProxy,
    OriginalDestination,
}

impl Cluster {
    /// A cluster with one endpoint, HTTP/1.1, without Envoy's own circuit breakers.
    #[must_use]
    pub fn new(name: &str, endpoint: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            discovery: EndpointDiscovery::Static,
            endpoints: vec![endpoint],
            http2: false,
            thresholds: CircuitBreakerThresholds::unlimited(),
            requests_per_connection: 0,
            idle_timeout: None,
            outlier: None,
            balancing: LoadBalancing::default(),
            connect_timeout: Duration::from_secs(1),
        }
    }

    /// A cluster without any endpoint: Envoy answers `no_healthy_upstream`.
    #[must_use]
    pub fn without_endpoints(name: &str) -> Self {
        Self {
            endpoints: Vec::new(),
            ..Self::new(name, SocketAddr::from(([127, 0, 0, 1], 1)))
        }
    }

    /// A cluster whose requests go to the host that their authority names. It needs
    /// [`Self::dynamic_forward_proxy_filter`].
    #[must_use]
    pub fn dynamic_forward_proxy(name: &str) -> Self {
        Self {
            discovery: EndpointDiscovery::DynamicForwardProxy,
            ..Self::without_endpoints(name)
        }
    }

    /// The HTTP filter that resolves these hosts.
    #[must_use]
    pub fn dynamic_forward_proxy_filter() -> Value {
        json!({
            "name": "envoy.filters.http.dynamic_forward_proxy",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig",
                "dns_cache_config": dns_cache(),
            },
        })
    }

    /// A cluster whose requests go to their original destination: here, the address in `x-envoy-original-dst-host`.
    #[must_use]
    pub fn original_destination(name: &str) -> Self {
        Self {
            discovery: EndpointDiscovery::OriginalDestination,
            ..Self::without_endpoints(name)
        }
    }

    /// Adds an endpoint.
    #[must_use]
    pub fn endpoint(mut self, endpoint: SocketAddr) -> Self {
        self.endpoints.push(endpoint);
        self
    }

    /// Speaks HTTP/2 to the endpoints (gRPC needs it).
    #[must_use]
    pub const fn http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// Sets Envoy's own static circuit breakers.
    #[must_use]
    pub const fn thresholds(mut self, thresholds: CircuitBreakerThresholds) -> Self {
        self.thresholds = thresholds;
        self
    }

    /// Closes each connection after `most` requests (default 0: never).
    #[must_use]
    pub const fn requests_per_connection(mut self, most: u32) -> Self {
        self.requests_per_connection = most;
        self
    }

    /// Closes connections that were idle for this time (default: Envoy's, an hour).
    #[must_use]
    pub const fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Turns outlier detection on.
    #[must_use]
    pub const fn outlier(mut self, outlier: OutlierSettings) -> Self {
        self.outlier = Some(outlier);
        self
    }

    /// Sets how requests are spread over the endpoints.
    #[must_use]
    pub const fn balancing(mut self, balancing: LoadBalancing) -> Self {
        self.balancing = balancing;
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn json(&self) -> Value {
        let endpoints: Vec<Value> = self
            .endpoints
            .iter()
            .map(|addr| {
                let socket = json!({"address": addr.ip().to_string(), "port_value": addr.port()});
                json!({"endpoint": {"address": {"socket_address": socket}}})
            })
            .collect();
        let limits = json!({
            "max_connections": self.thresholds.max_connections,
            "max_pending_requests": self.thresholds.max_pending_requests,
            "max_requests": self.thresholds.max_requests,
        });
        let protocol = if self.http2 {
            "http2_protocol_options"
        } else {
            "http_protocol_options"
        };
        let mut common = match self.requests_per_connection {
            0 => json!({}),
            most => json!({"max_requests_per_connection": most}),
        };
        if let (Some(timeout), Some(fields)) = (self.idle_timeout, common.as_object_mut()) {
            fields.insert("idle_timeout".to_owned(), json!(duration(timeout)));
        }
        let mut cluster = json!({
            "name": self.name,
            "connect_timeout": duration(self.connect_timeout),
            "circuit_breakers": {"thresholds": [limits]},
            "typed_extension_protocol_options": {
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                    "common_http_protocol_options": common,
                    "explicit_http_config": {protocol: {}},
                },
            },
        });
        let discovery = match self.discovery {
            EndpointDiscovery::Static => json!({
                "type": "STATIC",
                "load_assignment": {"cluster_name": self.name, "endpoints": [{"lb_endpoints": endpoints}]},
            }),
            EndpointDiscovery::DynamicForwardProxy => json!({
                "cluster_type": {
                    "name": "envoy.clusters.dynamic_forward_proxy",
                    "typed_config": {
                        "@type": "type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig",
                        "dns_cache_config": dns_cache(),
                        // There is no TLS here with names to check.
                        "allow_insecure_cluster_options": true,
                    },
                },
                "lb_policy": "CLUSTER_PROVIDED",
            }),
            EndpointDiscovery::OriginalDestination => json!({
                "type": "ORIGINAL_DST",
                "lb_policy": "CLUSTER_PROVIDED",
                "original_dst_lb_config": {"use_http_header": true},
            }),
        };
        let balancing = match self.discovery {
            EndpointDiscovery::Static => self.balancing.fields(),
            EndpointDiscovery::DynamicForwardProxy | EndpointDiscovery::OriginalDestination => {
                json!({})
            }
        };
        for more in [discovery, balancing] {
            if let (Value::Object(more), Some(fields)) = (more, cluster.as_object_mut()) {
                fields.extend(more);
            }
        }
        if let (Some(outlier), Some(fields)) = (self.outlier, cluster.as_object_mut()) {
            let detection = json!({
                "consecutive_5xx": outlier.consecutive_5xx,
                "interval": duration(outlier.interval),
                "base_ejection_time": duration(outlier.base_ejection_time),
                "max_ejection_percent": outlier.max_ejection_percent,
            });
            fields.insert("outlier_detection".to_owned(), detection);
            // Without this Envoy keeps sending to the only host (panic threshold 50 %).
            let balance = json!({"healthy_panic_threshold": {"value": 0.0}});
            fields.insert("common_lb_config".to_owned(), balance);
        }
        cluster
    }
}

/// The cache of resolved names, which the cluster and the filter of a dynamic forward proxy share.
fn dns_cache() -> Value {
    json!({"name": "names", "dns_lookup_family": "V4_ONLY"})
}
