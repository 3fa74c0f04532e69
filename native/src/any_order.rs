//! What a configuration and a limit do, hook by hook. `fuzz` plays hooks in any order.

use core::ptr;

use crate::fake::{LOG, REPLIES, buffer};
use crate::hooks::*;
use crate::rig::{DOCUMENT, Filter, Hook, STREAMS};

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

/// Before, it passed without a trace.
#[test]
fn a_request_that_finds_its_worker_busy_passes_and_is_counted() {
    let mut filter = Filter::new("busy");
    filter.play(0, &Hook::New);
    let plugin = std::sync::Arc::clone(&filter.config().plugin);
    plugin.while_taken(0, || filter.play(0, &Hook::RequestHeaders(true)));
    assert_eq!(filter.in_flight("busy"), Some(0));
    let said = LOG.with_borrow(|lines| lines.iter().filter(|it| it.contains("kind=busy")).count());
    assert_eq!(said, 1);
    filter.round();
    // The module's own thread may have counted it.
    filter.round();
    assert_eq!(filter.faults("busy"), 1);
    filter.play(0, &Hook::StreamComplete);
    filter.play(0, &Hook::Destroy);
    filter.end();
}
