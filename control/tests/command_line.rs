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
fn validate_ends_with_0_for_sound_policies_and_1_for_errors() {
    let folder = Folder::new();
    folder.write("a.yaml", &policy("a", "id: a", "1s"));
    folder.write("b.yml", &policy("b", "id: b", "1s"));
    folder.write(".hidden.yaml", "broken: [");
    folder.write("notes.txt", "no policy");
    let path = folder.path().to_str().unwrap();

    let (code, out, err) = tidegate(&["validate", path], "");
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (0, "files: 2, sound policies: 2, no errors\n", "")
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
        out.ends_with("files: 3, sound policies: 2, 1 error\n"),
        "{out}"
    );
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
fn what_cannot_be_read_ends_with_2() {
    let folder = Folder::new();
    let missing = folder.path().join("missing.yaml");

    let (code, out, err) = tidegate(&["validate", missing.to_str().unwrap()], "");

    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("missing.yaml: No such file"), "{err}");
}

#[test]
fn render_shows_what_a_proxy_would_get_and_who_was_overruled() {
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
    assert!(err.contains("no policy other, only fleet, zone"), "{err}");
}

#[test]
fn diff_compares_what_documents_say() {
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
fn nothing_is_coloured_unless_a_terminal_reads_it() {
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
