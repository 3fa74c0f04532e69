//! Envoy's bootstrap document.

use std::path::Path;

use serde_json::{Value, json};

use super::access_log;
use super::builder::{EnvoyBuilder, ListenerTls};
use super::cluster::Cluster;
use super::duration::duration;
use super::native;
use super::plugin::Plugin;
use super::route::Route;
use crate::client::headers::DETAILS_HEADER;

/// The bootstrap that `builder` describes.
pub(super) fn bootstrap(builder: &EnvoyBuilder, folder: &Path) -> Value {
    let local = |port: u16| json!({"socket_address": {"address": "127.0.0.1", "port_value": port}});
    let manager = json!({
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": connection_manager(builder, folder),
    });
    let mut chain = json!({"filters": [manager]});
    if let (Some(tls), Some(fields)) = (&builder.tls, chain.as_object_mut()) {
        fields.insert("transport_socket".to_owned(), transport_socket(tls));
    }
    let dynamic = builder.plugin.as_ref().and_then(Plugin::dynamic_resources);
    json!({
        "node": {"id": "tidegate-testbed", "cluster": "tidegate-testbed"},
        "dynamic_resources": dynamic.unwrap_or_else(|| json!({})),
        "admin": {"address": local(builder.admin_port)},
        "stats_flush_interval": "1s",
        "layered_runtime": native::runtime(),
        "static_resources": {
            "listeners": [{
                "name": "listener",
                "address": local(builder.port),
                "traffic_direction": "OUTBOUND",
                "filter_chains": [chain],
            }],
            "clusters": builder.clusters.iter().map(Cluster::json).collect::<Vec<_>>(),
        },
    })
}

/// Mutual TLS on the listener.
fn transport_socket(tls: &ListenerTls) -> Value {
    let file = |path: &Path| json!({"filename": path});
    json!({
        "name": "envoy.transport_sockets.tls",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            "require_client_certificate": true,
            "common_tls_context": {
                "alpn_protocols": ["h2", "http/1.1"],
                "tls_certificates": [{
                    "certificate_chain": file(&tls.certificate),
                    "private_key": file(&tls.key),
                }],
                "validation_context": {"trusted_ca": file(&tls.authority)},
            },
        },
    })
}

fn connection_manager(builder: &EnvoyBuilder, folder: &Path) -> Value {
    let mut filters = builder.filters.clone();
    filters.extend(
        builder
            .plugin
            .as_ref()
            .map(|plugin| plugin.http_filter(folder)),
    );
    filters.push(json!({
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
    }));
    let access_log = builder
        .access_log
        .then(|| access_log::json(&folder.join(access_log::FILE)));
    json!({
        "@type":
            "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "ingress",
        "codec_type": "AUTO",
        // Callers on this machine count as internal: their x-envoy-attempt-count stays.
        "use_remote_address": true,
        "internal_address_config": {"cidr_ranges": [{"address_prefix": "127.0.0.0", "prefix_len": 8}]},
        "generate_request_id": false,
        "http_filters": filters,
        "access_log": access_log.as_slice(),
        "local_reply_config": {"mappers": [local_reply_details()]},
        "route_config": {"name": "routes", "virtual_hosts": [virtual_host(builder)]},
    })
}

/// Envoy's own replies carry their response code details, so that a client can tell sheds from failures.
fn local_reply_details() -> Value {
    let any_error = json!({"status_code_filter": {
        "comparison": {"op": "GE", "value": {"default_value": 200, "runtime_key": "none"}},
    }});
    json!({
        "filter": any_error,
        "headers_to_add": [{
            "header": {"key": DETAILS_HEADER, "value": "%RESPONSE_CODE_DETAILS%"},
            "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
        }],
    })
}

fn virtual_host(builder: &EnvoyBuilder) -> Value {
    let timeout = duration(builder.route_timeout);
    let mut routes: Vec<Value> = builder
        .routes
        .iter()
        .map(|route| route.json(&timeout))
        .collect();
    if let Some(first) = builder.clusters.first().filter(|_| routes.is_empty()) {
        routes.push(Route::prefix("/").to(first.name()).json(&timeout));
    }
    json!({"name": "all", "domains": ["*"], "routes": routes})
}
