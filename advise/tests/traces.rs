//! Calls that traces show to be made at the same time.

use std::collections::BTreeSet;

use crate::common::built;
use serde_json::{Value, json};
use tidegate_advise::split::ParallelCalls;
use tidegate_advise::traces::{TraceSpan, learned_calls, read_traces};

const SHOP: &str = include_str!("recordings/shop.json");

/// A span of a service, in milliseconds.
struct Span(&'static str, &'static str, &'static str, u64, u64);

/// A request to `web` that calls cart and prices, from the given times on; the caller has spans for its calls.
fn request(cart: (u64, u64), prices: (u64, u64)) -> Vec<Span> {
    vec![
        Span("1", "", "web", 0, 100),
        Span("2", "1", "web", cart.0, cart.1),
        Span("3", "2", "cart", cart.0, cart.1),
        Span("4", "1", "web", prices.0, prices.1),
        Span("5", "4", "prices.shop", prices.0, prices.1),
        Span("6", "3", "cart", cart.0, cart.1),
    ]
}

fn otlp(traces: &[Vec<Span>]) -> String {
    let spans = traces.iter().enumerate().flat_map(|(trace, spans)| {
        spans.iter().map(move |span| {
            json!({
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": span.2}}]},
                "scopeSpans": [{"spans": [{
                    "traceId": trace.to_string(), "spanId": span.0, "parentSpanId": span.1,
                    "startTimeUnixNano": (span.3 * 1_000_000).to_string(), "endTimeUnixNano": (span.4 * 1_000_000).to_string(),
                }]}],
            })
        })
    });
    // The collector writes one document a line.
    let lines: Vec<String> = spans
        .map(|resource| json!({"resourceSpans": [resource]}).to_string())
        .collect();
    lines.join("\n")
}

fn jaeger(traces: &[Vec<Span>]) -> String {
    let data: Vec<Value> = traces
        .iter()
        .enumerate()
        .map(|(trace, spans)| {
            let spans: Vec<Value> = spans
                .iter()
                .map(|span| {
                    let references = if span.1.is_empty() {
                        json!([])
                    } else {
                        json!([{"refType": "CHILD_OF", "traceID": trace.to_string(), "spanID": span.1}])
                    };
                    json!({
                        "traceID": trace.to_string(), "spanID": span.0, "processID": span.2, "references": references,
                        "startTime": span.3 * 1_000, "duration": (span.4 - span.3) * 1_000,
                    })
                })
                .collect();
            let process = |name: &str| json!({"serviceName": name});
            json!({
                "spans": spans,
                "processes": {"web": process("web"), "cart": process("cart"), "prices.shop": process("prices.shop")},
            })
        })
        .collect();
    json!({"data": data}).to_string()
}

fn learned(spans: &[TraceSpan]) -> Vec<ParallelCalls> {
    let found = learned_calls(&built(SHOP).graph, spans);
    assert_eq!(found.unknown, BTreeSet::new());
    found.parallel
}

fn requests(overlapping: usize, following: usize) -> Vec<Vec<Span>> {
    let mut all = Vec::new();
    all.extend((0..overlapping).map(|_| request((10, 50), (20, 60))));
    all.extend((0..following).map(|_| request((10, 20), (20, 60))));
    all
}

#[test]
fn both_formats_are_read_alike() {
    let traces = requests(1, 1);

    let (a, b) = (
        read_traces(&otlp(&traces)).unwrap(),
        read_traces(&jaeger(&traces)).unwrap(),
    );

    assert_eq!(a.len(), 12);
    assert_eq!(a, b);
}

#[test]
fn calls_that_mostly_overlap_are_made_at_the_same_time() {
    let spans = read_traces(&otlp(&requests(6, 2))).unwrap();

    assert_eq!(
        learned(&spans),
        [ParallelCalls {
            caller: "shop/web-v1".to_owned(),
            upstreams: BTreeSet::from(["shop/cart-v1".to_owned(), "shop/prices-v1".to_owned()]),
        }]
    );
}

#[test]
fn calls_that_follow_one_another_or_are_few_are_not() {
    for traces in [requests(0, 10), requests(4, 5), requests(4, 0)] {
        let spans = read_traces(&otlp(&traces)).unwrap();
        assert_eq!(learned(&spans), []);
    }
}

#[test]
fn a_service_that_is_not_in_the_graph_is_named() {
    let text = otlp(&requests(6, 0)).replace("prices.shop", "prices.other");

    let found = learned_calls(&built(SHOP).graph, &read_traces(&text).unwrap());

    assert_eq!(found.unknown, BTreeSet::from(["prices.other".to_owned()]));
}

#[test]
fn a_circle_of_spans_ends() {
    let text = otlp(&[vec![
        Span("1", "2", "web", 0, 10),
        Span("2", "1", "web", 0, 10),
        Span("3", "1", "cart", 0, 10),
    ]]);

    assert_eq!(learned(&read_traces(&text).unwrap()), []);
}

#[test]
fn other_texts_are_errors() {
    for (text, expected) in [
        ("<html>", "expected value at line 1 column 1"),
        (" ", "found nothing"),
        ("{}", "found neither resourceSpans nor data"),
        (
            r#"{"data": [{"spans": [{"traceID": "1"}]}]}"#,
            "missing field `spanID` at line 1",
        ),
    ] {
        let error = read_traces(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(
            error.ends_with("expected traces as JSON of OTLP or Jaeger"),
            "{error}"
        );
    }
}
