//! A filter for tests with some streams behind it, on which Envoy's hooks are played.

#![expect(
    unsafe_code,
    reason = "the test looks behind the pointers that it gets"
)]

use core::ffi::c_void;
use core::ptr;
use std::sync::Arc;

use tidegate_core::UpstreamKey;
use tidegate_worker::api::MetricKind;
use tidegate_worker::metrics::name::{Naming, upstream_labels};
use tidegate_worker::metrics::table::{FAULTS_TOTAL, IN_FLIGHT};

use crate::fake::{CLUSTER, REPLIES, buffer};
use crate::hooks::*;
use crate::plugin::NativePlugin;
use crate::registry::{FilterConfig, RouteConfig};

/// At most three requests in flight, until the end of the response.
pub(crate) const DOCUMENT: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms","until":"end"}},"limit":{"min":1,"initial":3,"max":3}}"#;
/// How many streams a filter has.
pub(crate) const STREAMS: usize = 6;

/// One hook of a stream, or what else may happen meanwhile.
#[derive(Clone, Debug)]
pub(crate) enum Hook {
    New,
    RequestHeaders(bool),
    RequestBody(bool),
    RequestTrailers,
    ResponseHeaders(bool),
    ResponseBody(bool),
    ResponseTrailers,
    LocalReply,
    StreamComplete,
    Destroy,
    /// Another configuration, and a round of upkeep.
    Reconfigure,
    Round,
    Cluster(bool),
}

/// The configuration of a filter of its own, and the streams behind it.
pub(crate) struct Filter {
    pub(crate) config: *const c_void,
    pub(crate) streams: [Option<*const c_void>; STREAMS],
}

impl Filter {
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, DOCUMENT)
    }

    /// A filter with this configuration.
    pub(crate) fn with(name: &str, document: &str) -> Self {
        let config = envoy_dynamic_module_on_http_filter_config_new(
            ptr::null_mut(),
            buffer(name),
            buffer(document),
        );
        assert!(!config.is_null());
        Self {
            config,
            streams: [None; STREAMS],
        }
    }

    /// Envoy destroys its configuration.
    pub(crate) fn end(self) {
        envoy_dynamic_module_on_http_filter_config_destroy(self.config);
    }

    pub(crate) fn config(&self) -> &FilterConfig {
        // SAFETY: the pointer is that of a configuration that was not destroyed.
        unsafe { &*self.config.cast::<FilterConfig>() }
    }

    pub(crate) fn play(&mut self, at: usize, hook: &Hook) {
        let envoy = ptr::dangling_mut::<c_void>();
        let Some(stream) = self.streams[at] else {
            if matches!(hook, Hook::New) {
                self.streams[at] =
                    Some(envoy_dynamic_module_on_http_filter_new(self.config, envoy));
            }
            return;
        };
        match *hook {
            Hook::New => {}
            Hook::RequestHeaders(end) => {
                let replies = REPLIES.get();
                let status =
                    envoy_dynamic_module_on_http_filter_request_headers(envoy, stream, end);
                assert_eq!(
                    REPLIES.get() - replies,
                    status as usize,
                    "a stop is a reply"
                );
            }
            Hook::RequestBody(end) => {
                envoy_dynamic_module_on_http_filter_request_body(envoy, stream, end);
            }
            Hook::RequestTrailers => {
                envoy_dynamic_module_on_http_filter_request_trailers(envoy, stream);
            }
            Hook::ResponseHeaders(end) => {
                envoy_dynamic_module_on_http_filter_response_headers(envoy, stream, end);
            }
            Hook::ResponseBody(end) => {
                envoy_dynamic_module_on_http_filter_response_body(envoy, stream, end);
            }
            Hook::ResponseTrailers => {
                envoy_dynamic_module_on_http_filter_response_trailers(envoy, stream);
            }
            Hook::LocalReply => {
                let details = buffer("details");
                envoy_dynamic_module_on_http_filter_local_reply(envoy, stream, 503, details, false);
            }
            Hook::StreamComplete => {
                envoy_dynamic_module_on_http_filter_stream_complete(envoy, stream);
            }
            Hook::Destroy => {
                envoy_dynamic_module_on_http_filter_destroy(stream);
                self.streams[at] = None;
            }
            Hook::Reconfigure => {
                let name = self.config().plugin.name().to_owned();
                let newer = Self::new(&name);
                envoy_dynamic_module_on_http_filter_config_destroy(newer.config);
            }
            Hook::Round => self.round(),
            Hook::Cluster(is_known) => CLUSTER.set(if is_known { "web" } else { "" }),
        }
    }

    pub(crate) fn in_flight(&self, plugin: &str) -> Option<u64> {
        assert_eq!(self.config().plugin.name(), plugin);
        in_flight(&self.config().plugin)
    }

    /// A round of upkeep.
    pub(crate) fn round(&self) {
        self.config().plugin.begin_round();
        self.config().plugin.end_round();
    }

    /// Faults of this kind that its plugin has counted.
    pub(crate) fn faults(&self, kind: &str) -> u64 {
        let plugin = match kind {
            "panic" | "off" => "",
            _ => self.config().plugin.name(),
        };
        let name = Naming::of_plugin(plugin).name(&FAULTS_TOTAL, "", Some(kind));
        let metrics = &self.config().plugin.shared().metrics;
        let id = metrics.define(MetricKind::Counter, &name).unwrap();
        metrics.get(id).unwrap()
    }

    /// Envoy calls back on its main thread, to be told of metrics.
    pub(crate) fn publish(&self) {
        envoy_dynamic_module_on_http_filter_config_scheduled(ptr::null_mut(), self.config, 0);
    }
}

/// Requests in flight of the upstream `web`.
pub(crate) fn in_flight(plugin: &NativePlugin) -> Option<u64> {
    let key = UpstreamKey {
        cluster: "web".to_owned(),
        route: None,
    };
    let labels = upstream_labels(&key);
    let name = Naming::of_plugin(plugin.name()).name(&IN_FLIGHT, &labels, None);
    let metrics = &plugin.shared().metrics;
    metrics.get(metrics.define(MetricKind::Gauge, &name)?)
}

/// The configuration of a route.
pub(crate) struct Route(pub(crate) *const c_void);

impl Route {
    pub(crate) fn with(name: &str, document: &str) -> Self {
        let config = envoy_dynamic_module_on_http_filter_per_route_config_new(
            buffer(name),
            buffer(document),
        );
        assert!(!config.is_null());
        Self(config)
    }

    pub(crate) fn plugin(&self) -> Arc<NativePlugin> {
        // SAFETY: the pointer is that of a configuration that was not destroyed.
        unsafe { Arc::clone(&(*self.0.cast::<RouteConfig>()).plugin) }
    }

    /// Envoy destroys the configuration.
    pub(crate) fn end(self) {
        envoy_dynamic_module_on_http_filter_per_route_config_destroy(self.0);
    }
}
