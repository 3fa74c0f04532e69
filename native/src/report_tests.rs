//! Load reports on the way from counts to headers, with hooks as Envoy calls them.

use crate::abi::header_type::{RESPONSE, RESPONSE_TRAILERS};
use crate::counted;
use crate::fake::{HEADERS_SET, LAST_REPORT, REPLIES};
use crate::rig::{Filter, Hook};

const SLO: &str = r#""slo":{"latency":{"quantile":0.99,"target":"300ms","until":"end"}},"limit":{"min":1,"initial":3,"max":3}"#;

fn filter(name: &str, options: &str) -> Filter {
    HEADERS_SET.take();
    LAST_REPORT.take();
    Filter::with(name, &format!("{{{SLO}{options}}}"))
}

fn play(filter: &mut Filter, at: usize, hooks: &[Hook]) {
    hooks.iter().for_each(|hook| filter.play(at, hook));
}

const ASKED: [Hook; 2] = [Hook::New, Hook::RequestHeaders(true)];
const ANSWERED: [Hook; 3] = [
    Hook::ResponseHeaders(true),
    Hook::StreamComplete,
    Hook::Destroy,
];

/// A request at a time, and a round of upkeep after each.
fn serve(filter: &mut Filter, requests: usize) {
    for _ in 0..requests {
        play(filter, 0, &ASKED);
        play(filter, 0, &ANSWERED[..2]);
        play(filter, 0, &[Hook::Round, Hook::Destroy]);
    }
}

/// What was done to the headers named so in a map, in order.
fn done(kind: u32, name: &str) -> Vec<String> {
    let headers = HEADERS_SET.with_borrow(Vec::clone);
    let of_it = headers
        .into_iter()
        .filter(|it| it.0 == kind && it.1 == name);
    of_it.map(|(_, _, value)| value).collect()
}

const REPORT: &str = "endpoint-load-metrics";
const BINARY: &str = "endpoint-load-metrics-bin";

#[test]
fn responses_stay_as_they_are_unless_the_configuration_says_otherwise() {
    for (name, options) in [
        ("pass", ""),
        (
            "killed",
            r#","enabled":false,"native":{"loadReports":"set"}"#,
        ),
    ] {
        let mut filter = filter(name, options);
        serve(&mut filter, 5);
        assert!(HEADERS_SET.with_borrow(Vec::is_empty), "{name}");
        filter.end();
    }
}

#[test]
fn reports_of_upstreams_are_removed_from_headers_and_trailers() {
    let mut filter = filter("remove", r#","native":{"loadReports":"remove"}"#);
    let hooks = [
        Hook::ResponseHeaders(false),
        Hook::ResponseTrailers,
        Hook::StreamComplete,
        Hook::Destroy,
    ];
    play(&mut filter, 0, &ASKED);
    play(&mut filter, 0, &hooks);
    for kind in [RESPONSE, RESPONSE_TRAILERS] {
        assert_eq!(done(kind, REPORT), [""]);
        assert_eq!(done(kind, BINARY), [""]);
    }
    filter.end();
}

#[test]
fn a_report_tells_what_was_counted_and_replaces_that_of_the_upstream() {
    let mut filter = filter("set", r#","native":{"loadReports":"set"}"#);
    serve(&mut filter, 30);
    let reports = done(RESPONSE, REPORT);
    assert_eq!(
        reports[0], "",
        "nothing is known yet, and the upstream's own does not pass"
    );
    let last = reports.last().unwrap();
    let figure = |name: &str| -> f64 {
        let (_, rest) = last.split_once(&format!("{name}:")).unwrap();
        rest.split(',').next().unwrap().parse().unwrap()
    };
    assert!(last.starts_with("TEXT application_utilization:"), "{last}");
    assert!(figure("rps_fractional") > 0.0 && figure("application_utilization") > 0.0);
    assert!(figure("eps").abs() < f64::EPSILON, "{last}");
    assert!(figure("named_metrics.tidegate.pressure") >= 0.0);
    assert!(done(RESPONSE, BINARY).iter().all(String::is_empty));
    filter.end();
}

#[test]
fn a_shed_request_is_told_of_the_load_that_shed_it() {
    let mut filter = filter("shed-report", r#","native":{"loadReports":"set"}"#);
    serve(&mut filter, 30);
    (0..3).for_each(|at| play(&mut filter, at, &ASKED));
    let replies = REPLIES.get();
    play(&mut filter, 3, &ASKED);
    assert_eq!(REPLIES.get(), replies + 1);
    let report = LAST_REPORT.take();
    assert!(
        report.starts_with("TEXT application_utilization:"),
        "{report}"
    );
    filter.end();
}

#[test]
fn a_configuration_without_reports_ends_them() {
    let mut filter = filter("ends", r#","native":{"loadReports":"set"}"#);
    serve(&mut filter, 20);
    let newer = Filter::with("ends", &format!("{{{SLO}}}"));
    serve(&mut filter, 2);
    HEADERS_SET.take();
    serve(&mut filter, 2);
    assert!(HEADERS_SET.with_borrow(Vec::is_empty));
    filter.end();
    newer.end();
}

#[test]
fn a_response_with_a_report_allocates_nothing() {
    let mut filter = filter("report-allocations", r#","native":{"loadReports":"set"}"#);
    serve(&mut filter, 20);
    // The fake's list has room from here on.
    HEADERS_SET.with_borrow_mut(|headers| headers.reserve(100));
    let fewest = counted::fewest(|| {
        play(&mut filter, 0, &ASKED);
        let stream = filter.streams[0].unwrap();
        let before = counted::count();
        crate::hooks::envoy_dynamic_module_on_http_filter_response_headers(
            core::ptr::dangling_mut(),
            stream,
            true,
        );
        let allocated = counted::count() - before;
        play(&mut filter, 0, &ANSWERED[1..]);
        allocated
    });
    // The fake keeps two texts for each of the three headers; empty ones need no memory.
    assert!(fewest <= 4, "{fewest}");
    filter.end();
}
