//! Processes of the tests, and the scripts that stand for tools in them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};

const BOUND: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

/// A process that does not outlive its test.
pub(crate) struct Held(pub(crate) Child);

impl Drop for Held {
    fn drop(&mut self) {
        // Fails only when it is over.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
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
pub(crate) fn wait_for(path: &Path) -> Pid {
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
pub(crate) fn wait_until_over(process: Pid) {
    let started = Instant::now();
    while test_kill_process(process).is_ok() {
        assert!(started.elapsed() < BOUND, "{process:?} runs on");
        sleep(POLL);
    }
}
