//! The `tidegate` program, as users run it.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder that is deleted at the end of the test.
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

/// Runs the program. Returns exit code, standard output and standard error.
fn tidegate(arguments: &[&str], stdin: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads no input may have ended already.
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
fn render_prints_envoy_s_filter_for_either_module() {
    let folder = Folder::new();
    folder.write("a.yaml", &policy("fleet", "cluster: web", "80ms"));
    let path = folder.path().to_str().unwrap();
    let filter = |arguments: &[&str]| {
        let all = [
            &["render", path, "--cluster", "web", "-o", "json"],
            arguments,
        ]
        .concat();
        let (code, out, err) = tidegate(&all, "");
        assert_eq!((code, err.as_str()), (0, ""));
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        value["typed_config"].clone()
    };

    let native = filter(&["--target", "native"]);
    let module = &native["dynamic_module_config"];
    assert_eq!(
        module["module"]["local"]["filename"],
        "/etc/envoy/libtidegate.so"
    );
    let text = native["filter_config"]["value"].as_str().unwrap();
    assert!(text.contains(r#""target":"80ms""#), "{text}");

    let wasm = filter(&["--target", "wasm", "--module", "/m.wasm"]);
    let code = &wasm["config"]["vm_config"]["code"];
    assert_eq!(code["local"]["filename"], "/m.wasm");
    assert_eq!(wasm["config"]["configuration"]["value"], *text);

    let named = filter(&["--target", "native", "--module", "tidegate"]);
    assert_eq!(named["dynamic_module_config"]["name"], "tidegate");

    let yaml = ["render", path, "--policy", "fleet", "--target", "native"];
    let (_, out, _) = tidegate(&yaml, "");
    assert!(out.starts_with("name: tidegate\ntyped_config:\n"), "{out}");

    let (code, _, err) = tidegate(&["render", path, "--target", "native"], "");
    assert_eq!(code, 2);
    assert!(
        err.contains("--target: expected one configuration"),
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
fn each_heading_of_the_help_is_for_its_own_options() {
    for command in ["recommend", "migrate"] {
        let (_, help, _) = tidegate(&[command, "-h"], "");
        let (_, after) = help.split_once("Objects of Istio:\n").unwrap();
        let listed: Vec<&str> = after
            .lines()
            .take_while(|line| !line.is_empty())
            .map(str::trim_start)
            .filter(|line| line.starts_with('-'))
            .collect();
        assert_eq!(listed.len(), 4, "{help}");
        assert!(
            listed.iter().all(|line| line.starts_with("--extension-")),
            "{help}"
        );
    }
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
        ("recommend", 0),
        ("analyze", 0),
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

/// Answers one request with `body`. Returns the address.
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
    const POLICIES: &str =
        r#"{"policies": [{"name": "edge", "enabled": true, "mode": "enforce"}], "problems": []}"#;
    let (url, answering) = answer_in_turn(&[PROXIES, POLICIES]);

    let (code, out, err) = tidegate(&["status", "--server", &url], "");

    let requests = answering.join().unwrap();
    assert!(
        requests[0].starts_with("GET /v1/proxies HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert!(
        requests[1].starts_with("GET /v1/policies HTTP/1.1\r\n"),
        "{requests:?}"
    );
    assert_eq!((code, err.as_str()), (1, ""));
    assert_eq!(
        out,
        "\
PROXY   CLUSTER  POLICY  MODE     RESOURCE  WANTED        RUNNING       STATE
edge-1  edge     edge    enforce  tidegate  0123456789ab  0123456789ab  current
edge-2  edge     -       -        tidegate  0123456789ab  -             behind
edge-3  -        edge    enforce  tidegate  0123456789ab  ffff          rejected: limit.max: [2J found 0
proxies: 3, current: 1, behind: 1, rejected: 1
"
    );
}

#[test]
fn status_shows_that_a_policy_is_disabled() {
    const CURRENT: &str = r#"{"proxies": [{"id": "edge-1", "policy": "edge", "resources": {"tidegate": {"wanted": "01", "running": "01"}}}]}"#;
    const POLICIES: &str =
        r#"{"policies": [{"name": "edge", "enabled": false, "mode": "enforce"}]}"#;
    let (url, answering) = answer_in_turn(&[CURRENT, POLICIES]);

    let (code, out, err) = tidegate(&["status", "--server", &url], "");

    answering.join().unwrap();
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("edge    disabled  tidegate"), "{out}");
}

#[test]
fn status_hints_at_prometheus_if_no_proxy_has_a_stream() {
    const POLICIES: &str = r#"{"policies": [{"name": "shop/checkout"}]}"#;
    for (policies, hint) in [
        (
            POLICIES,
            "note: policies: 1, but no proxy has a stream here",
        ),
        (r#"{"policies": []}"#, ""),
    ] {
        let (url, answering) = answer_in_turn(&[r#"{"proxies": []}"#, policies]);
        let (code, _, err) = tidegate(&["status", "--server", &url], "");
        answering.join().unwrap();
        assert_eq!(code, 0, "{err}");
        assert!(err.starts_with(hint), "{err}");
        assert_eq!(err.contains("--prometheus"), !hint.is_empty(), "{err}");
    }
}

#[test]
fn status_says_that_policies_have_errors() {
    let (url, answering) = answer_in_turn(&[r#"{"problems": 2, "proxies": []}"#, "{}"]);

    let (code, out, _) = tidegate(&["status", "--server", &url], "");

    answering.join().unwrap();
    assert_eq!(code, 0, "{out}");
    assert!(
        out.starts_with("errors in policies: 2; their last valid version is in force"),
        "{out}"
    );
}

#[test]
fn status_exits_with_0_if_all_proxies_are_current() {
    let (url, answering) = answer_in_turn(&[r#"{"proxies": []}"#, "{}"]);

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
    assert!(warnings.contains("warning: edges that ended"), "{warnings}");
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
    for (command, schema) in [
        (
            "recommend",
            include_str!("../../advise/schemas/recommend.json"),
        ),
        ("analyze", include_str!("../../advise/schemas/analyze.json")),
    ] {
        assert_eq!(tidegate(&[command, "--schema"], "").1, schema, "{command}");
    }
}

#[test]
fn graph_places_workloads_and_says_why_if_not() {
    let folder = Folder::new();
    let nodes = folder.write(
        "nodes.yaml",
        "nodes: [{name: node-a, cpu: 6, memory: 16Gi}, {name: node-b, cpu: 6, memory: 16Gi}]",
    );
    let objects = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/objects.yaml");
    let graph = |arguments: &[&str]| {
        let all = ["graph", "--from", SHOP, "--objects", objects];
        tidegate(&[&all, arguments].concat(), "")
    };
    let nodes = nodes.to_str().unwrap();

    let (_, table, _) = graph(&[]);
    assert!(table.contains("SERVICE "), "{table}");
    let (code, report, err) = graph(&["--placement", "--nodes", nodes]);
    assert_eq!(code, 0, "{err}");
    assert!(report.starts_with("Across nodes: "), "{report}");
    let (_, patches, _) = graph(&["--placement", "--nodes", nodes, "-o", "yaml"]);
    assert!(patches.contains("kind: Deployment"), "{patches}");
    let (_, json, _) = graph(&["--placement", "--nodes", nodes, "-o", "json"]);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["is_better"], true);
    for (arguments, expected) in [
        (&["--placement"][..], "the workloads request 8.10 cores"),
        (
            &["--placement", "-o", "dot"],
            "expected table, json or yaml",
        ),
        (&["-o", "yaml"], "expected --placement with it"),
        (&["--weigh", "latency"], "--placement"),
    ] {
        let (code, out, err) = graph(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}

#[test]
fn policies_are_printed_as_objects_of_istio_for_meshes_without_the_service() {
    let rule = "{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: a, namespace: shop}, \
        spec: {host: a, trafficPolicy: {connectionPool: {tcp: {maxConnections: 100}}}}}";
    let migrate = ["migrate", "-", "--replicas", "5", "--latency", "250ms"];
    let recommend = ["recommend", "--from", SHOP, "-o", "yaml"];
    let file = "file:///etc/tidegate.wasm";
    for (command, api, pointer) in [
        (&migrate[..], "wasm-plugin", "/spec/pluginConfig"),
        (&migrate, "traffic-extension", "/spec/wasm/pluginConfig"),
        (&recommend, "traffic-extension", "/spec/wasm/pluginConfig"),
    ] {
        let flags = ["--extension-api", api, "--extension-url", file];
        let (code, out, err) = tidegate(&[command, &flags].concat(), rule);

        assert_eq!(code, 0, "{err}");
        let (documents, malformed) = tidegate_control::document::documents(out.as_bytes());
        assert_eq!(malformed, None, "{out}");
        assert!(!documents.is_empty(), "{out}");
        for document in documents {
            let object = tidegate_control::document::value_of(document.root());
            let config = object.pointer(pointer).unwrap();
            assert_eq!(config["mode"], "observe", "{out}");
            let metadata = object["metadata"].as_object().unwrap();
            assert_eq!(metadata.len(), 2, "only a name and a namespace: {out}");
        }
        assert!(out.starts_with("# "), "the comments stay: {out}");
    }
    let no_url = tidegate(&["migrate", "-", "--extension-api", "wasm-plugin"], rule);
    assert_eq!(no_url.0, 2);
    let pinned = [
        "--extension-api",
        "wasm-plugin",
        "--extension-url",
        "oci://r/t:1",
    ];
    let (code, out, err) = tidegate(&[&migrate, &pinned[..]].concat(), rule);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("extension-sha256"), "{err}");
}

#[test]
fn the_help_of_migrate_says_what_happens_to_outlier_detection() {
    let (code, out, _) = tidegate(&["migrate", "--help"], "");
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");

    assert_eq!(code, 0);
    assert!(
        words.contains("baseEjectionTime becomes breaker.maxOpen"),
        "{out}"
    );
    assert!(words.contains("No outlierDetection is written"), "{out}");
}

#[test]
fn migrate_rejects_a_latency_that_a_policy_rejects() {
    for latency in ["5x", "0s", "11m"] {
        let (code, out, err) = tidegate(&["migrate", "-", "--latency", latency], "");

        assert_eq!((code, out.as_str()), (2, ""), "{latency}");
        assert!(
            err.contains("'--latency <DURATION>': expected a duration from 1ms to 10m"),
            "{err}"
        );
    }
}

#[test]
fn migrate_warns_of_what_is_not_known() {
    let rule = "{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: a, namespace: shop}, \
        spec: {host: a, trafficPolicy: {connectionPool: {tcp: {maxConnections: 100}}}}}";

    let (code, out, err) = tidegate(&["migrate", "-"], rule);

    assert_eq!(code, 1, "a policy without an objective is not valid yet");
    assert!(out.contains("No objective is known"), "{out}");
    assert!(err.contains("warning: shop/a: no objective"), "{err}");
    assert!(err.contains("endpoints of a.shop"), "{err}");
    let numbers = ["migrate", "-", "--replicas", "5", "--latency", "250ms"];
    let (code, out, err) = tidegate(&numbers, rule);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("max: 20\n"), "{out}");
}

const SHOP: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../advise/tests/recordings/shop.json"
);
const SETTINGS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../advise/tests/recordings/istio.yaml"
);

#[test]
fn recommend_prints_every_form_and_its_policies_are_valid() {
    let recommend = |arguments: &[&str]| {
        let all = [&["recommend", "--from", SHOP], arguments].concat();
        let (code, out, err) = tidegate(&all, "");
        assert_eq!(code, 0, "{err}");
        (out, err)
    };

    let (table, _) = recommend(&[]);
    assert!(table.starts_with("UPSTREAM "), "{table}");
    assert!(table.contains("36 requests are too few"), "{table}");
    let value: serde_json::Value = serde_json::from_str(&recommend(&["-o", "json"]).0).unwrap();
    assert_eq!(value["upstreams"][0]["slo"]["latency"]["target"], "210ms");
    let strict = recommend(&["-o", "json", "--margin", "1"]).0;
    let value: serde_json::Value = serde_json::from_str(&strict).unwrap();
    assert_eq!(value["upstreams"][0]["slo"]["latency"]["target"], "140ms");
    let (policies, notes) = recommend(&["-o", "yaml", "--entry", "batch/nightly-v1"]);
    assert!(notes.contains("shop/gift: no objective"), "{notes}");
    let (code, out, _) = tidegate(&["validate", "-"], &policies);
    assert_eq!(
        (code, out.as_str()),
        (0, "files: 1, valid policies: 3, no errors\n")
    );
    let config: serde_json::Value = serde_json::from_str(&recommend(&["-o", "config"]).0).unwrap();
    assert_eq!(config["mode"], "observe");
}

#[test]
fn recommend_compares_with_policies_in_force() {
    let folder = Folder::new();
    let of =
        |arguments: &[&str]| tidegate(&[&["recommend", "--from", SHOP], arguments].concat(), "");

    let (code, out, _) = of(&["--policies", SETTINGS]);
    assert_eq!(code, 1);
    assert!(
        out.contains("now in shop/shop, upstreams[0]: 0.99 within 5ms, success 0.999, but half of the requests take longer than 6.0 ms, for every caller"),
        "{out}"
    );

    let (_, made, _) = of(&["-o", "yaml", "--waypoint", "waypoint"]);
    let same = folder.write("same.yaml", &made);
    let (code, out, _) = of(&["--policies", same.to_str().unwrap()]);
    assert!(out.contains("as in shop/recommended, upstreams["), "{out}");
    // There is no recommendation for `gift`, so nothing differs there.
    assert_eq!(code, 0, "{out}");

    let broken = folder.write("broken.yaml", &policy("a", "id: a", "soon"));
    let (code, _, err) = of(&["--policies", broken.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(err.contains("the policies in force have errors"), "{err}");
}

#[test]
fn recommend_splits_an_objective() {
    let of = |arguments: &[&str]| {
        tidegate(
            &[
                &["recommend", "--from", SHOP, "--split", "shop/web"],
                arguments,
            ]
            .concat(),
            "",
        )
    };

    let (code, out, _) = of(&["--within", "800ms"]);
    assert_eq!((code, out.lines().count()), (0, 6), "{out}");
    let (code, out, _) = of(&[
        "--within",
        "800ms",
        "--parallel",
        "shop/web=shop/cart,shop/prices",
        "-o",
        "json",
    ]);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 0);
    assert!(value["usedSeconds"].as_f64().unwrap() <= 0.8001, "{value}");
    let (code, _, err) = of(&["--within", "60ms"]);
    assert_eq!(code, 1);
    assert!(err.contains("no split can keep it"), "{err}");
    let folder = Folder::new();
    let traces = folder.write("traces.json", r#"{"data": []}"#);
    let (code, _, err) = of(&["--within", "800ms", "--traces", traces.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    for (arguments, expected) in [
        (
            vec!["--within", "1s", "--traces", SETTINGS],
            "expected traces as JSON",
        ),
        (vec!["--within", "soon"], "expected a duration"),
        (vec![], "--within"),
        (
            vec!["--within", "1s", "--parallel", "a"],
            "expected CALLER=SERVICE",
        ),
        (
            vec!["--within", "1s", "--parallel", "shop/web=none"],
            "found \"none\"",
        ),
        (
            vec!["--within", "1s", "-o", "yaml"],
            "expected table or json",
        ),
        (
            vec!["--within", "1s", "--quantile", "99"],
            "expected a number from 0.5",
        ),
    ] {
        let (code, out, err) = of(&arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}

#[test]
fn recommend_names_what_is_wrong_with_its_arguments() {
    for (arguments, expected) in [
        (vec!["recommend"], "--prometheus <URL>"),
        (
            vec!["recommend", "--from", SHOP, "--margin", "0.5"],
            "expected a number from 1 to 3",
        ),
        (
            vec!["recommend", "--from", SHOP, "--entry", "shop/wep"],
            "--entry: found shop/wep",
        ),
    ] {
        let (code, out, err) = tidegate(&arguments, "");
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}

#[test]
fn analyze_exits_with_1_for_errors_0_for_warnings_and_2_if_it_cannot_run() {
    let folder = Folder::new();

    let (code, out, _) = tidegate(&["analyze", "--from", SHOP, SETTINGS], "");
    assert_eq!(code, 1);
    for expected in ["[TG0101]", "[TG0102]", "[TG0104]", "[TG0201]", "[TG0202]"] {
        assert!(out.contains(expected), "{expected}: {out}");
    }

    let slow = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: cart, namespace: shop}\nspec:\n  http:\n  - timeout: 1s\n    retries: {attempts: 2, perTryTimeout: 1s}\n    route: [{destination: {host: cart}}]\n";
    let (code, out, _) = tidegate(&["analyze", "--from", SHOP, "-", "-o", "json"], slow);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 0, "only a warning: {value}");
    assert_eq!(value["findings"][0]["code"], "TG0101");
    assert_eq!(value["findings"][0]["severity"], "warning");
    assert_eq!(value["findings"][0]["place"], "stdin:1:1");

    let (code, out, _) = tidegate(&["analyze", "--from", SHOP], "");
    assert_eq!((code, out.as_str()), (0, "no findings\n"));

    let broken = folder.write("broken.yaml", &slow.replace("1s", "soon"));
    let (code, _, err) = tidegate(&["analyze", "--from", SHOP, broken.to_str().unwrap()], "");
    assert_eq!(code, 2);
    assert!(
        err.contains("broken.yaml:6:5: shop/cart: spec.http[0].timeout"),
        "{err}"
    );
}

#[test]
fn the_version_states_the_commit_and_the_module_of_the_release() {
    let (code, out, _) = tidegate(&["--version"], "");

    let expected = format!("tidegate {}\n", tidegate_control::about::FULL_VERSION);
    assert_eq!((code, out.as_str()), (0, expected.as_str()));
    assert!(
        out.contains("(commit ") && out.contains(", module 0."),
        "{out}"
    );
}

#[test]
fn man_writes_a_page_for_each_command_that_help_lists() {
    let folder = Folder::new();
    let pages = folder.path().join("man1");

    let (code, _, err) = tidegate(&["man", pages.to_str().unwrap()], "");

    assert_eq!(code, 0, "{err}");
    let (_, help, _) = tidegate(&["--help"], "");
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        // A long description continues in lines with a deeper indentation.
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(
        commands.contains(&"serve") && !commands.contains(&"man"),
        "{commands:?}"
    );
    for command in commands {
        let page = std::fs::read_to_string(pages.join(format!("tidegate-{command}.1"))).unwrap();
        assert!(
            page.contains(&format!(".TH tidegate-{command} 1")),
            "{page}"
        );
    }
    assert!(pages.join("tidegate.1").exists());

    let (code, _, err) = tidegate(&["man", "/dev/null/man1"], "");
    assert_eq!(code, 2);
    assert!(err.contains("write into /dev/null/man1"), "{err}");
}
/// A configuration with everything that `classify` shows.
const CLASSES: &str = r#"{"slo":{"latency":{"quantile":0.99,"target":"300ms"}},
    "criticality":{"header":"x-criticality","default":"critical","cohortHeader":"x-user","cohortKey":"tide",
        "rules":[{"path":"/pay/*","method":"POST","criticality":"critical_plus"},
                 {"clientIdentity":"spiffe://*/sa/batch","criticality":"sheddable"}]},
    "deadline":{"headers":["grpc-timeout"]},
    "ignore":{"paths":["/healthz"],"userAgents":["kube-probe/"]},
    "upstreams":[{"match":{"service":"payments.*"},"mode":"observe","slo":{"latency":{"target":"80ms"}}}]}"#;

fn classified(folder: &Folder, more: &[&str]) -> serde_json::Value {
    let config = folder.write("config.json", CLASSES);
    let mut arguments = vec![
        "classify",
        "-o",
        "json",
        "--config",
        config.to_str().unwrap(),
    ];
    arguments.extend(more);
    let (code, out, err) = tidegate(&arguments, "");
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn classify_shows_what_the_filter_makes_of_a_request() {
    let folder = Folder::new();
    let class = |more: &[&str]| {
        let class = classified(&folder, more)["class"].clone();
        format!("{} by {}", class["name"], class["by"]).replace('"', "")
    };
    assert_eq!(class(&[]), "critical by default");
    assert_eq!(
        class(&["--method", "POST", "--path", "/pay/1?x=y"]),
        "critical_plus by criticality.rules[0]"
    );
    assert_eq!(class(&["--path", "/pay/1"]), "critical by default");
    assert_eq!(
        class(&["--client-identity", "spiffe://a/ns/b/sa/batch"]),
        "sheddable by criticality.rules[1]"
    );
    assert_eq!(
        class(&[
            "--path",
            "/pay/1",
            "--header",
            "X-Criticality: sheddable_plus"
        ]),
        "sheddable_plus by header x-criticality"
    );
    assert_eq!(
        class(&["--header", "x-criticality: vital"]),
        "critical by default"
    );

    let payments = classified(
        &folder,
        &[
            "--upstream",
            "outbound|80||payments.shop.svc.cluster.local",
            "--header",
            "grpc-timeout: 80m",
            "--header",
            "x-envoy-attempt-count: 2",
        ],
    );
    assert_eq!(
        payments["upstream"]["service"],
        "payments.shop.svc.cluster.local"
    );
    assert_eq!(payments["policy"]["rule"], "upstreams[0]");
    assert_eq!(payments["policy"]["mode"], "observe");
    assert_eq!(payments["policy"]["targetMillis"], 80);
    assert_eq!(payments["waitMillis"], 80);
    assert_eq!(payments["retry"], true);
    assert_eq!(payments["exempt"], serde_json::Value::Null);

    let place = |user: &str| {
        let header = format!("x-user: {user}");
        let cohort = classified(&folder, &["--header", &header])["cohort"].clone();
        cohort["place"].as_f64().unwrap()
    };
    assert!((0.0..=1.0).contains(&place("alice")));
    assert!((place("alice") - place("bob")).abs() > 0.0);
    let exempt = |more: &[&str]| classified(&folder, more)["exempt"].clone();
    assert!(
        exempt(&["--path", "/healthz"])
            .as_str()
            .unwrap()
            .starts_with("ignore.paths")
    );
    let agent = exempt(&["--header", "user-agent: kube-probe/1.33"]);
    assert!(agent.as_str().unwrap().starts_with("ignore.userAgents"));
}

#[test]
fn classify_reads_policies_and_reports_their_errors() {
    let folder = Folder::new();
    let good = folder.write("good.yaml", &policy("good", "id: a", "250ms"));
    let (code, out, _) = tidegate(&["classify", "--policy", good.to_str().unwrap()], "");
    assert_eq!(code, 0);
    assert!(out.contains("good, top level"), "{out}");
    assert!(out.contains("0.99 within 250 ms"), "{out}");
    assert!(out.contains("critical by default"), "{out}");
    let bad = folder.write("bad.yaml", &policy("bad", "id: a", "soon"));
    let (code, _, err) = tidegate(&["classify", "--policy", bad.to_str().unwrap()], "");
    assert_eq!(code, 1);
    assert!(err.contains("spec.slo.latency.target"), "{err}");
}

#[test]
fn classify_chooses_one_of_several_policies_by_name_or_by_proxy() {
    let folder = Folder::new();
    folder.write("a.yaml", &policy("fleet", "cluster: web", "1s"));
    folder.write("b.yaml", &policy("zone", "metadata: {zone: a}", "80ms"));
    let path = folder.path().to_str().unwrap();
    let classify = |more: &[&str]| tidegate(&[&["classify", "--policy", path], more].concat(), "");
    let chosen = |more: &[&str]| {
        let (code, out, err) = classify(more);
        assert_eq!(code, 0, "{err}");
        let line = out.lines().find(|line| line.starts_with("policy"));
        line.unwrap().to_owned()
    };

    let zone = "policy    zone, top level: enforce, 0.99 within 80 ms";
    assert_eq!(chosen(&["--policy-name", "zone"]), zone);
    assert_eq!(chosen(&["--cluster", "web", "--metadata", "zone=a"]), zone);
    assert!(chosen(&["--cluster", "web"]).starts_with("policy    fleet, top level"));

    for (more, expected) in [
        (
            &[][..],
            "found several policies, expected --policy-name with one of: fleet, zone",
        ),
        (
            &["--policy-name", "other"],
            "no policy other; known policies: fleet, zone",
        ),
        (
            &["--cluster", "edge"],
            "no policy matches this proxy; known policies: fleet, zone",
        ),
    ] {
        let (code, out, err) = classify(more);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(expected), "{err}");
    }
    let both = ["--policy-name", "zone", "--cluster", "web"];
    assert_eq!(classify(&both).0, 2);
}

#[test]
fn classify_asks_for_one_of_its_two_sources() {
    let folder = Folder::new();
    let config = folder.write("config.json", CLASSES);
    let policy = folder.write("policy.yaml", &policy("a", "id: a", "250ms"));
    let (code, _, err) = tidegate(&["classify", "--path", "/"], "");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--config"), "{err}");
    assert!(err.contains("--policy"), "{err}");
    let both = [
        "classify",
        "--config",
        config.to_str().unwrap(),
        "--policy",
        policy.to_str().unwrap(),
    ];
    let (code, _, err) = tidegate(&both, "");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("cannot be used with"), "{err}");
}

/// Answers one connection after another. Each gets the next body.
fn answer_in_turn(bodies: &[&'static str]) -> (String, std::thread::JoinHandle<Vec<String>>) {
    use std::io::Read as _;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let bodies = bodies.to_vec();
    let answering = std::thread::spawn(move || {
        let mut heads = Vec::new();
        for body in bodies {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
                head.push(byte[0]);
            }
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).unwrap();
            heads.push(String::from_utf8(head).unwrap());
        }
        heads
    });
    (url, answering)
}

#[test]
fn status_shows_what_proxies_run_by_their_metrics() {
    const POLICIES: &str =
        r#"{"policies":[{"name":"shop/checkout","config":"0deaab62d0d33002"}],"problems":[]}"#;
    const INFO: &str = r#"{"status":"success","data":{"resultType":"vector","result":[
        {"metric":{"namespace":"shop","pod":"web-2","tidegate_version":"0.1.0","tidegate_config":"0deaab62d0d33002","tidegate_mode":"enforce"},"value":[1,"1"]},
        {"metric":{"instance":"10.0.0.7:9901","tidegate_version":"0.2.0","tidegate_config":"ffffffffffffffff","tidegate_mode":"observe"},"value":[1,"1"]}]}}"#;
    let (service, served) = answer_in_turn(&[r#"{"proxies":[]}"#, POLICIES]);
    let (prometheus, asked) = answer_in_turn(&[INFO]);

    let folder = Folder::new();
    let token = folder.write("token", "secret\n");
    let arguments = [
        "status",
        "--server",
        &service,
        "--prometheus",
        &prometheus,
        "--prometheus-token-file",
        token.to_str().unwrap(),
    ];
    let (code, out, err) = tidegate(&arguments, "");

    assert_eq!((code, err.as_str()), (1, ""), "one runs no policy in force");
    assert_eq!(served.join().unwrap().len(), 2);
    let asked = asked.join().unwrap();
    assert!(asked[0].contains("query=tidegate_info"), "{asked:?}");
    let head = asked[0].to_ascii_lowercase();
    assert!(head.contains("authorization: bearer secret"), "{asked:?}");
    let lines: Vec<&str> = out.lines().rev().take(2).collect();
    assert!(
        lines[1].starts_with("10.0.0.7:9901") && lines[1].contains("of no policy in force"),
        "{out}"
    );
    assert!(
        lines[0].starts_with("shop/web-2") && lines[0].contains("shop/checkout"),
        "{out}"
    );
}

#[test]
fn status_accepts_proxies_that_run_a_policy_or_the_default() {
    let default = tidegate_control::render::PluginConfig::unmatched().digest();
    let one = |config: &str| {
        format!(
            r#"{{"metric":{{"instance":"{config}","tidegate_config":"{config}"}},"value":[1,"1"]}}"#
        )
    };
    let info = format!(
        r#"{{"status":"success","data":{{"resultType":"vector","result":[{},{}]}}}}"#,
        one("0deaab62d0d33002"),
        one(&default)
    );
    let policies = r#"{"policies":[{"name":"shop/checkout","config":"0deaab62d0d33002"}]}"#;
    let (service, served) = answer_in_turn(&[r#"{"proxies":[]}"#, policies]);
    let (prometheus, asked) = answer_in_turn(&[info.leak()]);

    let arguments = ["status", "--server", &service, "--prometheus", &prometheus];
    let (code, out, err) = tidegate(&arguments, "");

    served.join().unwrap();
    asked.join().unwrap();
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("none matches: the default"), "{out}");
}
