//! Processes of the tests, and the scripts that stand for tools in them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};
use tidegate_supervise::{Log, Process, Signal};

const BOUND: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// Runs `command`, interrupts it when the file `pid` is there, and checks that the process it names ends as well.
pub(crate) fn interrupted(command: Command, pid: &Path) {
    let mut program = Process::start("tidegate-loadtests", command, Log::Unnamed).unwrap();
    let tool = wait_for(pid);
    program.signal(Signal::INT).unwrap();
    assert_eq!(program.wait_blocking(BOUND).unwrap().code(), Some(130));
    wait_until_over(tool);
}

/// Makes a script that can be run.
pub(crate) fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// All that a process has said.
pub(crate) fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// The process id in a file, once it is there.
fn wait_for(path: &Path) -> Pid {
    let started = Instant::now();
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if let Some(pid) = text
            .strip_suffix('\n')
            .and_then(|text| Pid::from_raw(text.parse().unwrap()))
        {
            return pid;
        }
        assert!(started.elapsed() < BOUND, "{} is not there", path.display());
        sleep(POLL);
    }
}

/// Waits until a process is over.
fn wait_until_over(process: Pid) {
    let started = Instant::now();
    while test_kill_process(process).is_ok() {
        assert!(started.elapsed() < BOUND, "{process:?} runs on");
        sleep(POLL);
    }
}
