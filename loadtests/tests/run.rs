//! The command that plays studies, as a process: what happens to it when something is missing, broken or interrupted.
//!
//! fortio is a script here, so that it can fail in each way; Envoy is the real one where it matters.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests: to stop at the first surprise is what is wanted"
)]

mod process;

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use tidegate_loadtests::result::LoadtestRun;

use process::{interrupted, said, script};

/// What fortio leaves behind when all is well.
const RESULT: &str = r#"{"ActualDuration":1000000000,"DurationHistogram":{"Count":2,"Sum":0.004,"Data":[{"Start":0.001,"End":0.003,"Count":2}]},"RetCodes":{"200":2}}"#;

/// Cells of one repetition that need no Envoy: four rates, and one of them with two wires.
const DIRECT: [&str; 4] = ["--studies", "ambient", "--cells", "direct none #0"];

/// A folder with a fortio that is a script, and one for results.
struct Stage {
    folder: TempDir,
}

impl Stage {
    /// `body` runs with the name of the result's file in `$json`, and all arguments in `$all`.
    fn with(body: &str) -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(stage.tools()).unwrap();
        stage.fortio(body);
        stage
    }

    fn tools(&self) -> PathBuf {
        self.folder.path().join("tools")
    }

    fn fortio(&self, body: &str) {
        let text = format!(
            "#!/bin/sh\n[ \"$1\" != version ] || {{ echo 1.66.5; exit 0; }}\nall=\"$*\"\n\
             while [ $# -gt 1 ]; do [ \"$1\" != -json ] || json=$2; shift; done\n{body}\n"
        );
        script(&self.tools().join("fortio"), &text);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-loadtests"));
        command
            .arg("run")
            .args(["--name", "test", "--out"])
            .arg(self.folder.path())
            .args(arguments)
            .env("TIDEGATE_LOAD_TOOLS", self.tools())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn results(&self) -> LoadtestRun {
        LoadtestRun::read(&self.folder.path().join("test")).unwrap()
    }

    /// Names of the cells that failed, with the reason.
    fn failed(&self) -> Vec<(String, String)> {
        let run = self.results();
        run.failed()
            .map(|cell| (cell.name(), cell.error().unwrap_or_default().to_owned()))
            .collect()
    }
}

fn writes(text: &str) -> String {
    format!("printf '%s' '{text}' > \"$json\"")
}

#[test]
fn a_cell_that_fails_is_a_gap_and_the_others_go_on() {
    let cut = &RESULT[..40];
    let broken = format!(
        "case \"$all\" in *-keepalive=false*) {} ;; *) {} ;; esac",
        writes(cut),
        writes(RESULT)
    );
    let stage = Stage::with(&broken);

    let output = stage.run(&DIRECT);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let failed = stage.failed();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(
        failed[0].0.contains("close") && failed[0].1.contains("found 40 bytes, cut short"),
        "{failed:?}"
    );
    assert!(
        said(&output).contains("1 cells failed and are gaps"),
        "{}",
        said(&output)
    );
    assert_eq!(stage.results().ended().count(), 5);

    stage.fortio(&writes(RESULT));
    let again = stage.run(&[&DIRECT[..], &["--resume"]].concat());
    assert!(again.status.success(), "{}", said(&again));
    assert!(
        said(&again).contains("1 of 6 cells"),
        "only what failed is played again: {}",
        said(&again)
    );
    assert_eq!(
        (stage.results().ended().count(), stage.failed().len()),
        (6, 0)
    );
}

#[test]
fn a_missing_tool_is_named_for_each_of_its_cells() {
    let stage = Stage::with("exit 0");
    fs::remove_file(stage.tools().join("fortio")).unwrap();
    let output = stage.run(&DIRECT);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let failed = stage.failed();
    assert_eq!(failed.len(), 6, "all are tried");
    assert!(
        failed
            .iter()
            .all(|(_, error)| error.ends_with("fortio is missing: run `make tools-load`")),
        "{failed:?}"
    );

    stage.fortio(&writes(RESULT));
    let output = stage.run(&[&DIRECT[..], &["--resume"]].concat());
    assert!(output.status.success(), "{}", said(&output));
    let version = stage.results().info.versions.remove("fortio");
    assert_eq!(version.as_deref(), Some("1.66.5"));
}

#[test]
fn a_run_in_progress_is_not_overwritten() {
    let stage = Stage::with(&writes(RESULT));
    assert!(stage.run(&DIRECT).status.success());
    let output = stage.run(&DIRECT);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("found a run, expected none"),
        "{}",
        said(&output)
    );
    assert_eq!(stage.results().ended().count(), 6);
}

#[test]
fn a_port_in_use_is_named_and_cells_without_it_go_on() {
    let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = held.local_addr().unwrap().port().to_string();
    let stage = Stage::with(&writes(RESULT));
    let cells = [
        "--studies",
        "ambient",
        "--cells",
        "qps=100 connections=10 ",
        "--first-port",
        &port,
    ];
    let output = stage.run(&cells);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let expected = format!("set up: port {port} of 127.0.0.1 is in use: choose another first port");
    let failed = stage.failed();
    assert!(
        !failed.is_empty() && failed.iter().all(|(_, error)| *error == expected),
        "{failed:?}"
    );
    assert!(failed.iter().all(|(name, _)| name.contains("shared")));
    assert!(
        stage
            .results()
            .ended()
            .all(|cell| cell.name().contains("direct"))
    );
    assert!(stage.results().ended().count() >= 3);
}

#[test]
fn an_envoy_that_does_not_start_is_quoted() {
    let stage = Stage::with(&writes(RESULT));
    let envoy = stage.tools().join("envoy");
    script(
        &envoy,
        "#!/bin/sh\n[ \"$1\" != --version ] || { echo 'envoy  version: 1/1.40.0/x'; exit 0; }\necho no such filter >&2\nexit 3\n",
    );
    let mut command = stage.command(&[
        "--studies",
        "ambient",
        "--cells",
        "qps=100 connections=10 shared none #0",
    ]);
    let output = command.env("TIDEGATE_ENVOY", &envoy).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let failed = stage.failed();
    assert_eq!(failed.len(), 1);
    let error = &failed[0].1;
    assert!(
        error.contains("start envoy for none: envoy ended (exit status: 3)")
            && error.contains("no such filter"),
        "{error}"
    );
}

#[test]
fn an_interrupted_run_keeps_what_is_over_and_goes_on_from_there() {
    let pid = "\"$(dirname \"$0\")/pid\"";
    let stage = Stage::with(&format!(
        "case \"$all\" in *-keepalive=false*) echo $$ > {pid}; exec sleep 600 ;; *) {} ;; esac",
        writes(RESULT)
    ));
    interrupted(stage.command(&DIRECT), &stage.tools().join("pid"));
    assert_eq!(
        stage.results().ended().count(),
        1,
        "the first cell was over"
    );

    stage.fortio(&writes(RESULT));
    // The same cells, though they are not named again.
    let output = stage.run(&["--resume"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("5 of 6 cells"), "{}", said(&output));
    assert_eq!(stage.results().ended().count(), 6);
}
