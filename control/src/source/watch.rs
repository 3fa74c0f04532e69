//! Looks at the directory when something tells of a change, and every few seconds anyway.
//!
//! Notifications make a change quick; the regular look makes it certain: they get lost on overload, network
//! file systems have none, and a directory that was removed and made again has left its watcher behind.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Catalogue;

/// A volume that is updated tells of several changes in a row: one look is enough for them.
const GATHER: Duration = Duration::from_millis(20);

/// Follows the directory at `path` until told to stop.
pub async fn watch(
    catalogue: Catalogue,
    path: PathBuf,
    every: Duration,
    closing: CancellationToken,
) {
    let (tell, mut told) = mpsc::channel(1);
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watched = None;
    let mut watcher = None;
    loop {
        let is_due = tokio::select! {
            () = closing.cancelled() => return,
            _ = ticks.tick() => true,
            _ = told.recv() => false,
        };
        if is_due {
            // It may be a new directory under the old name, which a watcher does not notice.
            let found = identity(&path);
            if found != watched || watcher.is_none() {
                watcher = watcher_of(&path, tell.clone());
                watched = found;
            }
        } else {
            tokio::time::sleep(GATHER).await;
            while told.try_recv().is_ok() {}
        }
        let catalogue = catalogue.clone();
        // Reading blocks. A panic there is none of ours to pass on: the next look comes.
        let _ = tokio::task::spawn_blocking(move || catalogue.rescan()).await;
    }
}

/// Device and inode.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

fn watcher_of(path: &Path, tell: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.is_ok_and(|event| !event.kind.is_access()) {
            // Full: a look is due already.
            let _ = tell.try_send(());
        }
    });
    let mut watcher = watcher
        .inspect_err(|error| warn!(%error, "no notifications of changes to policies"))
        .ok()?;
    // Fails while the directory is gone, which the look itself reports.
    watcher.watch(path, RecursiveMode::NonRecursive).ok()?;
    Some(watcher)
}
