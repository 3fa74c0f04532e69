//! A panic in any hook leaves Envoy running, lets the request pass, and leaves nothing in flight.
//!
//! Panics are counted for the whole process, and ten of them turn the module off. So each of these tests runs in a process of
//! its own: this test program, called again for one test.

use std::process::Command;

use core::ptr;

use crate::fake::{REPLIES, buffer};
use crate::hooks::*;
use crate::rig::{DOCUMENT, Filter, Hook, STREAMS};
use crate::{crash, guard};

/// Which hook is to panic.
const VARIABLE: &str = "TIDEGATE_PANIC_IN";
/// All hooks that do anything.
const HOOKS: [&str; 14] = [
    "config_new",
    "config_destroy",
    "config_scheduled",
    "per_route_config_new",
    "per_route_config_destroy",
    "new",
    "destroy",
    "request_headers",
    "request_body",
    "request_trailers",
    "response_headers",
    "response_body",
    "response_trailers",
    "stream_complete",
];

/// Runs one test of this program with `hook` in the variable.
fn run(test: &str, hook: &str) {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program)
        .args(["--ignored", "--exact", &format!("panics::{test}")])
        .env(VARIABLE, hook)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{hook}: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_panic_in_any_hook_is_survived() {
    for hook in HOOKS {
        run("one_hook", hook);
    }
}

#[test]
fn after_ten_panics_all_requests_pass() {
    run("ten_panics", "request_headers");
}

/// The hooks of a request with bodies and trailers, except those of its end.
const LIFE: [Hook; 7] = [
    Hook::New,
    Hook::RequestHeaders(false),
    Hook::RequestBody(true),
    Hook::RequestTrailers,
    Hook::ResponseHeaders(false),
    Hook::ResponseBody(false),
    Hook::ResponseTrailers,
];

fn live(filter: &mut Filter) {
    for hook in LIFE.iter().chain(&[Hook::StreamComplete, Hook::Destroy]) {
        filter.play(0, hook);
    }
}

#[test]
#[ignore = "run by a_panic_in_any_hook_is_survived in a process of its own"]
fn one_hook() {
    let hook = std::env::var(VARIABLE).unwrap();
    let hook = HOOKS.into_iter().find(|known| **known == hook).unwrap();
    let mut filter = Filter::new("panics");
    live(&mut filter);
    crash::ask(hook);
    live(&mut filter);
    let route =
        envoy_dynamic_module_on_http_filter_per_route_config_new(buffer("r"), buffer(DOCUMENT));
    envoy_dynamic_module_on_http_filter_per_route_config_destroy(route);
    envoy_dynamic_module_on_http_filter_config_scheduled(ptr::null_mut(), filter.config, 0);
    let other = envoy_dynamic_module_on_http_filter_config_new(
        ptr::null_mut(),
        buffer("panics"),
        buffer(DOCUMENT),
    );
    assert_eq!(other.is_null(), hook == "config_new");
    envoy_dynamic_module_on_http_filter_config_destroy(other);
    assert_eq!(guard::panics(), 1, "the hook was called, and panicked");
    assert_eq!(filter.in_flight("panics"), Some(0));
    // It still works.
    let replies = REPLIES.get();
    for at in 0..STREAMS {
        filter.play(at, &Hook::New);
        filter.play(at, &Hook::RequestHeaders(true));
    }
    assert_eq!(REPLIES.get() - replies, STREAMS - 3);
    assert_eq!(filter.in_flight("panics"), Some(3));
}

#[test]
#[ignore = "run by after_ten_panics_all_requests_pass in a process of its own"]
fn ten_panics() {
    let mut filter = Filter::new("panics");
    for _ in 0..10 {
        crash::ask("request_headers");
        live(&mut filter);
    }
    assert!(guard::is_off());
    let replies = REPLIES.get();
    for at in 0..STREAMS {
        filter.play(at, &Hook::New);
        filter.play(at, &Hook::RequestHeaders(true));
    }
    assert_eq!(REPLIES.get(), replies, "none is shed");
}
