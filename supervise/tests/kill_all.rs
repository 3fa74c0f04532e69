//! The end of a program that drops nothing. A file of its own: it would end the processes of other tests.

use std::process::Command;
use std::time::Duration;

use tidegate_supervise::{Log, Process, kill_all};

#[test]
fn all_processes_are_killed_at_once() {
    let start = || {
        let mut command = Command::new("sleep");
        command.arg("600");
        Process::start("server", command, Log::Unnamed).unwrap()
    };
    let mut processes = [start(), start()];
    kill_all();
    for process in &mut processes {
        let status = process.wait_blocking(Duration::from_secs(30)).unwrap();
        assert_eq!(status.to_string(), "signal: 9 (SIGKILL)");
    }
}
