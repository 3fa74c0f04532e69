//! The command itself: its output, and how it stops.

use std::net::SocketAddr;
use std::process::Command;

use serde_json::Value;
use tidegate_supervise::{Log, Process, Signal};
use tidegate_testbed::client::{Call, Caller};

use crate::proxy::TestProxy;
use crate::stage::{BOUND, TOKEN, policy};

fn tidegate(arguments: &[&str]) -> Process {
    tidegate_in(arguments, &[])
}

/// The same with these environment variables.
pub(crate) fn tidegate_in(arguments: &[&str], variables: &[(&str, &str)]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("serve").args(arguments);
    command.envs(variables.iter().copied());
    Process::start("tidegate", command, Log::Unnamed).unwrap()
}

/// The addresses that a process serves on, by the key of its log.
pub(crate) async fn serving(process: &mut Process) -> impl Fn(&str) -> SocketAddr + use<> {
    let is_serving = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["message"] == "serving").then_some(line)
    };
    let line = process.line(BOUND, is_serving).await.unwrap();
    move |key| line[key].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_rejects_a_policy_and_the_old_one_remains_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    // Files may have at most 1 KiB. More is an error and not a signal. This imitates a full disk.
    let limited = "ulimit -f 1; trap '' XFSZ; exec \"$@\"";
    let mut command = Command::new("bash");
    command
        .args([
            "-c",
            limited,
            "bash",
            env!("CARGO_BIN_EXE_tidegate"),
            "serve",
        ])
        .args([
            "--xds-listen",
            "127.0.0.1:0",
            "--http-listen",
            "127.0.0.1:0",
            "--health-listen",
            "127.0.0.1:0",
        ])
        .arg("--state")
        .arg(folder.path().join("state"))
        .arg("--token-file")
        .arg(&token);
    let mut process = Process::start("tidegate", command, Log::Unnamed).unwrap();
    let http = Caller::http1(serving(&mut process).await("http"));
    let put = |text: String| {
        let call = Call::put("/v1/policies/a", text);
        call.header("authorization", &format!("Bearer {TOKEN}"))
    };
    let first = http.call(&put(policy("a", "*", 100))).await.unwrap();
    assert_eq!(first.status, 201);
    let tag = first.header("etag").unwrap();

    let large = format!("{}# {}\n", policy("a", "*", 200), "x".repeat(4_096));
    let refused = http
        .call(&put(large).header("if-match", tag))
        .await
        .unwrap();

    assert_eq!(refused.status, 507);
    let kept = http.get("/v1/policies/a").await.unwrap();
    assert_eq!(kept.header("etag"), Some(tag));
    let small = put(policy("a", "*", 300)).header("if-match", tag);
    assert_eq!(http.call(&small).await.unwrap().status, 200);
    let files = std::fs::read_dir(folder.path().join("state/policies")).unwrap();
    assert_eq!(files.count(), 1, "no incomplete file is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_logs_json_serves_and_stops_cleanly() {
    let folder = tempfile::tempdir().unwrap();
    let any = "127.0.0.1:0";
    let mut process = tidegate(&[
        "--policies",
        folder.path().to_str().unwrap(),
        "--xds-listen",
        any,
        "--http-listen",
        any,
        "--health-listen",
        any,
    ]);
    let port = serving(&mut process).await;
    let health = Caller::http1(port("health"));
    assert_eq!(health.get("/readyz").await.unwrap().status, 200);
    let mut proxy = TestProxy::connect(port("xds"), "edge", "").await;
    proxy.pushed().await;

    process.signal(Signal::TERM).unwrap();

    assert_eq!(process.wait(BOUND).await.unwrap().code(), Some(0));
    assert_eq!(proxy.ended().await.code(), tonic::Code::Unavailable);
}

#[test]
fn missing_requirements_are_reported_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "short").unwrap();
    for (arguments, reason) in [
        (&[][..], "no source of policies"),
        (
            &["--policies", path, "--http-listen", "0.0.0.0:0"],
            "--allow-plaintext",
        ),
        (
            &["--policies", path, "--token-file", token.to_str().unwrap()],
            "16 bytes",
        ),
        (&["--state", token.to_str().unwrap()], "state directory"),
        (
            &["--policies", path, "--prometheus", "ftp://prometheus"],
            "the service graph: the URL of Prometheus: its scheme is neither http nor https",
        ),
        (
            &["--policies", path, "--prometheus-basic-user", "tide"],
            "--prometheus-basic-user needs --prometheus-basic-password-file",
        ),
    ] {
        let mut process = tidegate(arguments);
        let status = process.wait_blocking(BOUND).unwrap();
        let said = process.log();
        assert!(said.contains(reason), "{arguments:?}: {said}");
        assert_eq!(status.code(), Some(2), "{arguments:?}");
    }
}
