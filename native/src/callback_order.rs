//! The orders in which Envoy was seen to call hooks. After each of them nothing is in flight.

use core::ffi::c_void;
use core::ptr;

use crate::counted;
use crate::fake::{CLUSTER, REPLIES, STATUS, WITHIN_REPLY};
use crate::hooks::*;
use crate::rig::{Filter, Hook, STREAMS};

/// Plays hooks on one stream.
fn play(filter: &mut Filter, at: usize, hooks: &[Hook]) {
    for hook in hooks {
        filter.play(at, hook);
    }
}

/// A stream from its beginning to its end, which is answered without a body.
const ANSWERED: [Hook; 5] = [
    Hook::New,
    Hook::RequestHeaders(true),
    Hook::ResponseHeaders(true),
    Hook::StreamComplete,
    Hook::Destroy,
];

fn end(filter: &Filter) {
    envoy_dynamic_module_on_http_filter_config_destroy(filter.config);
}

#[test]
fn a_stream_that_is_never_decoded_counts_nothing() {
    let mut filter = Filter::new("never-decoded");
    play(&mut filter, 1, &[Hook::New, Hook::RequestHeaders(true)]);
    let never = [
        Hook::New,
        Hook::LocalReply,
        Hook::ResponseHeaders(true),
        Hook::StreamComplete,
        Hook::Destroy,
    ];
    play(&mut filter, 0, &never);
    assert_eq!(filter.in_flight("never-decoded"), Some(1));
    play(&mut filter, 1, &[Hook::StreamComplete, Hook::Destroy]);
    assert_eq!(filter.in_flight("never-decoded"), Some(0));
    end(&filter);
}

thread_local! {
    static SHED: core::cell::Cell<*const c_void> = const { core::cell::Cell::new(ptr::null()) };
}

/// Envoy reports the local reply within the call that sends it, and might end and destroy the stream there too.
#[test]
fn hooks_within_a_local_reply_find_the_stream_busy_and_it_is_freed_afterwards() {
    let mut filter = Filter::new("nested");
    for at in 0..3 {
        play(&mut filter, at, &[Hook::New, Hook::RequestHeaders(true)]);
    }
    filter.play(3, &Hook::New);
    SHED.set(filter.streams[3].unwrap());
    WITHIN_REPLY.set(|| {
        let (envoy, stream) = (ptr::dangling_mut(), SHED.get());
        let details = crate::fake::buffer("details");
        envoy_dynamic_module_on_http_filter_local_reply(envoy, stream, 503, details, false);
        envoy_dynamic_module_on_http_filter_response_headers(envoy, stream, true);
        envoy_dynamic_module_on_http_filter_stream_complete(envoy, stream);
        envoy_dynamic_module_on_http_filter_destroy(stream);
    });
    let replies = REPLIES.get();
    filter.play(3, &Hook::RequestHeaders(true));
    WITHIN_REPLY.set(|| {});
    filter.streams[3] = None;
    assert_eq!(REPLIES.get() - replies, 1);
    assert_eq!(filter.in_flight("nested"), Some(3));
    for at in 0..3 {
        play(&mut filter, at, &[Hook::StreamComplete, Hook::Destroy]);
    }
    assert_eq!(filter.in_flight("nested"), Some(0));
    end(&filter);
}

#[test]
fn a_websocket_is_no_load_while_it_is_open() {
    let mut filter = Filter::new("websocket");
    STATUS.set("101");
    let opened = [
        Hook::New,
        Hook::RequestHeaders(false),
        Hook::ResponseHeaders(false),
        Hook::ResponseBody(false),
        Hook::RequestBody(false),
    ];
    play(&mut filter, 0, &opened);
    STATUS.set("200");
    assert_eq!(filter.in_flight("websocket"), Some(0));
    play(&mut filter, 0, &[Hook::StreamComplete, Hook::Destroy]);
    assert_eq!(filter.in_flight("websocket"), Some(0));
    end(&filter);
}

/// The filter of the first attempt completes with the redirect's status, and is destroyed after the second has begun.
#[test]
fn an_internal_redirect_counts_one_request_at_a_time() {
    let mut filter = Filter::new("redirect");
    STATUS.set("302");
    let first = [
        Hook::New,
        Hook::RequestHeaders(true),
        Hook::ResponseHeaders(true),
        Hook::StreamComplete,
    ];
    play(&mut filter, 0, &first);
    STATUS.set("200");
    play(&mut filter, 1, &[Hook::New, Hook::RequestHeaders(true)]);
    assert_eq!(filter.in_flight("redirect"), Some(1));
    filter.play(0, &Hook::Destroy);
    assert_eq!(filter.in_flight("redirect"), Some(1));
    let rest = [
        Hook::ResponseHeaders(true),
        Hook::StreamComplete,
        Hook::Destroy,
    ];
    play(&mut filter, 1, &rest);
    assert_eq!(filter.in_flight("redirect"), Some(0));
    end(&filter);
}

/// A drain lets requests end: some with their answers, some cut.
#[test]
fn requests_that_end_during_a_drain_leave_the_count() {
    let mut filter = Filter::new("drain");
    for at in 0..3 {
        play(&mut filter, at, &[Hook::New, Hook::RequestHeaders(true)]);
    }
    // The listener's next configuration is there already.
    filter.play(0, &Hook::Reconfigure);
    let (answered, cut) = (0, 1);
    let answer = [
        Hook::ResponseHeaders(false),
        Hook::ResponseBody(true),
        Hook::StreamComplete,
        Hook::Destroy,
    ];
    play(&mut filter, answered, &answer);
    let cut_off = [Hook::ResponseHeaders(false), Hook::StreamComplete];
    play(&mut filter, cut, &cut_off);
    play(&mut filter, 2, &[Hook::StreamComplete, Hook::Destroy]);
    assert_eq!(filter.in_flight("drain"), Some(0));
    end(&filter);
}

/// With ECDS the last reference to a configuration may be a worker's: it is destroyed there, while requests are under way.
#[test]
fn a_configuration_that_is_destroyed_on_a_worker_leaves_its_requests_counted() {
    let mut filter = Filter::new("ecds");
    play(&mut filter, 0, &[Hook::New, Hook::RequestHeaders(true)]);
    let newer = Filter::new("ecds");
    let old = filter.config as usize;
    let worker = std::thread::spawn(move || {
        envoy_dynamic_module_on_http_filter_config_destroy(old as *const c_void);
    });
    worker.join().unwrap();
    assert_eq!(newer.in_flight("ecds"), Some(1));
    let stream = filter.streams[0].unwrap();
    let envoy = ptr::dangling_mut();
    envoy_dynamic_module_on_http_filter_response_headers(envoy, stream, true);
    envoy_dynamic_module_on_http_filter_stream_complete(envoy, stream);
    envoy_dynamic_module_on_http_filter_destroy(stream);
    assert_eq!(newer.in_flight("ecds"), Some(0));
    end(&newer);
}

fn assert_allocates_nothing(name: &str, mut round: impl FnMut()) {
    // The first requests make the state of the upstream, and the places of the streams.
    round();
    let fewest = counted::fewest(|| {
        let before = counted::count();
        (0..100).for_each(|_| round());
        counted::count() - before
    });
    assert_eq!(fewest, 0, "{name}");
}

/// Requests whose headers or attributes are read, or that end badly.
#[test]
fn no_kind_of_request_allocates() {
    let grpc = [
        Hook::New,
        Hook::RequestHeaders(false),
        Hook::RequestBody(true),
        Hook::ResponseHeaders(false),
        Hook::ResponseTrailers,
        Hook::StreamComplete,
        Hook::Destroy,
    ];
    let cut_short = [
        Hook::New,
        Hook::RequestHeaders(true),
        Hook::StreamComplete,
        Hook::Destroy,
    ];
    let table: [(&str, &str, &str, &[Hook]); 5] = [
        ("grpc", "200", "", &grpc),
        (
            "failure",
            "503",
            r#","breaker":{"enabled":false}"#,
            &ANSWERED,
        ),
        ("cut-short", "200", "", &cut_short),
        (
            "ignored-path",
            "200",
            r#","ignore":{"paths":["/healthz"]}"#,
            &ANSWERED,
        ),
        (
            "route",
            "200",
            r#","upstreams":[{"match":{"route":"via*"},"mode":"observe"}]"#,
            &ANSWERED,
        ),
    ];
    CLUSTER.set("web");
    for (name, status, more, hooks) in table {
        let document =
            format!(r#"{{"slo":{{"latency":{{"quantile":0.99,"target":"300ms"}}}}{more}}}"#);
        let mut filter = Filter::with(name, &document);
        STATUS.set(status);
        assert_allocates_nothing(name, || play(&mut filter, 0, hooks));
        STATUS.set("200");
        assert_eq!(filter.in_flight(name), Some(0), "{name}");
        end(&filter);
    }
}

#[test]
fn a_request_allocates_nothing_admitted_or_shed() {
    let mut filter = Filter::new("allocations");
    CLUSTER.set("web");
    STATUS.set("200");
    let mut round = || {
        for at in 0..STREAMS {
            play(&mut filter, at, &ANSWERED[..2]);
        }
        for at in 0..STREAMS {
            play(&mut filter, at, &ANSWERED[2..]);
        }
    };
    let mut rounds = 0;
    let replies = REPLIES.get();
    assert_allocates_nothing("plain", || {
        rounds += 1;
        round();
    });
    assert_eq!(REPLIES.get() - replies, 3 * rounds, "half of them are shed");
    end(&filter);
}
