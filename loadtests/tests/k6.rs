//! The command that plays the scenarios for k6, as a process: what happens to it when a threshold is missed, when k6 is
//! missing or broken, and when a user interrupts it.
//!
//! k6 is a script here, and the address from outside, so that no Envoy is needed.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests: to stop at the first surprise is what is wanted"
)]

mod process;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use process::{interrupted, said, script};

/// Where nothing listens: the script that stands for k6 sends nothing.
const ADDRESS: &str = "http://127.0.0.1:1";

const KEPT: &str = r#"{"metrics":{"good":{"thresholds":{"rate>=0.99":false}}}}"#;
const MISSED: &str = r#"{"metrics":{"good":{"thresholds":{"rate>=0.99":true}}}}"#;

/// A folder with a k6 that is a script.
struct Stage {
    folder: TempDir,
}

impl Stage {
    /// `body` runs with the name of the summary in `$summary`, and that of the scenario's file in `$test`.
    fn with(body: &str) -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let text = format!(
            "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" != --summary-export ] || summary=$2; shift; done\ntest=$1\n{body}\n"
        );
        script(&stage.k6(), &text);
        stage
    }

    fn k6(&self) -> PathBuf {
        self.folder.path().join("k6")
    }

    fn command(&self, tests: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-loadtests"));
        command
            .args(["k6", "--tests", tests, "--out"])
            .arg(self.folder.path().join("out"))
            .env("TIDEGATE_LOAD_TOOLS", self.folder.path())
            .env("BASE_URL", ADDRESS)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, tests: &str) -> Output {
        self.command(tests).output().unwrap()
    }
}

fn writes(text: &str) -> String {
    format!("printf '%s' '{text}' > \"$summary\"")
}

#[test]
fn a_missed_threshold_is_named_and_fails_the_run_but_the_others_are_played() {
    let (missed, kept) = (writes(MISSED), writes(KEPT));
    let stage = Stage::with(&format!(
        "case \"$test\" in */smoke.js) {missed}; exit 99 ;; *) {kept} ;; esac"
    ));
    let output = stage.run("smoke,outage");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let said = said(&output);
    assert!(
        said.contains("smoke        MISSED 1 of 1 thresholds")
            && said.contains("missed good rate>=0.99")
            && said.contains("outage       kept   1 of 1 thresholds"),
        "{said}"
    );
    assert!(stage.run("outage").status.success());
}

#[test]
fn the_address_from_outside_is_what_k6_is_told() {
    let stage = Stage::with(&format!(
        "[ \"$BASE_URL\" = {ADDRESS} ] || exit 7\n{}",
        writes(KEPT)
    ));
    let output = stage.run("smoke");
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_k6_that_is_missing_is_named() {
    let stage = Stage::with("exit 0");
    fs::remove_file(stage.k6()).unwrap();
    let output = stage.run("smoke");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let expected = format!(
        "smoke        FAILED: run {} (`ci/load.sh k6` installs it)",
        stage.k6().display()
    );
    assert!(said(&output).contains(&expected), "{}", said(&output));
}

#[test]
fn a_summary_that_is_cut_short_is_no_verdict() {
    let stage = Stage::with(&writes(&KEPT[..30]));
    let output = stage.run("smoke");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let said = said(&output);
    assert!(
        said.contains("smoke.json: found EOF") && said.contains("expected a summary of k6's"),
        "{said}"
    );
}

#[test]
fn an_interrupted_run_leaves_no_k6() {
    let pid = "\"$(dirname \"$0\")/pid\"";
    let stage = Stage::with(&format!("echo $$ > {pid}; exec sleep 600"));
    interrupted(stage.command("smoke"), &stage.folder.path().join("pid"));
}
