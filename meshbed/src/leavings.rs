//! Cleans up after a run: removes folders, but keeps the logs of a failure.
//!
//! An interrupted run ends without unwinding, so it drops nothing. For that case a list has the folders in use.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_testbed::envoy::repository;

/// How often the removal of a folder is tried, and the pause between attempts.
const ATTEMPTS: u32 = 50;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(10);

static FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn folders() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a folder to the list.
pub(crate) fn opened(folder: &Path) {
    folders().insert(folder.to_owned());
}

/// Takes a folder off the list before its removal. If a test is failing, copies its logs to `out/logs/`.
pub(crate) fn closing(folder: &Path) {
    folders().remove(folder);
    if std::thread::panicking() {
        keep(folder);
    }
}

/// Copies the logs of all folders that are in use to `out/logs/`.
pub(crate) fn keep_all() {
    let all = folders().clone();
    all.iter().for_each(|folder| keep(folder));
}

/// Ends all processes and removes all folders; called just before this program ends.
pub(crate) fn sweep() {
    tidegate_supervise::kill_all();
    let all = std::mem::take(&mut *folders());
    for folder in all {
        // Killed processes may still be ending, and writing.
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
