//! `tidegate serve --settings FILE`: which source wins, what is rejected, and at which position.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics fails"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A folder with a settings file in it.
struct Stage(TempDir);

impl Stage {
    fn new(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("settings.yaml"), settings).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("settings.yaml")
    }

    /// Runs `tidegate serve` with the file. Returns exit code, standard output and standard error.
    fn serve(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .arg("serve")
            .arg("--settings")
            .arg(self.file())
            .args(arguments)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }

    /// The settings in force.
    fn in_force(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let arguments = [arguments, &["--print-settings"]].concat();
        let (code, out, err) = self.serve(&arguments, variables);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        out
    }
}

/// The line of a setting.
fn line<'a>(settings: &'a str, key: &str) -> &'a str {
    let head = format!("{key}:");
    let found = settings.lines().find(|line| line.starts_with(&head));
    found.unwrap_or_else(|| panic!("no {key} in\n{settings}"))
}

#[test]
fn the_command_line_overrides_the_environment_and_that_the_file() {
    let stage = Stage::new(
        "policies: policies\ngrace: 1s\nrescan: 1s\nmaxProxies: 7\nallowPlaintext: true\nname: [a, b]\nonCrash: open\n",
    );

    let found = stage.in_force(
        &["--grace", "3s"],
        &[("TIDEGATE_GRACE", "2s"), ("TIDEGATE_RESCAN", "2s")],
    );

    for (key, expected) in [
        ("grace", "grace: \"3s\" # from the command line"),
        ("rescan", "rescan: \"2s\" # from the environment"),
        ("maxProxies", "maxProxies: 7"),
        ("allowPlaintext", "allowPlaintext: true"),
        ("name", "name: [\"a\", \"b\"]"),
        ("onCrash", "onCrash: \"open\""),
        ("vmId", "vmId: \"tidegate\""),
    ] {
        assert_eq!(line(&found, key), expected);
    }
}

#[test]
fn printed_settings_are_accepted_as_a_file() {
    let stage = Stage::new("state: 'a \"quoted\" # place'\nname: [a, b]\nallowPlaintext: true\n");
    let first = stage.in_force(&[], &[]);

    let again = Stage::new(&first).in_force(&[], &[]);

    assert_eq!(again, first);
}

#[test]
fn the_environment_may_name_the_file() {
    let stage = Stage::new("grace: soon\n");
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["serve", "--print-settings"])
        .env("TIDEGATE_SETTINGS", stage.file())
        .output()
        .unwrap();

    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn every_error_is_reported_with_its_position() {
    let stage = Stage::new(
        "xdsListen: here
grase: 1s
maxProxies: many
allowPlaintext: 'yes'
policies: {a: b}
settings: other.yaml
onCrash: shrug
rescan: soon
state:
grace: 1s
grace: 2s
",
    );
    let file = stage.file().display().to_string();

    let (code, out, err) = stage.serve(&[], &[]);

    assert_eq!((code, out.as_str()), (2, ""));
    for (place, said) in [
        (
            "1:1",
            "xdsListen: found \"here\", expected ADDRESS (invalid socket address syntax)",
        ),
        (
            "2:1",
            "grase: found an unknown key, expected one of policies,",
        ),
        ("2:1", "(did you mean \"grace\"?)"),
        (
            "3:1",
            "maxProxies: found \"many\", expected N (invalid digit found in string)",
        ),
        (
            "4:1",
            "allowPlaintext: found \"yes\", expected true or false",
        ),
        ("5:1", "policies: found an object, expected DIR"),
        ("6:1", "settings: found an unknown key"),
        (
            "7:1",
            "onCrash: found \"shrug\", expected one of reload, open, close",
        ),
        (
            "8:1",
            "rescan: found \"soon\", expected a time such as 250ms, 5s or 1m",
        ),
        ("9:1", "state: found null, expected DIR"),
        ("10:1", "grace: found the key again"),
    ] {
        let place = format!("{file}:{place}: ");
        assert!(
            err.lines()
                .any(|line| line.starts_with(&place) && line.contains(said)),
            "{place}{said} not in:\n{err}"
        );
    }
}

#[test]
fn an_invalid_settings_file_is_rejected() {
    for (text, said) in [
        ("a: [", "malformed YAML"),
        ("- a\n", "expected an object"),
        ("grace: 1s\n---\ngrace: 2s\n", "expected one document"),
    ] {
        let (code, _, err) = Stage::new(text).serve(&[], &[]);
        assert_eq!(code, 2, "{text}");
        assert!(err.contains(said), "{text}: {err}");
    }
    let stage = Stage::new("");
    std::fs::remove_file(stage.file()).unwrap();
    let (code, _, err) = stage.serve(&[], &[]);
    assert_eq!(code, 2);
    assert!(err.contains("settings.yaml: No such file"), "{err}");
}

#[test]
fn dependent_options_may_come_from_different_sources() {
    let stage = Stage::new("policies: .\ntlsCert: cert.pem\n");

    let (code, _, err) = stage.serve(&[], &[]);
    assert_eq!(code, 2);
    assert!(err.contains("--tls-cert needs --tls-key"), "{err}");

    // With both files named, the next error is reported.
    let (code, _, err) = stage.serve(&["--tls-key", "key.pem"], &[]);
    assert_eq!(code, 2);
    assert!(err.contains("cert.pem"), "{err}");
    assert!(!err.contains("needs"), "{err}");
}

#[test]
fn the_settings_of_the_example_are_accepted() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let file = workspace.join("examples/standalone-ecds/settings.yaml");
    let text = std::fs::read_to_string(file).unwrap();

    let found = Stage::new(&text).in_force(&[], &[]);

    assert_eq!(line(&found, "xdsListen"), "xdsListen: \"0.0.0.0:18000\"");
    assert_eq!(line(&found, "allowPlaintext"), "allowPlaintext: true");
}

#[test]
fn the_reference_matches_the_settings_printed_without_a_file() {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["serve", "--print-settings"])
        .output()
        .unwrap();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let reference = std::fs::read_to_string(workspace.join("docs/settings.yaml")).unwrap();

    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        reference,
        "make docs writes a new one"
    );
}

#[test]
fn a_name_stands_for_one_module_only() {
    let stage = Stage::new("policies: policies\nname: [tidegate, edge]\nnativeName: edge\n");

    let (code, out, err) = stage.serve(&[], &[]);

    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("--native-name edge: found a name"), "{err}");
}
