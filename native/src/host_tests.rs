//! Counts by upstream host, through Envoy's hooks.

use tidegate_core::UpstreamKey;
use tidegate_worker::api::MetricKind;
use tidegate_worker::metrics::name::{Naming, upstream_labels};

use crate::counted;
use crate::fake::{ADDRESS, STATUS};
use crate::host_verdict::HostCount;
use crate::rig::{Filter, Hook, STREAMS};

const SLO: &str = r#""slo":{"latency":{"quantile":0.99,"target":"300ms","until":"end"}}"#;
const GOOD: &str = "10.0.0.1:80";
const BAD: &str = "10.0.0.2:80";

fn filter(name: &str, options: &str) -> Filter {
    STATUS.set("200");
    ADDRESS.set(GOOD);
    Filter::with(name, &format!("{{{SLO}{options}}}"))
}

fn serve(filter: &mut Filter, address: &'static str, status: &'static str, times: usize) {
    for _ in 0..times {
        STATUS.set(status);
        filter.play(0, &Hook::New);
        filter.play(0, &Hook::RequestHeaders(true));
        ADDRESS.set(address);
        filter.play(0, &Hook::ResponseHeaders(true));
        filter.play(0, &Hook::StreamComplete);
        filter.play(0, &Hook::Destroy);
    }
}

/// A round of upkeep.
fn round(filter: &Filter) {
    filter.config().plugin.begin_round();
    filter.config().plugin.end_round();
}

/// What was counted for a host of an upstream.
fn counts(filter: &Filter, upstream: &str, host: &str) -> [u64; 4] {
    let plugin = &filter.config().plugin;
    let labels = upstream_labels(&UpstreamKey {
        cluster: upstream.to_owned(),
        route: None,
    });
    HostCount::ALL.map(|count| {
        let name = Naming::of_plugin(plugin.name()).name(count.metric(), &labels, Some(host));
        let metrics = &plugin.shared().metrics;
        let id = metrics.define(MetricKind::Counter, &name).unwrap();
        metrics.get(id).unwrap()
    })
}

#[test]
fn requests_and_failures_are_counted_by_host() {
    let mut filter = filter("hosts", r#","native":{"hosts":2}"#);
    serve(&mut filter, GOOD, "200", 5);
    serve(&mut filter, BAD, "500", 3);
    serve(&mut filter, BAD, "404", 1);
    serve(&mut filter, "", "200", 1);
    round(&filter);
    assert_eq!(counts(&filter, "web", GOOD), [5, 0, 0, 0]);
    assert_eq!(counts(&filter, "web", BAD), [4, 3, 0, 0]);
    for host in ["10.0.0.3:80", "10.0.0.4:80"] {
        serve(&mut filter, host, "500", 1);
        serve(&mut filter, GOOD, "200", 1);
    }
    round(&filter);
    assert_eq!(counts(&filter, "web", "_overflow"), [2, 2, 0, 0]);
    assert_eq!(counts(&filter, "web", "10.0.0.3:80"), [0; 4]);
    assert_eq!(counts(&filter, "web", GOOD), [7, 0, 0, 0]);
    filter.end();
}

#[test]
fn a_request_that_never_ends_by_itself_counts_when_its_stream_does() {
    let mut filter = filter("reset-host", r#","native":{"hosts":2}"#);
    ADDRESS.set(BAD);
    for hook in [
        Hook::New,
        Hook::RequestHeaders(true),
        Hook::ResponseHeaders(false),
    ] {
        filter.play(1, &hook);
    }
    round(&filter);
    assert_eq!(counts(&filter, "web", BAD), [0; 4]);
    for hook in [Hook::StreamComplete, Hook::Destroy] {
        filter.play(1, &hook);
    }
    round(&filter);
    assert_eq!(counts(&filter, "web", BAD), [1, 0, 0, 0]);
    filter.end();
}

#[test]
fn a_configuration_without_hosts_counts_none_of_them() {
    let mut off = filter("no-hosts", "");
    serve(&mut off, GOOD, "500", 5);
    round(&off);
    assert_eq!(counts(&off, "web", GOOD), [0; 4]);
    off.end();

    let mut filter = filter("ends-hosts", r#","native":{"hosts":1}"#);
    serve(&mut filter, GOOD, "200", 5);
    let newer = Filter::with("ends-hosts", &format!("{{{SLO}}}"));
    round(&filter);
    assert_eq!(
        counts(&filter, "web", GOOD),
        [5, 0, 0, 0],
        "what was counted is told"
    );
    serve(&mut filter, GOOD, "200", 5);
    round(&filter);
    assert_eq!(counts(&filter, "web", GOOD), [5, 0, 0, 0]);
    filter.end();
    newer.end();
}

#[test]
fn a_request_that_ends_while_its_worker_is_busy_counts_for_its_host() {
    let mut filter = filter("late-host", r#","native":{"hosts":1}"#);
    filter.play(0, &Hook::New);
    filter.play(0, &Hook::RequestHeaders(true));
    ADDRESS.set(BAD);
    let plugin = std::sync::Arc::clone(&filter.config().plugin);
    plugin.while_taken(0, || {
        filter.play(0, &Hook::StreamComplete);
        filter.play(0, &Hook::Destroy);
    });
    ADDRESS.set(GOOD);
    round(&filter);
    assert_eq!(counts(&filter, "web", BAD), [1, 0, 0, 0]);
    filter.end();
}

/// Also the first request to a host.
#[test]
fn counting_by_host_allocates_nothing() {
    let mut filter = filter("host-allocations", r#","native":{"hosts":10}"#);
    // The first request makes the state of the upstream.
    serve(&mut filter, "", "200", 1);
    let mut runs = 0;
    let fewest = counted::fewest(|| {
        runs += 1;
        for at in 0..STREAMS {
            for hook in [Hook::New, Hook::RequestHeaders(true)] {
                filter.play(at, &hook);
            }
        }
        let before = counted::count();
        for (at, address) in [GOOD, BAD, "[::1]:80"]
            .into_iter()
            .cycle()
            .take(STREAMS)
            .enumerate()
        {
            ADDRESS.set(address);
            for hook in [Hook::ResponseHeaders(true), Hook::StreamComplete] {
                filter.play(at, &hook);
            }
        }
        let allocated = counted::count() - before;
        (0..STREAMS).for_each(|at| filter.play(at, &Hook::Destroy));
        allocated
    });
    assert_eq!(fewest, 0);
    round(&filter);
    assert_eq!(counts(&filter, "web", BAD)[0], 2 * runs);
    filter.end();
}
