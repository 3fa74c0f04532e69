//! The command itself: what it says, and how it ends.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tidegate_testbed::client::{Call, Caller};

use crate::proxy::TestProxy;
use crate::stage::{TOKEN, policy, until};

/// Killed by its id when dropped.
pub(crate) struct ServiceProcess(pub(crate) Child);

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        // It has ended already, when all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tidegate(arguments: &[&str]) -> ServiceProcess {
    tidegate_in(arguments, &[])
}

/// The same with these environment variables.
pub(crate) fn tidegate_in(arguments: &[&str], variables: &[(&str, &str)]) -> ServiceProcess {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("serve").args(arguments);
    command.envs(variables.iter().copied());
    let child = command.stderr(Stdio::piped()).spawn();
    ServiceProcess(child.unwrap())
}

/// The addresses that a process serves on, by the key of its log.
fn serving(process: &mut ServiceProcess) -> impl Fn(&str) -> SocketAddr + use<> {
    serving_and(process, drop)
}

/// The same; `read` gets every later line of the log.
pub(crate) fn serving_and<R: Fn(Value) + Send + 'static>(
    process: &mut ServiceProcess,
    read: R,
) -> impl Fn(&str) -> SocketAddr + use<R> {
    let mut log = BufReader::new(process.0.stderr.take().unwrap()).lines();
    let line: Value = loop {
        let line: Value = serde_json::from_str(&log.next().unwrap().unwrap()).unwrap();
        if line["message"] == "serving" {
            break line;
        }
    };
    // Read on, or the process would wait for its log to be read.
    std::thread::spawn(move || {
        for line in log.map_while(Result::ok) {
            read(serde_json::from_str(&line).unwrap());
        }
    });
    move |key| line[key].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_rejects_a_policy_and_the_old_one_remains_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, TOKEN).unwrap();
    // Files of at most 1 KiB, said by an error instead of a signal: the nearest to a full disk without one.
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
    let mut process = ServiceProcess(command.stderr(Stdio::piped()).spawn().unwrap());
    let http = Caller::http1(serving(&mut process)("http"));
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
    assert_eq!(files.count(), 1, "nothing half written is left");
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
    let port = serving(&mut process);
    let health = Caller::http1(port("health"));
    assert_eq!(health.get("/readyz").await.unwrap().status, 200);
    let mut proxy = TestProxy::connect(port("xds"), "edge", "").await;
    proxy.pushed().await;

    let id = process.0.id().to_string();
    let kill = Command::new("kill").args(["-TERM", &id]).status();
    assert!(kill.unwrap().success());

    until("it has ended", async || {
        process.0.try_wait().unwrap().is_some()
    })
    .await;
    assert_eq!(process.0.wait().unwrap().code(), Some(0));
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
    ] {
        let mut process = tidegate(arguments);
        let log = BufReader::new(process.0.stderr.take().unwrap()).lines();
        let said: String = log.map_while(Result::ok).collect();
        assert!(said.contains(reason), "{arguments:?}: {said}");
        assert_eq!(process.0.wait().unwrap().code(), Some(2), "{arguments:?}");
    }
}
