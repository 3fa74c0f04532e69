//! The Envoys to compare, and their common bootstrap.
//!
//! A request enters the measured listener, goes to a cluster, and from there to a second listener of the same process, which
//! answers directly: two hops, one process to count, no upstream whose speed matters. All subjects share everything but the
//! filter.
//!
//! A second route, `/hang`, leads to a server that accepts connections and never answers. The plugin may have one request in
//! flight there: once it is taken, every other is shed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::envoy::{native_config, search_path};

/// Path that the second listener answers.
pub const ANSWERED: &str = "/";
/// Path whose requests never get an answer.
pub const HANGING: &str = "/hang";
/// Prefix of paths whose cluster [`UPSTREAM_HEADER`] names.
pub const MANY: &str = "/many";
/// Request header that names the cluster on [`MANY`].
pub const UPSTREAM_HEADER: &str = "x-upstream";
/// Status of a shed request, unlike any of Envoy's own.
pub const SHED_STATUS: u16 = 529;

/// Name of the measured listener.
pub(super) const ENTRY: &str = "entry";

/// The filter that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Envoy without any filter but the router.
    NoFilter,
    /// Envoy's own adaptive concurrency filter.
    AdaptiveConcurrency,
    /// A native module that does nothing.
    Empty(PathBuf),
    /// A Wasm module as Tidegate.
    Module(PathBuf),
    /// A native module as Tidegate.
    Native(PathBuf),
    /// The same, with these options that only it takes (`native`).
    NativeWith(PathBuf, Value),
}

impl Subject {
    /// Its name in tables and JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NoFilter => "no filter",
            Self::AdaptiveConcurrency => "adaptive_concurrency",
            Self::Empty(_) => "empty module",
            Self::Module(_) => "tidegate",
            Self::Native(_) => "native",
            Self::NativeWith(..) => "native, options",
        }
    }

    /// The environment variable that Envoy needs to find the module.
    pub(super) fn variable(&self) -> Option<(&'static str, PathBuf)> {
        match self {
            Self::Native(path) | Self::NativeWith(path, _) | Self::Empty(path) => {
                Some(search_path(path))
            }
            Self::NoFilter | Self::AdaptiveConcurrency | Self::Module(_) => None,
        }
    }

    /// Whether it sheds requests beyond the limits of its configuration.
    pub(super) const fn is_tidegate(&self) -> bool {
        matches!(
            self,
            Self::Module(_) | Self::Native(_) | Self::NativeWith(..)
        )
    }

    fn filter(&self) -> Option<Value> {
        match self {
            Self::NoFilter => None,
            Self::AdaptiveConcurrency => Some(adaptive_concurrency()),
            Self::Module(path) => Some(module(path)),
            Self::Native(path) | Self::Empty(path) => Some(native(path, &document())),
            Self::NativeWith(path, options) => {
                let mut document = document();
                if let Some(fields) = document.as_object_mut() {
                    fields.insert("native".to_owned(), options.clone());
                }
                Some(native(path, &document))
            }
        }
    }
}

fn native(module: &Path, document: &Value) -> Value {
    json!({
        "name": "tidegate",
        "typed_config": native_config(module, "tidegate", &document.to_string()),
    })
}

/// Inputs of a bootstrap besides the subject.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    /// Address of the second listener.
    pub answering: SocketAddr,
    /// A server that never answers.
    pub hanging: SocketAddr,
    /// Number of additional clusters; see [`cluster_name`].
    pub many: u32,
}

/// Name of the `index`th of many clusters, shaped like Istio's.
#[must_use]
pub fn cluster_name(index: u32) -> String {
    format!("outbound|80||service-{index:04}.cost.svc.cluster.local")
}

pub(super) fn bootstrap(subject: &Subject, around: &Surroundings) -> Value {
    let any_port = json!({"socket_address": {"address": "127.0.0.1", "port_value": 0}});
    let many = (0..around.many).map(|index| cluster(&cluster_name(index), around.answering, 1));
    let clusters: Vec<Value> = [
        cluster("answered", around.answering, 0),
        cluster("hanging", around.hanging, 0),
    ]
    .into_iter()
    .chain(many)
    .collect();
    let answer = json!({"direct_response": {"status": 200, "body": {"inline_string": "ok"}}});
    let to = |cluster: Value| json!({"route": cluster});
    let routes = [
        route(HANGING, &to(json!({"cluster": "hanging", "timeout": "0s"}))),
        route(MANY, &to(json!({"cluster_header": UPSTREAM_HEADER}))),
        route(ANSWERED, &to(json!({"cluster": "answered"}))),
    ];
    json!({
        "node": {"id": "tidegate-cost", "cluster": "tidegate-cost"},
        "admin": {"address": any_port},
        "static_resources": {
            "listeners": [
                listener(ENTRY, &any_port, subject.filter(), &routes),
                listener("answering", &address(around.answering), None, &[route("/", &answer)]),
            ],
            "clusters": clusters,
        },
    })
}

fn address(addr: SocketAddr) -> Value {
    json!({"socket_address": {"address": addr.ip().to_string(), "port_value": addr.port()}})
}

fn route(prefix: &str, action: &Value) -> Value {
    let mut route = action.clone();
    if let Some(fields) = route.as_object_mut() {
        fields.insert("match".to_owned(), json!({"prefix": prefix}));
    }
    route
}

fn listener(name: &str, address: &Value, filter: Option<Value>, routes: &[Value]) -> Value {
    let router = json!({
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
    });
    let filters: Vec<Value> = filter.into_iter().chain([router]).collect();
    let host = json!({"name": "all", "domains": ["*"], "routes": routes});
    json!({
        "name": name,
        "address": address,
        // Connections are spread over the workers in turn, so that none stays idle.
        "connection_balance_config": {"exact_balance": {}},
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                "stat_prefix": name,
                "http_filters": filters,
                "route_config": {"name": name, "virtual_hosts": [host]},
            },
        }]}],
    })
}

/// A cluster with one endpoint; 0 for `requests_per_connection` keeps connections for good.
fn cluster(name: &str, endpoint: SocketAddr, requests_per_connection: u32) -> Value {
    let most = 1_000_000;
    let options = if requests_per_connection == 0 {
        json!({})
    } else {
        json!({"max_requests_per_connection": requests_per_connection})
    };
    json!({
        "name": name,
        "type": "STATIC",
        "load_assignment": {
            "cluster_name": name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address(endpoint)}}]}],
        },
        "circuit_breakers": {"thresholds": [
            {"max_connections": most, "max_pending_requests": most, "max_requests": most},
        ]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "common_http_protocol_options": options,
                "explicit_http_config": {"http_protocol_options": {}},
            },
        },
    })
}

/// All parts enabled, with limits that this load does not reach, except on the hanging route.
fn document() -> Value {
    let roomy = json!({"min": 1_000, "max": 1_000, "initial": 1_000});
    let single = json!({"min": 1, "max": 1, "initial": 1});
    json!({
        "slo": {"latency": {"quantile": 0.99, "target": "10s"}},
        "limit": roomy,
        "shed": {"status": SHED_STATUS},
        "upstreams": [{
            "match": {"cluster": "hanging"},
            "limit": single,
            // The hanging request would open it: the same answers, but a probe now and then.
            "breaker": {"enabled": false},
        }],
    })
}

/// The module in Envoy's configuration.
fn module(path: &Path) -> Value {
    json!({
        "name": "tidegate",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
            "config": {
                "name": "tidegate",
                "root_id": "tidegate",
                "failure_policy": "FAIL_RELOAD",
                "reload_config": {"backoff": {"base_interval": "1s"}},
                "vm_config": {
                    "vm_id": "tidegate",
                    "runtime": "envoy.wasm.runtime.v8",
                    "code": {"local": {"filename": path}},
                },
                "configuration": {
                    "@type": "type.googleapis.com/google.protobuf.StringValue",
                    "value": document().to_string(),
                },
            },
        },
    })
}

/// Even its smallest limit exceeds this load, so that it admits everything.
fn adaptive_concurrency() -> Value {
    json!({
        "name": "envoy.filters.http.adaptive_concurrency",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency",
            "gradient_controller_config": {
                "sample_aggregate_percentile": {"value": 90.0},
                "concurrency_limit_params": {"concurrency_update_interval": "0.1s"},
                "min_rtt_calc_params": {
                    "interval": "60s", "request_count": 50, "min_concurrency": 1_000,
                },
            },
            "enabled": {"default_value": true, "runtime_key": "adaptive_concurrency.enabled"},
        },
    })
}
