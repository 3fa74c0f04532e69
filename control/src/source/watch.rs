//! Scans the directory when it is notified of a change, and every few seconds.
//!
//! Notifications make changes effective quickly; regular scans make sure that none is missed: notifications get lost
//! under load, network file systems have none, and a directory that was removed and created again is no longer
//! watched.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Catalog;

/// An update of a volume causes several notifications in a row: one scan is enough for all of them.
const GATHER: Duration = Duration::from_millis(20);

/// Follows the directory at `path` until told to stop.
pub async fn watch(catalog: Catalog, path: PathBuf, every: Duration, closing: CancellationToken) {
    let (notify, mut notified) = mpsc::channel(1);
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watched = None;
    let mut watcher = None;
    loop {
        let is_due = tokio::select! {
            () = closing.cancelled() => return,
            _ = ticks.tick() => true,
            _ = notified.recv() => false,
        };
        if is_due {
            // A new directory under the old name is not noticed by the watcher.
            let found = identity(&path);
            if found != watched || watcher.is_none() {
                watcher = watcher_of(&path, notify.clone());
                watched = found;
            }
        } else {
            tokio::time::sleep(GATHER).await;
            while notified.try_recv().is_ok() {}
        }
        let catalog = catalog.clone();
        // Reading blocks. Ignore a panic: the next scan follows.
        let _ = tokio::task::spawn_blocking(move || catalog.rescan()).await;
    }
}

/// Device and inode.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

fn watcher_of(path: &Path, notify: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            // If the channel is full, a scan is already due.
            let _ = notify.try_send(());
        }
    });
    let mut watcher = watcher
        .inspect_err(|error| warn!(%error, "cannot watch the directory of policies; it is scanned regularly"))
        .ok()?;
    // Fails while the directory is missing, which the scan itself reports.
    watcher.watch(path, RecursiveMode::NonRecursive).ok()?;
    Some(watcher)
}
