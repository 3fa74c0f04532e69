//! The binary, as people call it.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder that is gone at the end of the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Exit code, standard output, standard error.
fn tidegate(arguments: &[&str], stdin: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn policy(name: &str, proxies: &str, target: &str) -> String {
    format!(
        "apiVersion: tidegate.dev/v1alpha1\nkind: BreakerPolicy\nmetadata:\n  name: {name}\nspec:\n  proxies:\n  - {proxies}\n  slo: {{latency: {{quantile: 0.99, target: {target}}}}}\n"
    )
}

#[test]
fn validate_exits_with_0_for_valid_policies_and_1_for_errors() {
    let folder = Folder::new();
    folder.write("a.yaml", &policy("a", "id: a", "1s"));
    folder.write("b.yml", &policy("b", "id: b", "1s"));
    folder.write(".hidden.yaml", "broken: [");
    folder.write("notes.txt", "no policy");
    let path = folder.path().to_str().unwrap();

    let (code, out, err) = tidegate(&["validate", path], "");
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "files: 2, valid policies: 2, no errors\n", "")
    );

    let bad = folder.write("c.yaml", &policy("c", "id: c", "soon"));
    let (code, out, _) = tidegate(&["validate", path], "");
    assert_eq!(code, 1);
    assert!(
        out.starts_with(&format!(
            "{}:8:35: c: spec.slo.latency.target: found \"soon\", expected a duration from 1ms to 10m such as \"250ms\"\n",
            bad.display()
        )),
        "{out}"
    );
    assert!(
        out.ends_with("files: 3, valid policies: 2, 1 error\n"),
        "{out}"
    );
}

#[test]
fn validate_lists_every_error_with_its_position() {
    let wrong = policy("a", "id: a", "1s, until: body").replace(
        "  slo:",
        "  limit: {min: 10, max: 9, maxOpen: 0}\n  upstreams:\n  - match: {service: b}\n    limit: {min: 3, maxOpen: 2}\n  slo:",
    );

    let (code, out, _) = tidegate(&["validate", "-"], &wrong);

    assert_eq!(code, 1);
    for expected in [
        r#"spec.slo.latency.until: found "body", expected "headers", "firstByte" or "end""#,
        "spec.limit.maxOpen: found 0, expected a whole number from 1 to 100000",
        "spec.limit.max: found 9, expected at least limit.min (10)",
        "spec.upstreams[0].limit.maxOpen: found 2, expected at least limit.min (3)",
    ] {
        assert!(out.contains(expected), "{expected}\n{out}");
    }
    assert_eq!(out.matches(": a: spec.").count(), 4, "{out}");
}

#[test]
fn validate_reads_standard_input_and_prints_json() {
    let (code, out, _) = tidegate(
        &["validate", "-", "-o", "json"],
        &policy("a", "uid: a", "1s"),
    );

    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 1);
    assert_eq!(value["problems"][1]["path"], "spec.proxies[0].uid");
    assert_eq!(value["problems"][1]["place"]["line"], 7);
    assert_eq!(value["problems"][1]["source"], "stdin");
}

#[test]
fn unreadable_input_exits_with_2() {
    let folder = Folder::new();
    let missing = folder.path().join("missing.yaml");

    let (code, out, err) = tidegate(&["validate", missing.to_str().unwrap()], "");

    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("missing.yaml: No such file"), "{err}");
}

#[test]
fn render_shows_a_proxy_s_configuration_and_the_overruled_policies() {
    let folder = Folder::new();
    folder.write("a.yaml", &policy("fleet", "cluster: web", "1s"));
    folder.write("b.yaml", &policy("zone", "metadata: {zone: a}", "80ms"));
    let path = folder.path().to_str().unwrap();

    let node = [
        "--node-id",
        "web-1",
        "--cluster",
        "web",
        "--metadata",
        "zone=a",
        "-o",
        "json",
    ];
    let (code, out, _) = tidegate(&[&["render", path], node.as_slice()].concat(), "");
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 0);
    assert_eq!(value["policy"], "zone");
    assert_eq!(value["overruled"], serde_json::json!(["fleet"]));
    assert_eq!(value["config"]["slo"]["latency"]["target"], "80ms");

    let (_, out, _) = tidegate(&["render", path, "--metadata", "{zone: b}"], "");
    assert!(
        out.starts_with("policy    none matches: observe-mode defaults\n"),
        "{out}"
    );

    let (_, out, _) = tidegate(&["render", path], "");
    assert!(out.starts_with("POLICY  VERSION"), "{out}");
    assert!(
        out.contains("\nfleet   ") && out.contains("proxies with cluster web\n"),
        "{out}"
    );

    let (code, out, _) = tidegate(&["render", path, "--policy", "fleet", "-o", "yaml"], "");
    assert_eq!(code, 0);
    assert!(out.contains("\npolicy: fleet\n"), "{out}");

    let (code, _, err) = tidegate(&["render", path, "--policy", "other"], "");
    assert_eq!(code, 2);
    assert!(
        err.contains("no policy other; known policies: fleet, zone"),
        "{err}"
    );
}

#[test]
fn diff_compares_the_meaning_of_documents() {
    let folder = Folder::new();
    let old = folder.write(
        "old.yaml",
        &[
            policy("a", "id: a", "1s"),
            policy("b", "id: b", "1s"),
            policy("c", "id: c", "1s"),
        ]
        .join("---\n"),
    );
    let same = folder.write("same.json", r#"[]"#);
    let new = folder.write(
        "new.yaml",
        &[
            policy("a", "id: a*", "1s"),
            policy("b", "id: b", "2s"),
            policy("d", "id: d", "1s"),
        ]
        .join("---\n"),
    );
    let (old, new) = (old.to_str().unwrap(), new.to_str().unwrap());

    let (code, out, _) = tidegate(&["diff", old, new], "");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(code, 1);
    assert!(
        lines[0].starts_with("~ a for proxies with id a*, version ")
            && lines[0].ends_with(" as before"),
        "{out}"
    );
    assert_eq!(
        lines[1],
        r#"    targets: "proxies with id a" -> "proxies with id a*""#
    );
    assert!(
        lines[2].starts_with("~ b for proxies with id b, version ") && lines[2].contains(" -> "),
        "{out}"
    );
    assert_eq!(lines[3], r#"    slo.latency.target: "1s" -> "2s""#);
    assert!(
        lines[4].starts_with("- c for proxies with id c, version "),
        "{out}"
    );
    assert!(
        lines[5].starts_with("+ d for proxies with id d, version "),
        "{out}"
    );

    let (code, out, _) = tidegate(&["diff", old, old], "");
    assert_eq!((code, out.as_str()), (0, "no differences\n"));
    let (code, _, err) = tidegate(&["diff", old, same.to_str().unwrap()], "");
    assert_eq!(code, 2);
    assert!(err.contains("document: found a list"), "{err}");
}

#[test]
fn only_terminals_get_colors() {
    let (_, out, _) = tidegate(&["validate", "-"], "");

    assert!(!out.contains('\u{1b}'), "{out:?}");
}

#[test]
fn help_lists_every_command_and_completions_know_them() {
    let (code, help, _) = tidegate(&["--help"], "");
    assert_eq!(code, 0);
    for (command, _) in [
        ("validate", 0),
        ("render", 0),
        ("diff", 0),
        ("graph", 0),
        ("completions", 0),
    ] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
        let (code, help, _) = tidegate(&[command, "--help"], "");
        assert_eq!(code, 0);
        assert!(help.contains("Example"), "{help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = tidegate(&["completions", shell], "");
        assert_eq!(code, 0);
        assert!(script.contains("validate"), "{shell}");
    }
}

/// Answers one request with `body`; returns where.
fn answer_once(
    status: &'static str,
    body: &'static str,
) -> (String, std::thread::JoinHandle<String>) {
    use std::io::Read as _;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            request.push(byte[0]);
        }
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        String::from_utf8(request).unwrap()
    });
    (url, answering)
}

const PROXIES: &str = r#"{"proxies": [
 {"id": "edge-1", "cluster": "edge", "policy": "edge", "overruled": [], "resources": {"tidegate": {"wanted": "0123456789abcdef", "running": "0123456789abcdef"}}},
 {"id": "edge-2", "cluster": "edge", "policy": null, "resources": {"tidegate": {"wanted": "0123456789abcdef", "running": null}}},
 {"id": "edge-3", "cluster": "", "policy": "edge", "resources": {"tidegate": {"wanted": "0123456789abcdef", "running": "ffff",
   "lastRejected": {"version": "0123456789abcdef", "code": 13, "message": "limit.max:\u001b[2J found 0", "at": "now"}}}}]}"#;

#[test]
fn status_lists_versions_and_exits_with_1_if_a_proxy_is_not_current() {
    let (url, answering) = answer_once("200 OK", PROXIES);

    let (code, out, err) = tidegate(&["status", "--server", &url], "");

    let request = answering.join().unwrap();
    assert!(
        request.starts_with("GET /v1/proxies HTTP/1.1\r\n"),
        "{request}"
    );
    assert_eq!((code, err.as_str()), (1, ""));
    assert_eq!(
        out,
        "\
PROXY   CLUSTER  POLICY  RESOURCE  WANTED        RUNNING       STATE
edge-1  edge     edge    tidegate  0123456789ab  0123456789ab  current
edge-2  edge     -       tidegate  0123456789ab  -             behind
edge-3  -        edge    tidegate  0123456789ab  ffff          rejected: limit.max: [2J found 0
proxies: 3, current: 1, behind: 1, rejected: 1
"
    );
}

#[test]
fn status_exits_with_0_if_all_proxies_are_current() {
    let (url, answering) = answer_once("200 OK", r#"{"proxies": []}"#);

    let (code, out, _) = tidegate(&["status", "--server", &url, "-o", "json"], "");

    answering.join().unwrap();
    assert_eq!((code, out.as_str()), (0, "{\n  \"proxies\": []\n}\n"));
}

#[test]
fn status_reports_why_the_service_is_unreachable() {
    for (status, body, reason) in [
        ("403 Forbidden", "who\nare you", "403 Forbidden whoare you"),
        (
            "200 OK",
            "<html>",
            "the answer cannot be read: expected value",
        ),
        (
            "200 OK",
            r#"{"proxies": 7}"#,
            "the answer cannot be read: invalid type",
        ),
    ] {
        let (url, answering) = answer_once(status, body);
        let (code, out, err) = tidegate(&["status", "--server", &url], "");
        answering.join().unwrap();
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(err.contains(reason), "{err}");
    }
    for (server, reason) in [
        ("ftp://127.0.0.1:1", "expected a URL such as"),
        ("https://127.0.0.1:1", "https needs --ca"),
        ("http://127.0.0.1:1", "refused"),
    ] {
        let (code, _, err) = tidegate(&["status", "--server", server], "");
        assert_eq!(code, 2);
        assert!(err.contains(reason), "{err}");
    }
}

#[test]
fn status_gives_up_on_a_service_that_never_answers() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());

    let (code, _, err) = tidegate(&["status", "--server", &url, "--timeout", "50ms"], "");

    assert_eq!(code, 2);
    assert!(err.contains("no answer within 50ms"), "{err}");
}

#[test]
fn graph_reads_a_recording_and_prints_every_form() {
    let recording = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../graph/tests/recordings/istio-sidecar.json"
    );
    let graph = |arguments: &[&str]| {
        let (code, out, err) = tidegate(&[&["graph", "--from", recording], arguments].concat(), "");
        assert_eq!(code, 0, "{err}");
        (out, err)
    };

    let (table, warnings) = graph(&[]);
    assert!(table.starts_with("CALLER  "), "{table}");
    assert!(
        table
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("istio-system/istio-ingressgateway  bookinfo/productpage-v1"),
        "{table}"
    );
    assert!(
        warnings.contains("warning: 1 edges have ended"),
        "{warnings}"
    );
    assert_eq!(table.matches("few samples").count(), 1, "{table}");
    assert_eq!(
        graph(&["--min-samples", "10"])
            .0
            .matches("few samples")
            .count(),
        0
    );
    let value: serde_json::Value = serde_json::from_str(&graph(&["-o", "json"]).0).unwrap();
    assert_eq!(value["edges"].as_array().unwrap().len(), 7);
    assert!(graph(&["-o", "dot"]).0.starts_with("digraph "));
    assert!(graph(&["-o", "mermaid"]).0.starts_with("graph LR\n"));
}

#[test]
fn graph_needs_a_source_and_names_what_is_wrong_with_it() {
    let folder = Folder::new();
    let damaged = folder.write(
        "damaged.json",
        "{\"format\": \"tidegate-graph-recording/1\"",
    );
    let damaged = damaged.to_str().unwrap();
    let down = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", down.local_addr().unwrap());
    drop(down);
    for (arguments, expected) in [
        (vec!["graph"], "--prometheus <URL>"),
        (
            vec!["graph", "--from", damaged],
            "damaged.json: .: EOF while parsing",
        ),
        (
            vec!["graph", "--from", damaged, "--window", "2h"],
            "cannot be used with",
        ),
        (vec!["graph", "--prometheus", &url], "is Prometheus up"),
        (
            vec!["graph", "--prometheus", &url, "--basic-user", "a"],
            "--basic-password-file",
        ),
        (
            vec!["graph", "--prometheus", &url, "--caller-label", "a b"],
            "found \"a b\", expected the name of a label",
        ),
        (
            vec![
                "graph",
                "--prometheus",
                &url,
                "--window",
                "1m",
                "--step",
                "5m",
            ],
            "expected a step of at least 1s",
        ),
        (
            vec!["graph", "--prometheus", &url, "--token-file", "/missing"],
            "/missing: No such file",
        ),
    ] {
        let (code, out, err) = tidegate(&arguments, "");
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}

#[test]
fn graph_prints_the_committed_schema() {
    let (code, out, _) = tidegate(&["graph", "--schema"], "");

    assert_eq!(code, 0);
    assert_eq!(out, include_str!("../../graph/schema.json"));
}
