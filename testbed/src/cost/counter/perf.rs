//! Instructions counted by the processor, through `perf stat`.

use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cost::CostError;
use crate::cost::process::die_with_parent;

const EVENT: &str = "instructions:u";
const ATTACH_BOUND: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);

/// Says whether the machine lends its counters: virtual ones often do not.
pub(super) fn refusal() -> Option<String> {
    let output = Command::new("perf")
        .args(["stat", "-x", ",", "-e", EVENT, "true"])
        .output();
    match output {
        Err(_) => Some("perf: not installed".to_owned()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            parse(&text)
                .is_none()
                .then(|| format!("perf: no {EVENT} on this machine ({})", text.trim()))
        }
    }
}

/// A `perf stat` that is attached to a process.
#[derive(Debug)]
pub(super) struct Stat(Child);

impl Stat {
    pub(super) fn attach(pid: u32) -> Result<Self, CostError> {
        let mut command = Command::new("perf");
        command
            .args(["stat", "-x", ",", "-e", EVENT, "-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        die_with_parent(&mut command);
        let mut stat = Self(command.spawn().map_err(CostError::io("run", "perf"))?);
        let started = Instant::now();
        while started.elapsed() < ATTACH_BOUND {
            if stat.is_attached() {
                return Ok(stat);
            }
            if stat.0.try_wait().ok().flatten().is_some() {
                break;
            }
            thread::sleep(POLL);
        }
        let found = stat.said();
        Err(failed(found))
    }

    pub(super) fn stop(mut self) -> Result<u64, CostError> {
        let text = self.said();
        parse(&text).ok_or_else(|| failed(text))
    }

    /// Whether it holds counters: they show as its open files.
    fn is_attached(&self) -> bool {
        let folder = fs::read_dir(format!("/proc/{}/fd", self.0.id()));
        folder.is_ok_and(|files| {
            files
                .flatten()
                .filter_map(|file| fs::read_link(file.path()).ok())
                .any(|target| target.to_string_lossy().contains("perf_event"))
        })
    }

    /// Interrupts it, as a person would, and takes what it says then.
    fn said(&mut self) -> String {
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // Fails only when it is gone already.
            let _ = kill_process(pid, Signal::INT);
        }
        let mut text = String::new();
        if let Some(stderr) = self.0.stderr.as_mut() {
            // What could be read is judged by the caller.
            let _ = stderr.read_to_string(&mut text);
        }
        let _ = self.0.wait();
        text
    }
}

impl Drop for Stat {
    fn drop(&mut self) {
        // Both fail only when the process is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const fn failed(found: String) -> CostError {
    CostError::Counter {
        tool: "perf stat",
        found,
        expected: "a count of instructions:u",
    }
}

/// The count in a line such as `22440012,,instructions:u,1000000,100.00,,`.
fn parse(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find(|line| line.split(',').nth(2) == Some(EVENT))?;
    line.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_is_the_first_field() {
        let line = "22440012,,instructions:u,1000000,100.00,,\n";
        assert_eq!(parse(line), Some(22_440_012));
    }

    #[test]
    fn machine_without_counters_gives_none() {
        assert_eq!(parse("<not supported>,,instructions:u,0,100.00,,\n"), None);
    }
}
