//! What happens to processes: real ones, made by a shell.

#![expect(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fs;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};
use tidegate_supervise::{Log, Process, ProcessError, Signal};

/// Longer than anything here takes, on a busy machine.
const BOUND: Duration = Duration::from_secs(30);

/// Short, for what must not come.
const MOMENT: Duration = Duration::from_millis(100);

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn start(script: &str) -> Process {
    Process::start("server", shell(script), Log::Unnamed).unwrap()
}

/// The process id that a process prints.
async fn printed_id(process: &mut Process) -> Pid {
    let id = |line: &str| Pid::from_raw(line.trim().parse().ok()?);
    process.line(BOUND, id).await.unwrap()
}

fn runs(process: Pid) -> bool {
    // One that has ended and not been waited for by its new parent is a zombie.
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    test_kill_process(process).is_ok() && !status.contains(") Z ")
}

async fn ends(process: Pid) {
    let since = Instant::now();
    while runs(process) {
        assert!(since.elapsed() < BOUND, "{process} runs on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_process_that_ends_by_itself_is_an_error_with_the_end_of_its_log() {
    let mut server = start("seq 100; echo no such filter >&2; exit 3");
    let error = server.ready(BOUND, async || None::<()>).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("server ended (exit status: 3); the end of its log:\n77\n"),
        "{text}"
    );
    assert!(text.ends_with("\n100\nno such filter"), "{text}");
}

#[tokio::test]
async fn a_process_that_is_not_ready_in_time_is_an_error_even_if_the_look_hangs() {
    let mut server = start("echo waiting; sleep 600");
    server
        .line(BOUND, |line| (line == "waiting").then_some(()))
        .await
        .unwrap();
    let never = server.ready(MOMENT, std::future::pending::<Option<()>>);
    let error = never.await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "server was not ready after 100ms; the end of its log:\nwaiting"
    );
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = Process::start("server", Command::new("/no/such/program"), Log::Unnamed);
    let error = error.unwrap_err();
    assert_eq!(error.to_string(), "start server (/no/such/program)");
    assert!(matches!(error, ProcessError::Start { source, .. }
        if source.kind() == std::io::ErrorKind::NotFound));
}

#[tokio::test]
async fn a_line_is_seen_when_it_is_whole() {
    let mut server = start("printf 'port 12'; sleep 0.2; echo 34; sleep 600");
    let port = |line: &str| line.strip_prefix("port ")?.parse::<u16>().ok();
    assert_eq!(server.line(BOUND, port).await.unwrap(), 1_234);
}

#[tokio::test]
async fn a_port_that_listens_is_seen() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut server = start("sleep 600");
    let address = listener.local_addr().unwrap();
    server.listens(address, BOUND).await.unwrap();
    drop(listener);
    assert!(server.listens(address, MOMENT).await.is_err());
}

#[test]
fn a_log_in_a_folder_is_added_to_and_read_from_the_latest_start() {
    let folder = tempfile::tempdir().unwrap();
    for word in ["first", "second"] {
        let command = shell(&format!("echo {word}"));
        let mut server = Process::start("server", command, Log::In(folder.path())).unwrap();
        assert!(server.wait_blocking(BOUND).unwrap().success());
        assert_eq!(server.log(), format!("{word}\n"));
    }
    let whole = fs::read_to_string(folder.path().join("server.log")).unwrap();
    assert_eq!(whole, "first\nsecond\n");
}

#[tokio::test]
async fn input_reaches_the_process() {
    let command = shell("read line; echo got $line; sleep 600");
    let mut server = Process::start_with_input("server", command, Log::Unnamed).unwrap();
    server.write(b"it\n").unwrap();
    let got = |line: &str| (line == "got it").then_some(());
    server.line(BOUND, got).await.unwrap();
}

#[tokio::test]
async fn what_a_process_started_is_killed_with_it() {
    let mut server = start("sleep 600 & echo $!; wait");
    let started = printed_id(&mut server).await;
    assert!(runs(started));
    drop(server);
    ends(started).await;
}

#[tokio::test]
async fn what_a_process_started_does_not_outlive_its_end() {
    let mut server = start("sleep 600 & echo $!");
    let started = printed_id(&mut server).await;
    assert!(server.wait(BOUND).await.unwrap().success());
    ends(started).await;
}

#[tokio::test]
async fn stop_asks_first_and_kills_what_does_not_end() {
    let is_ready = |line: &str| (line == "ready").then_some(());
    let mut polite = start("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done");
    polite.line(BOUND, is_ready).await.unwrap();
    polite.stop(BOUND);
    assert_eq!(polite.ended().unwrap().code(), Some(7));

    let mut stubborn = start("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    stubborn.line(BOUND, is_ready).await.unwrap();
    stubborn.stop(MOMENT);
    assert_eq!(stubborn.ended().unwrap().to_string(), "signal: 9 (SIGKILL)");
}

#[tokio::test]
async fn a_wait_for_the_end_has_a_bound() {
    let mut server = start("sleep 600");
    let error = server.wait(MOMENT).await.unwrap_err();
    assert_eq!(error.to_string(), "server had not ended after 100ms");
    server.kill();
    assert!(server.signal(Signal::INT).is_err(), "its id may be reused");
}

/// Runs in a process of its own: see the test below.
#[tokio::test]
async fn inner_program_with_a_process() {
    if std::env::var_os("SUPERVISE_INNER").is_none() {
        return;
    }
    let server = start("sleep 600");
    println!("\n{}", server.id());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn a_process_does_not_outlive_a_program_that_is_killed() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "inner_program_with_a_process", "--nocapture"])
        .env("SUPERVISE_INNER", "1");
    let mut program = Process::start("program", command, Log::Unnamed).unwrap();
    let process = printed_id(&mut program).await;
    assert!(runs(process));
    // The process has a group of its own, so this kills the program alone.
    program.kill();
    ends(process).await;
}
