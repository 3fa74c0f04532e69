//! A fake Prometheus on loopback: down, slow, not Prometheus, denied, in part, too large.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tidegate_graph::prometheus::{
    AskError, AskPrometheus as _, ClientSettings, Credentials, PrometheusClient,
};
use tidegate_graph::{
    BuildTerms, CollectError, Collected, MetricsChoice, ObservationWindow, WarningKind, build,
    collect, planned,
};

const EMPTY: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
const ONE: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"reporter":"source","source_workload":"web","source_workload_namespace":"shop","destination_workload":"cart","destination_workload_namespace":"shop"},"value":[1700000000,"2"]}]}}"#;

/// A server that answers each request by its first line; `None` is not an answer. It ends with the test's process. The
/// heads of requests can be received.
fn server(answer: fn(&str) -> Option<(&'static str, String)>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (heads, received) = channel();
    thread::spawn(move || {
        // Connections that get no answer stay open.
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream: TcpStream = stream.unwrap();
            let head: Vec<String> = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let text = head.join("\n");
            let Some((status, body)) = answer(head.first().map_or("", String::as_str)) else {
                silent.push(stream);
                continue;
            };
            let _ = heads.send(text);
            let length = body.len();
            // A client that has read enough may be gone.
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    (url, received)
}

fn settings(url: &str) -> ClientSettings {
    ClientSettings {
        url: url.to_owned(),
        credentials: Credentials::None,
        authorities: None,
        identity: None,
        timeout: Duration::from_secs(30),
    }
}

fn collected(url: &str) -> Result<Collected, CollectError> {
    let observed = ObservationWindow {
        end: 1_700_000_000,
        window_seconds: 3_600,
        step_seconds: 300,
    };
    let plan = planned(observed, "job").unwrap();
    let client = PrometheusClient::new(&settings(url)).unwrap();
    collect(&client, plan, observed, "job", &MetricsChoice::First)
}

fn failure(url: &str) -> String {
    collected(url).unwrap_err().to_string()
}

#[test]
fn a_server_that_is_down_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);

    let error = failure(&url);

    assert!(
        error.starts_with(&url) && error.contains("is Prometheus up"),
        "{error}"
    );
}

#[test]
fn a_server_that_is_silent_runs_into_the_timeout() {
    let (url, _) = server(|_| None);
    let client = PrometheusClient::new(&ClientSettings {
        timeout: Duration::from_millis(100),
        ..settings(&url)
    });

    let error = client.unwrap().ask("vector(1)", 0, 1_000).unwrap_err();

    assert!(matches!(error, AskError::Timeout { .. }), "{error}");
    assert!(
        error.to_string().contains("no answer within 100ms"),
        "{error}"
    );
}

#[test]
fn a_page_is_not_prometheus() {
    let (url, _) = server(|_| Some(("200 OK", "<html>log in</html>".to_owned())));

    let error = failure(&url);

    assert!(
        error.contains("found \"<html>log in</html>\", expected JSON"),
        "{error}"
    );
}

#[test]
fn a_redirect_is_not_followed() {
    let (url, _) = server(|_| {
        Some((
            "302 Found\r\nlocation: http://127.0.0.1:1/login",
            String::new(),
        ))
    });

    let error = failure(&url);

    assert!(
        error.contains("status 302: found \"\", expected JSON"),
        "{error}"
    );
}

#[test]
fn other_credentials_are_asked_for() {
    let (url, _) = server(|_| Some(("401 Unauthorized", String::new())));
    assert!(failure(&url).contains("status 401: expected other credentials"));
    let (url, _) = server(|_| Some(("403 Forbidden", "{}".to_owned())));
    assert!(failure(&url).contains("status 403: expected other credentials"));
}

#[test]
fn an_answer_that_is_too_large_is_not_read() {
    let (url, _) = server(|_| Some(("200 OK", format!("\"{}\"", "x".repeat(100_000)))));
    let client = PrometheusClient::new(&settings(&url)).unwrap();

    let error = client.ask("vector(1)", 0, 1_000).unwrap_err();

    assert!(
        error
            .to_string()
            .ends_with("the answer is larger than 1000 bytes"),
        "{error}"
    );
}

#[test]
fn a_query_that_fails_leaves_a_gap_and_the_graph_is_built() {
    let (url, _) = server(|line| {
        Some(if line.contains("histogram_quantile") {
            (
                "503 Service Unavailable",
                r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#.to_owned(),
            )
        } else if line.contains("istio_requests_total") {
            ("200 OK", ONE.to_owned())
        } else {
            ("200 OK", EMPTY.to_owned())
        })
    });

    let collected = collected(&url).unwrap();
    let built = build(&collected.recording(), BuildTerms::default()).unwrap();

    assert!(built.graph.petgraph().edge_count() >= 1);
    let failed = built
        .warnings
        .iter()
        .filter(|warning| warning.kind == WarningKind::QueryFailed);
    let failed: Vec<&str> = failed.map(|warning| warning.message.as_str()).collect();
    assert_eq!(failed.len(), 12, "{failed:?}");
    assert!(
        failed[0].ends_with("is unknown: timeout: query timed out"),
        "{failed:?}"
    );
}

#[test]
fn without_metrics_every_source_is_asked_and_the_graph_is_empty() {
    let (url, heads) = server(|_| Some(("200 OK", EMPTY.to_owned())));

    let collected = collected(&url).unwrap();
    let built = build(&collected.recording(), BuildTerms::default()).unwrap();

    assert_eq!(built.warnings.len(), 1);
    assert_eq!(built.warnings[0].kind, WarningKind::NoEdges);
    let asked: Vec<String> = heads.try_iter().collect();
    assert!(
        asked[0].contains("query=vector")
            && asked.iter().any(|head| head.contains("tidegate_in_flight"))
    );
}

#[test]
fn credentials_are_sent() {
    let (url, heads) = server(|_| Some(("200 OK", EMPTY.to_owned())));
    for (credentials, expected) in [
        (
            Credentials::Token("abc".to_owned()),
            "authorization: Bearer abc",
        ),
        (
            Credentials::Basic {
                user: "tide".to_owned(),
                password: "gate".to_owned(),
            },
            "authorization: Basic dGlkZTpnYXRl",
        ),
    ] {
        let client = PrometheusClient::new(&ClientSettings {
            credentials,
            ..settings(&url)
        });
        client.unwrap().ask("up", 7, 1_000).unwrap();
        let head = heads.recv().unwrap();
        assert!(head.contains(expected), "{head}");
        assert!(
            head.starts_with("GET /api/v1/query?query=up&time=7&timeout=30000ms "),
            "{head}"
        );
    }
}

#[test]
fn credentials_in_clear_are_those_over_http_to_another_machine() {
    for (url, expected) in [
        ("http://prometheus:9090", true),
        ("HTTP://prometheus:9090", true),
        ("http://localhost.example", true),
        ("http://127.0.0.1.example:9090", true),
        ("http://127.0.0.1:9090", false),
        ("http://localhost:9090/prefix", false),
        ("http://[::1]:9090", false),
        ("https://prometheus", false),
    ] {
        let client = |credentials| {
            PrometheusClient::new(&ClientSettings {
                credentials,
                ..settings(url)
            })
            .unwrap()
        };
        let token = Credentials::Token("abc".to_owned());
        assert_eq!(
            client(token).sends_credentials_in_clear(),
            expected,
            "{url}"
        );
        assert!(!client(Credentials::None).sends_credentials_in_clear());
    }
}

#[test]
fn settings_that_cannot_be_used_are_rejected() {
    for (url, expected) in [
        ("prometheus:9090", "the URL of Prometheus"),
        ("ftp://prometheus", "its scheme is neither http nor https"),
        ("http://user:secret@prometheus", "it contains a user"),
        ("http://prometheus/?x=1", "it has a query"),
        ("http://prometheus/#x", "it has a fragment"),
    ] {
        let error = PrometheusClient::new(&settings(url))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(expected) && !error.contains("secret"),
            "{error}"
        );
    }
    let token = ClientSettings {
        credentials: Credentials::Token("a\r\nx: y".to_owned()),
        ..settings("http://127.0.0.1")
    };
    let error = PrometheusClient::new(&token).unwrap_err().to_string();
    assert!(
        error.contains("control characters") && !error.contains("x: y"),
        "{error}"
    );
}

#[test]
fn certificates_are_checked_before_they_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (one, other) = (made(), made());
    std::fs::write(path("one.pem"), one.cert.pem()).unwrap();
    std::fs::write(path("one.key"), one.signing_key.serialize_pem()).unwrap();
    std::fs::write(path("other.key"), other.signing_key.serialize_pem()).unwrap();
    std::fs::write(path("none.pem"), "none").unwrap();
    let client = |authorities: &str, key: &str| {
        PrometheusClient::new(&ClientSettings {
            authorities: Some(path(authorities)),
            identity: Some((path("one.pem"), path(key))),
            ..settings("https://127.0.0.1")
        })
    };

    assert!(client("one.pem", "one.key").is_ok());
    let error = client("none.pem", "one.key").unwrap_err().to_string();
    assert!(
        error.contains("none.pem: found no certificate, expected PEM"),
        "{error}"
    );
    let error = client("one.pem", "other.key").unwrap_err().to_string();
    assert!(
        error.contains("other.key: ") && error.contains("expected the key of"),
        "{error}"
    );
}
