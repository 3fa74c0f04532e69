//! A panic in any hook leaves Envoy running, lets the request pass, and leaves nothing in flight.
//!
//! Panics are counted for the whole process, and ten of them turn the module off. So each of these tests runs in a process of
//! its own: this test program, called again for one test.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;

use crate::fake::{REPLIES, WITHIN_REPLY, buffer};
use crate::hooks::*;
use crate::rig::{DOCUMENT, Filter, Hook, STREAMS};
use crate::stream::NativeStream;
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

/// Places within a request: after the count of all workers was raised, before it is lowered, after a local reply, and before a
/// request that has ended is completed.
const PLACES: [&str; 4] = ["raise", "add", "reply", "host_counts"];
/// Longest time until the leader corrects a count: it reads one in each round, and judges after twenty.
const BOUND: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

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
fn a_panic_within_a_request_leaves_nothing_in_flight() {
    for place in PLACES {
        run("one_place", place);
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

/// A document in which upstream hosts are counted.
fn with_hosts() -> String {
    DOCUMENT.replacen('{', r#"{"native":{"hosts":10},"#, 1)
}

thread_local! {
    static SHED: Cell<*const c_void> = const { Cell::new(ptr::null()) };
}

#[test]
#[ignore = "run by a_panic_within_a_request_leaves_nothing_in_flight in a process of its own"]
fn one_place() {
    let place = std::env::var(VARIABLE).unwrap();
    let place = PLACES.into_iter().find(|known| **known == place).unwrap();
    let mut filter = Filter::with("panics", &with_hosts());
    live(&mut filter);
    for at in 1..STREAMS - 1 {
        filter.play(at, &Hook::New);
        filter.play(at, &Hook::RequestHeaders(true));
    }
    // The next one is shed, and destroyed within its reply.
    filter.play(5, &Hook::New);
    SHED.set(filter.streams[5].unwrap());
    WITHIN_REPLY.set(|| envoy_dynamic_module_on_http_filter_destroy(SHED.get()));
    let places = NativeStream::free_places();
    if place == "reply" {
        crash::ask(place);
    }
    play_headers(&filter, 5);
    filter.streams[5] = None;
    WITHIN_REPLY.set(|| {});
    assert_eq!(NativeStream::free_places(), places + 1);
    for at in 1..STREAMS - 1 {
        filter.play(at, &Hook::StreamComplete);
        filter.play(at, &Hook::Destroy);
    }
    if place != "reply" {
        crash::ask(place);
        live(&mut filter);
    }
    assert_eq!(guard::panics(), 1, "the place was passed, and panicked");
    let started = Instant::now();
    while filter.in_flight("panics") != Some(0) {
        assert!(
            started.elapsed() < BOUND,
            "{:?}",
            filter.in_flight("panics")
        );
        thread::sleep(POLL);
    }
    // As many are admitted as ever.
    let replies = REPLIES.get();
    for at in 0..STREAMS {
        filter.play(at, &Hook::New);
        filter.play(at, &Hook::RequestHeaders(true));
    }
    assert_eq!(REPLIES.get() - replies, STREAMS - 3);
}

/// As Envoy calls it, without a look at what it answers: a panic after the reply hides it.
fn play_headers(filter: &Filter, at: usize) {
    let stream = filter.streams[at].unwrap();
    envoy_dynamic_module_on_http_filter_request_headers(ptr::dangling_mut(), stream, true);
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
    let mut counted = [0, 0];
    // The module's own thread may be in the middle of it.
    for _ in 0..2 {
        filter.round();
        counted = ["panic", "off"].map(|kind| filter.faults(kind));
    }
    assert_eq!(counted, [10, 1]);
    let replies = REPLIES.get();
    for at in 0..STREAMS {
        filter.play(at, &Hook::New);
        filter.play(at, &Hook::RequestHeaders(true));
    }
    assert_eq!(REPLIES.get(), replies, "none is shed");
}
