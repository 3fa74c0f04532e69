//! A wall clock that can be set for single processes, and a clock that all processes share.
//!
//! All processes share the machine's clock. So some of them load a library that adds an offset, read from a file, to the wall
//! time. A C compiler builds it at the start of a run; without a compiler no clock is set.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};

/// Microseconds on the machine's monotonic clock: the same in every process.
#[must_use]
pub fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds * 1_000_000 + nanos / 1_000
}

/// The library's source.
const SOURCE: &str = include_str!("clock.c");

/// The offset of the processes that have its variables.
#[derive(Debug)]
pub struct WallClock {
    library: PathBuf,
    offset: PathBuf,
}

impl WallClock {
    /// Builds the library in `folder`.
    ///
    /// # Errors
    /// If there is no C compiler, or the folder cannot be written.
    pub fn new(folder: &Path) -> Result<Self> {
        let source = folder.join("clock.c");
        let library = folder.join("clock.so");
        fs::write(&source, SOURCE).with_context(|| format!("write {}", source.display()))?;
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .status()
            .context("run cc")?;
        ensure!(status.success(), "cc ended with {status}");
        let clock = Self {
            library,
            offset: folder.join("clock-offset"),
        };
        clock.set(0)?;
        Ok(clock)
    }

    /// The environment variables of a process that is to use this clock.
    #[must_use]
    pub fn variables(&self) -> [(&'static str, OsString); 2] {
        [
            ("LD_PRELOAD", self.library.clone().into()),
            ("TIDEGATE_CHAOS_CLOCK", self.offset.clone().into()),
        ]
    }

    /// Sets the clock to this number of seconds ahead of the true one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set(&self, ahead: i64) -> Result<()> {
        use std::os::unix::fs::FileExt;
        // Written in place: the processes have mapped this file.
        let file = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&self.offset);
        let file = file.with_context(|| format!("open {}", self.offset.display()))?;
        file.write_all_at(&ahead.to_ne_bytes(), 0)
            .context("set the clock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_sees_the_clock_that_was_set() {
        let folder = tempfile::tempdir().unwrap();
        let clock = WallClock::new(folder.path()).unwrap();
        let year = |clock: &WallClock| {
            let output = Command::new("date")
                .args(["-u", "+%s"])
                .envs(clock.variables())
                .output()
                .unwrap();
            String::from_utf8(output.stdout)
                .unwrap()
                .trim()
                .parse::<i64>()
                .unwrap()
        };
        let before = year(&clock);
        clock.set(-86_400).unwrap();
        let after = year(&clock);
        assert!(
            (86_390..=86_400).contains(&(before - after)),
            "{before} {after}"
        );
    }
}
