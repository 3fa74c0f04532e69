//! `tidegate score`, as users run it, with servers on loopback.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use serde_json::Value;

/// A hostile name. Printed without escapes, it would end the line and color the rest.
const UPSTREAM: &str = r"web\n\u001b[31m";

/// A server that answers each request by its first line. It ends with the process of the test.
fn server(answer: fn(&str) -> String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines = lines.map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let body = answer(head.first().map_or("", String::as_str));
            // A client that has read enough may have closed the connection.
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

/// The answers of a Prometheus that has requests and answers, but neither CPU nor memory.
fn prometheus(line: &str) -> String {
    let is_of = |name: &str| {
        line.contains(name) && !line.contains("container") && !line.contains("physical")
    };
    let row = |value: u32| {
        format!(
            r#"{{"metric":{{"tidegate_upstream":"{UPSTREAM}"}},"value":[1700000000,"{value}"]}}"#
        )
    };
    let rows = if is_of("tidegate_requests_total") {
        row(7_200)
    } else if is_of("tidegate_outcomes_total") && line.contains("success") {
        row(7_000)
    } else if is_of("tidegate_requests_slow_total") {
        row(350)
    } else {
        String::new()
    };
    format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{rows}]}}}}"#)
}

/// Runs `tidegate score`. Returns exit code, standard output and standard error.
fn score(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("score")
        .args(arguments)
        .env_remove("TIDEGATE_PROMETHEUS")
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn upstreams_are_scored_by_the_objective_of_their_policy() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("p.yaml");
    let text = "apiVersion: tidegate.dev/v1alpha1\nkind: BreakerPolicy\nmetadata: {name: p}\nspec:\n  proxies: [{id: '*'}]\n  slo: {latency: {quantile: 0.95, target: 1s}}\n";
    std::fs::write(&policy, text).unwrap();
    let url = server(prometheus);
    let from = ["--prometheus", url.as_str()];

    let (code, table, said) = score(&from);
    assert_eq!((code, said.as_str()), (0, ""));
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 7, "{table}");
    assert!(
        lines[0].starts_with("UPSTREAM") && lines[1].starts_with(r"web\u{a}\u{1b}[31m"),
        "{table}"
    );
    assert!(
        lines[2].contains("latency") && lines[2].contains("0.56"),
        "{table}"
    );
    assert!(lines[6].contains("memory    -      not known"), "{table}");

    let with_policy = [
        &from[..],
        &["--policies", policy.to_str().unwrap(), "-o", "json"],
    ]
    .concat();
    let (code, text, said) = score(&with_policy);
    assert_eq!((code, said.as_str()), (0, ""));
    let document: Value = serde_json::from_str(&text).unwrap();
    let latency = &document["upstreams"][0]["parts"][0];
    assert_eq!(latency["score"], 1.0, "5 % late are allowed: {text}");
    assert_eq!(
        latency["reason"],
        "5 % of the answers late, 5 % allowed by policy p, top level"
    );
    assert_eq!(document["upstreams"][0]["parts"][4].get("score"), None);
    assert_eq!(document["windowSeconds"], 3_600);
}

#[test]
fn a_prometheus_that_is_down_or_something_else_is_told_apart() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let html = server(|_| "<html>sign in</html>".to_owned());
    let empty =
        server(|_| r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#.to_owned());
    let down = format!("http://{free}");
    for (url, expected) in [
        (down.as_str(), "is Prometheus up, and is this its address?"),
        (
            html.as_str(),
            "found \"<html>sign in</html>\", expected JSON of Prometheus' API",
        ),
        (
            empty.as_str(),
            "no upstream of Tidegate has requests in the window",
        ),
    ] {
        let (code, out, said) = score(&["--prometheus", url]);
        assert_eq!((code, out.as_str()), (2, ""), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    let (code, _, said) = score(&[]);
    assert_eq!(code, 2);
    assert!(
        said.contains("found no Prometheus, expected --prometheus <URL>"),
        "{said}"
    );
}
