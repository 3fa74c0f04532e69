//! Hooks in any order, as Envoy might call them: nothing is lost, and nothing panics.

#![expect(
    unsafe_code,
    reason = "the test looks behind the pointers that it gets"
)]

use core::ffi::c_void;
use core::ptr;

use proptest::prelude::*;
use tidegate_core::UpstreamKey;
use tidegate_worker::api::MetricKind;
use tidegate_worker::metrics::name::{Naming, upstream_labels};
use tidegate_worker::metrics::table::IN_FLIGHT;

use crate::fake::{CLUSTER, REPLIES, STATUS, buffer};
use crate::guard;
use crate::hooks::*;
use crate::registry::{self, FilterConfig};

const DOCUMENT: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms","until":"end"}},"limit":{"min":1,"initial":3,"max":3}}"#;
const STREAMS: usize = 6;

#[derive(Clone, Debug)]
enum Hook {
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
    Status(bool),
    Cluster(bool),
}

fn any_hook() -> impl Strategy<Value = (usize, Hook)> {
    let hook = prop_oneof![
        4 => Just(Hook::New),
        6 => any::<bool>().prop_map(Hook::RequestHeaders),
        2 => any::<bool>().prop_map(Hook::RequestBody),
        1 => Just(Hook::RequestTrailers),
        4 => any::<bool>().prop_map(Hook::ResponseHeaders),
        2 => any::<bool>().prop_map(Hook::ResponseBody),
        1 => Just(Hook::ResponseTrailers),
        1 => Just(Hook::LocalReply),
        4 => Just(Hook::StreamComplete),
        3 => Just(Hook::Destroy),
        1 => Just(Hook::Reconfigure),
        2 => Just(Hook::Round),
        1 => any::<bool>().prop_map(Hook::Status),
        1 => any::<bool>().prop_map(Hook::Cluster),
    ];
    (0..STREAMS, hook)
}

/// The configuration of a filter of its own, and the streams behind it.
struct Filter {
    config: *const c_void,
    streams: [Option<*const c_void>; STREAMS],
}

impl Filter {
    fn new(name: &str) -> Self {
        let config = envoy_dynamic_module_on_http_filter_config_new(
            ptr::null_mut(),
            buffer(name),
            buffer(DOCUMENT),
        );
        assert!(!config.is_null());
        Self {
            config,
            streams: [None; STREAMS],
        }
    }

    fn config(&self) -> &FilterConfig {
        // SAFETY: the pointer is that of a configuration that was not destroyed.
        unsafe { &*self.config.cast::<FilterConfig>() }
    }

    fn play(&mut self, at: usize, hook: &Hook) {
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
            Hook::Round => {
                self.config().plugin.begin_round();
                self.config().plugin.end_round();
            }
            Hook::Status(good) => STATUS.set(if good { "200" } else { "503" }),
            Hook::Cluster(is_known) => CLUSTER.set(if is_known { "web" } else { "" }),
        }
    }

    fn in_flight(&self, plugin: &str) -> Option<u64> {
        let key = UpstreamKey {
            cluster: "web".to_owned(),
            route: None,
        };
        let name = Naming::of_plugin(plugin).name(&IN_FLIGHT, &upstream_labels(&key), None);
        let metrics = &self.config().plugin.shared().metrics;
        metrics.get(metrics.define(MetricKind::Gauge, &name)?)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn hooks_in_any_order_leave_nothing_in_flight(
        hooks in prop::collection::vec(any_hook(), 1..200),
        number in any::<u64>(),
    ) {
        let panics = guard::panics();
        let name = format!("any-order-{number}");
        let mut filter = Filter::new(&name);
        STATUS.set("200");
        CLUSTER.set("web");
        for (at, hook) in &hooks {
            filter.play(*at, hook);
        }
        for at in 0..STREAMS {
            filter.play(at, &Hook::StreamComplete);
            filter.play(at, &Hook::Destroy);
        }
        prop_assert_eq!(filter.in_flight(&name), Some(0));
        prop_assert_eq!(guard::panics(), panics);
        envoy_dynamic_module_on_http_filter_config_destroy(filter.config);
    }
}

#[test]
fn a_configuration_with_errors_is_rejected() {
    for document in [
        "",
        "{",
        r#"{"mode":"enforce"}"#,
        r#"{"slo":{"latency":{"quantile":2,"target":"1s"}}}"#,
    ] {
        let config = envoy_dynamic_module_on_http_filter_config_new(
            ptr::null_mut(),
            buffer("rejected"),
            buffer(document),
        );
        assert!(config.is_null(), "{document}");
    }
}

#[test]
fn no_more_are_admitted_than_the_limit_allows_and_a_stream_that_never_began_ends_quietly() {
    let mut filter = Filter::new("three");
    let replies = REPLIES.get();
    for at in 0..5 {
        filter.play(at, &Hook::New);
        filter.play(at, &Hook::RequestHeaders(true));
    }
    assert_eq!(filter.in_flight("three"), Some(3));
    assert_eq!(REPLIES.get() - replies, 2);
    filter.play(5, &Hook::New);
    for at in 0..STREAMS {
        filter.play(at, &Hook::LocalReply);
        filter.play(at, &Hook::StreamComplete);
        filter.play(at, &Hook::Destroy);
    }
    assert_eq!(filter.in_flight("three"), Some(0));
    envoy_dynamic_module_on_http_filter_config_destroy(filter.config);
}

/// Envoy makes a filter's configuration, and destroys it if it rejects another part of the listener.
#[test]
fn a_configuration_that_ends_at_once_leaves_the_one_before_in_force() {
    let filter = Filter::new("before");
    let digest = filter.config().plugin.digest();
    let other = DOCUMENT.replace("300ms", "200ms");
    let rejected = envoy_dynamic_module_on_http_filter_config_new(
        ptr::null_mut(),
        buffer("before"),
        buffer(&other),
    );
    assert_ne!(filter.config().plugin.digest(), digest);
    envoy_dynamic_module_on_http_filter_config_destroy(rejected);
    assert_eq!(filter.config().plugin.digest(), digest);
    envoy_dynamic_module_on_http_filter_config_destroy(filter.config);
}

#[test]
fn a_route_has_state_of_its_own_until_its_last_configuration_ends() {
    let route = || {
        let config = envoy_dynamic_module_on_http_filter_per_route_config_new(
            buffer("routed"),
            buffer(DOCUMENT),
        );
        assert!(!config.is_null());
        config
    };
    let (one, two) = (route(), route());
    assert!(registry::has_routes() && registry::knows("routed@"));
    envoy_dynamic_module_on_http_filter_per_route_config_destroy(one);
    assert!(registry::has_routes() && registry::knows("routed@"));
    envoy_dynamic_module_on_http_filter_per_route_config_destroy(two);
    assert!(!registry::has_routes() && !registry::knows("routed@"));
}
