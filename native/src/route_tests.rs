//! Requests to routes that have a configuration of their own.

use core::ptr;
use std::time::{Duration, Instant};

use crate::fake::{GAUGES, REPLIES, ROUTE};
use crate::registry;
use crate::rig::{DOCUMENT, Filter, Hook, Route, STREAMS, in_flight};

/// Longest time until the module's thread is between two rounds.
const BOUND: Duration = Duration::from_secs(20);

const ANSWER: [Hook; 3] = [
    Hook::ResponseHeaders(true),
    Hook::StreamComplete,
    Hook::Destroy,
];

/// Begins a request to a route, or with `None` to one without a configuration of its own. Returns whether it was shed.
fn begin(filter: &mut Filter, at: usize, route: Option<&Route>) -> bool {
    ROUTE.set(route.map_or(ptr::null(), |route| route.0));
    let replies = REPLIES.get();
    filter.play(at, &Hook::New);
    filter.play(at, &Hook::RequestHeaders(true));
    ROUTE.set(ptr::null());
    REPLIES.get() > replies
}

fn answer(filter: &mut Filter, at: usize) {
    for hook in &ANSWER {
        filter.play(at, hook);
    }
}

/// Publishes until Envoy has this value for a gauge of the plugin.
fn publish_until(filter: &Filter, metric: &str, plugin: &str, wanted: u64) {
    let (metric, plugin) = (format!("tidegate_{metric} "), format!(" {plugin}"));
    let told = || {
        GAUGES.with_borrow(|gauges| {
            let mut gauges = gauges.iter();
            let found = gauges.find(|(it, _)| it.starts_with(&metric) && it.ends_with(&plugin));
            found.map(|(_, value)| *value)
        })
    };
    let started = Instant::now();
    while told() != Some(wanted) {
        assert!(started.elapsed() < BOUND, "{metric}is {:?}", told());
        registry::schedule_publishing();
        filter.publish();
    }
}

#[test]
fn each_route_has_a_limit_of_its_own() {
    let mut filter = Filter::new("routes-limits");
    let wide = Route::with("routes-limits@wide", DOCUMENT);
    let one = DOCUMENT.replace(r#""initial":3,"max":3"#, r#""initial":1,"max":1"#);
    let narrow = Route::with("routes-limits@narrow", &one);
    let mut shed = |at, route| begin(&mut filter, at, route);
    assert_eq!(
        [shed(0, Some(&narrow)), shed(1, Some(&narrow))],
        [false, true]
    );
    assert_eq!([2, 3, 4].map(|at| shed(at, Some(&wide))), [false; 3]);
    assert!(!shed(5, None), "the filter's own state has room");
    let counts = |filter: &Filter| {
        let routes = [&narrow, &wide].map(|route| in_flight(&route.plugin()));
        (routes, filter.in_flight("routes-limits"))
    };
    assert_eq!(counts(&filter), ([Some(1), Some(3)], Some(1)));
    for at in 0..STREAMS {
        answer(&mut filter, at);
    }
    assert_eq!(counts(&filter), ([Some(0), Some(0)], Some(0)));
    narrow.end();
    wide.end();
    filter.end();
}

/// Before, Envoy kept 1 request in flight for good, and the limit of a route that was gone.
#[test]
fn all_gauges_of_a_route_are_0_once_its_configuration_and_its_requests_have_ended() {
    let name = "routes-end@route";
    let mut filter = Filter::new("routes-end");
    let route = Route::with(name, DOCUMENT);
    begin(&mut filter, 0, Some(&route));
    publish_until(&filter, "in_flight", name, 1);
    publish_until(&filter, "limit", name, 3);
    let plugin = route.plugin();
    route.end();
    drop(plugin);
    filter.publish();
    assert!(registry::knows(name), "a request is under way");
    answer(&mut filter, 0);
    publish_until(&filter, "limit", name, 0);
    let is_wrong = |(key, value): &(&String, &u64)| key.ends_with(name) && **value != 0;
    GAUGES.with_borrow(|gauges| assert_eq!(gauges.iter().find(is_wrong), None));
    assert!(!registry::knows(name));
    filter.end();
}

#[test]
fn routes_without_a_name_share_state_if_their_configurations_are_equal() {
    let [one, two] = [(); 2].map(|()| Route::with("routes-equal", DOCUMENT));
    let other = Route::with("routes-equal", &DOCUMENT.replace("300ms", "200ms"));
    let name = |route: &Route| route.plugin().name().to_owned();
    assert_eq!(name(&one), name(&two));
    assert_ne!(name(&one), name(&other));
    assert!(registry::has_routes() && name(&one).starts_with("routes-equal@"));
    for route in [one, two, other] {
        route.end();
    }
}

/// Before, each push of a changed configuration had metrics of its own, and Envoy removes none.
#[test]
fn a_route_with_a_name_keeps_state_and_labels_in_a_push_and_the_newest_configuration_that_lives_is_in_force()
 {
    let mut filter = Filter::new("routes-push");
    let old = Route::with("routes-push@route", DOCUMENT);
    begin(&mut filter, 0, Some(&old));
    let plugin = old.plugin();
    let digest = plugin.digest();
    let rejected = Route::with("routes-push@route", &DOCUMENT.replace("300ms", "200ms"));
    assert_ne!(plugin.digest(), digest);
    rejected.end();
    assert_eq!(plugin.digest(), digest);
    let new = Route::with("routes-push@route", &DOCUMENT.replace("300ms", "100ms"));
    old.end();
    assert_ne!(plugin.digest(), digest);
    assert_eq!(new.plugin().name(), "routes-push@route");
    assert_eq!(in_flight(&new.plugin()), Some(1));
    answer(&mut filter, 0);
    assert_eq!(in_flight(&new.plugin()), Some(0));
    new.end();
    filter.end();
}

/// A proxy may drop a route and get it back, before its plugin is gone.
#[test]
fn a_route_that_comes_back_while_a_request_is_under_way_finds_it_counted() {
    let mut filter = Filter::new("routes-back");
    let route = Route::with("routes-back@route", DOCUMENT);
    begin(&mut filter, 0, Some(&route));
    route.end();
    filter.publish();
    let route = Route::with("routes-back@route", DOCUMENT);
    assert_eq!(in_flight(&route.plugin()), Some(1));
    answer(&mut filter, 0);
    filter.publish();
    assert!(registry::knows("routes-back@route"), "it is in use again");
    route.end();
    filter.end();
}
