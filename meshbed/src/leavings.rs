//! What must not be left behind, and what must: processes and folders go, the logs of a failure stay.
//!
//! A run that is interrupted ends without unwinding, so that nothing is dropped: what runs and where it writes
//! is kept on a list for that moment.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tidegate_testbed::envoy::repository;

/// So often a folder is tried to be removed, at this distance.
const ATTEMPTS: u32 = 50;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
struct Leavings {
    processes: BTreeSet<i32>,
    folders: BTreeSet<PathBuf>,
}

fn leavings() -> MutexGuard<'static, Leavings> {
    static LEAVINGS: OnceLock<Mutex<Leavings>> = OnceLock::new();
    let all = LEAVINGS.get_or_init(Mutex::default);
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process was started. Its id stays its own until [`ended`], because nobody else waits for it.
pub(crate) fn started(process: Pid) {
    leavings().processes.insert(process.as_raw_nonzero().get());
}

/// It has ended, and is about to be waited for.
pub(crate) fn ended(process: Pid) {
    leavings().processes.remove(&process.as_raw_nonzero().get());
}

/// A folder is in use.
pub(crate) fn opened(folder: &Path) {
    leavings().folders.insert(folder.to_owned());
}

/// A folder is about to be removed. While a test fails its logs are copied to `out/logs/`.
pub(crate) fn closing(folder: &Path) {
    leavings().folders.remove(folder);
    if std::thread::panicking() {
        keep(folder);
    }
}

/// Copies the logs of all folders that are in use to `out/logs/`.
pub(crate) fn keep_all() {
    let folders = leavings().folders.clone();
    folders.iter().for_each(|folder| keep(folder));
}

/// Ends all processes and removes all folders, because this program is about to end.
pub(crate) fn sweep() {
    let all = std::mem::take(&mut *leavings());
    for pid in all.processes.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
    for folder in all.folders {
        // Those that were killed may still be on their way out, and write.
        let is_gone = (0..ATTEMPTS).any(|_| {
            std::thread::sleep(BETWEEN_ATTEMPTS);
            fs::remove_dir_all(&folder).is_ok() || !folder.exists()
        });
        if !is_gone {
            eprintln!("{} is left behind", folder.display());
        }
    }
}

fn keep(folder: &Path) {
    let to = repository()
        .join("out/logs")
        .join(folder.file_name().unwrap_or_default());
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    for file in files.map(|file| file.path()) {
        let is_log = file
            .extension()
            .is_some_and(|kind| kind == "log" || kind == "jsonl");
        if let (true, Some(name)) = (is_log, file.file_name()) {
            let kept = fs::create_dir_all(&to).and_then(|()| fs::copy(&file, to.join(name)));
            if let Err(error) = kept {
                eprintln!("keep {}: {error}", file.display());
            }
        }
    }
    eprintln!("logs are kept in {}", to.display());
}
