//! The running processes, for a program that ends without dropping what it holds.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn add(id: u32) {
    running().insert(id);
}

pub(crate) fn remove(id: u32) {
    running().remove(&id);
}

/// Kills every process that [`Process`](crate::Process) started, with its group, and does not wait for them: for a program
/// that is about to end with [`std::process::exit`].
pub fn kill_all() {
    let ids = std::mem::take(&mut *running());
    let raw = ids.into_iter().filter_map(|id| i32::try_from(id).ok());
    for group in raw.filter_map(Pid::from_raw) {
        // Fails only if the group has already ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}
