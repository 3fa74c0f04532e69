//! Instructions counted by valgrind's callgrind, which runs them one by one.
//!
//! Envoy runs in it unchanged. Two things matter: code that V8 generates at run time needs `--smc-check=all-non-file`; and
//! each VM reserves 10 GiB of the 128 GiB of addresses that valgrind has, so that only a few VMs fit. On request from
//! outside, callgrind writes its counters to a file and resets them, so that the count excludes start-up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cost::CostError;
use crate::cost::process::MeasuredEnvoy;

const TOOL: &str = "callgrind_control";
const OUT: &str = "callgrind.out";
/// Writing a dump takes well under a second.
const DUMP_BOUND: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);

pub(super) fn refusal() -> Option<String> {
    let works = said("valgrind", &["--version"]).is_some() && said(TOOL, &["--version"]).is_some();
    (!works).then(|| "valgrind: not installed".to_owned())
}

pub(super) fn command(binary: &Path, folder: &Path) -> Command {
    let mut out = std::ffi::OsString::from("--callgrind-out-file=");
    out.push(folder.join(OUT));
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--smc-check=all-non-file"])
        .arg(out)
        .arg(binary);
    command
}

/// Instructions since the last dump.
pub(super) fn dump(measured: &MeasuredEnvoy) -> Result<u64, CostError> {
    let pid = measured.pid().to_string();
    let failed = |found: String| CostError::Counter {
        tool: TOOL,
        found,
        expected: "a dump with `totals:`",
    };
    let output = Command::new(TOOL)
        .args(["--dump", &pid])
        .output()
        .map_err(CostError::io("run", TOOL))?;
    let started = Instant::now();
    while started.elapsed() < DUMP_BOUND {
        if let Some((path, total)) = newest(measured.folder()) {
            // Removed at once, so that the next poll does not find it again.
            fs::remove_file(&path).map_err(CostError::io("remove", &path))?;
            return Ok(total);
        }
        thread::sleep(POLL);
    }
    Err(failed(String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// The complete dump in `folder`.
fn newest(folder: &Path) -> Option<(PathBuf, u64)> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let name = entry.file_name();
        // The file without a number is written at the end of the process.
        name.to_str()?.strip_prefix(OUT)?.strip_prefix('.')?;
        let bytes = fs::read(entry.path()).ok()?;
        Some((entry.path(), totals(&String::from_utf8_lossy(&bytes))?))
    })
}

/// The sum at the end of a dump.
fn totals(dump: &str) -> Option<u64> {
    let line = dump
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("totals:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The output of a short command; `None` if the program is missing or fails.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let both = [output.stdout, output.stderr].concat();
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&both).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_stand_at_the_end() {
        assert_eq!(
            totals("events: Ir\nfn=x\n1 2\ntotals: 907980167\n"),
            Some(907_980_167)
        );
        assert_eq!(totals("events: Ir\nfn=x\n1 2\n"), None);
    }
}
