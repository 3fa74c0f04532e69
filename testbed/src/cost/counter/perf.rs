//! Instructions counted by the processor, through `perf stat`.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tidegate_supervise::{Log, Process, Signal};

use crate::cost::CostError;

const EVENT: &str = "instructions:u";
const ATTACH_BOUND: Duration = Duration::from_secs(10);
const STOP_BOUND: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);

/// Why perf cannot count here: virtual machines often do not expose the counters.
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
pub(super) struct Stat(Process);

impl Stat {
    pub(super) fn attach(pid: u32) -> Result<Self, CostError> {
        let mut command = Command::new("perf");
        command.args(["stat", "-x", ",", "-e", EVENT, "-p", &pid.to_string()]);
        let mut stat = Self(Process::start("perf", command, Log::Unnamed)?);
        let started = Instant::now();
        while !stat.is_attached() {
            stat.0.still_starting(started, ATTACH_BOUND)?;
            thread::sleep(POLL);
        }
        Ok(stat)
    }

    /// Interrupts it, as Ctrl-C does, and parses the count that it then prints.
    pub(super) fn stop(mut self) -> Result<u64, CostError> {
        // Fails only if it has ended already.
        let _ = self.0.signal(Signal::INT);
        self.0.wait_blocking(STOP_BOUND)?;
        let text = self.0.log();
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
