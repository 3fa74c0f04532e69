//! Resources that a process holds: file descriptors and memory.

use std::fs;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What one process holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holds {
    /// Open file descriptors.
    pub fds: u64,
    /// Resident memory, bytes.
    pub resident: u64,
}

impl Holds {
    /// What the process `id` holds now.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn of(id: u32) -> Result<Self> {
        let folder = fs::read_dir(format!("/proc/{id}/fd"));
        let fds = folder.with_context(|| format!("process {id}"))?.count();
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        Ok(Self {
            fds: u64::try_from(fds)?,
            resident: resident(&status).context("no VmRSS")?,
        })
    }
}

fn resident(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_holds_something() {
        let before = Holds::of(std::process::id()).unwrap();
        assert!(before.resident > 100_000 && before.fds > 2, "{before:?}");
        assert_eq!(resident("Name: x\nVmRSS:\t  12 kB\n"), Some(12_288));
    }
}
