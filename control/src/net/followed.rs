//! A file that is reloaded while the service runs; its last valid content is in force.
//!
//! The file is read every few seconds, because links, renames and volumes each report a change in another way or
//! not at all. Invalid content is logged once, and the last valid content stays in force.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tracing::{error, info};

/// Largest file that is read, in bytes: about ten thousand names.
const MAX_BYTES: u64 = 1 << 20;

/// The result of reading a file again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// Its content is the same as before.
    Unchanged,
    /// Its new content is in force.
    Accepted,
    /// Its new content is invalid; the last valid content stays in force.
    Rejected,
}

/// Why a file cannot be used at the start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct FollowError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

/// The content of a file, parsed as a `T`; cheap to clone.
#[derive(Debug)]
pub struct Followed<T> {
    path: Arc<Path>,
    parse: fn(&str) -> Result<T, String>,
    // The content at the last attempt, or why it could not be read.
    tried: Arc<Mutex<Result<String, String>>>,
    current: Arc<watch::Sender<Arc<T>>>,
}

impl<T> Clone for Followed<T> {
    fn clone(&self) -> Self {
        Self {
            path: Arc::clone(&self.path),
            parse: self.parse,
            tried: Arc::clone(&self.tried),
            current: Arc::clone(&self.current),
        }
    }
}

impl<T> Followed<T> {
    /// Reads the file for the first time; `parse` returns what is wrong with a text.
    ///
    /// # Errors
    /// When the file cannot be read or used.
    pub fn load(path: &Path, parse: fn(&str) -> Result<T, String>) -> Result<Self, FollowError> {
        let wrong = |reason| FollowError {
            path: path.to_owned(),
            reason,
        };
        let text = read(path).map_err(wrong)?;
        let first = parse(&text).map_err(wrong)?;
        Ok(Self {
            path: Arc::from(path),
            parse,
            tried: Arc::new(Mutex::new(Ok(text))),
            current: Arc::new(watch::Sender::new(Arc::new(first))),
        })
    }

    /// The content in force.
    #[must_use]
    pub fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.borrow())
    }

    /// Notifies whenever the content in force changes.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Arc<T>> {
        self.current.subscribe()
    }

    /// Reads the file again and puts new valid content in force. Blocks while it reads.
    pub fn reload(&self) -> ReloadOutcome {
        let found = read(&self.path);
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if *tried == found {
            return ReloadOutcome::Unchanged;
        }
        let file = self.path.display();
        let outcome = match found.as_deref().map_err(Clone::clone).and_then(self.parse) {
            Ok(next) => {
                self.current.send_replace(Arc::new(next));
                info!(%file, "reloaded");
                ReloadOutcome::Accepted
            }
            Err(reason) => {
                error!(%file, reason, "the file is invalid; its last valid content stays in force");
                ReloadOutcome::Rejected
            }
        };
        // Remember invalid content too, so that it is logged once.
        *tried = found;
        outcome
    }
}

fn read(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_BYTES {
        return Err(format!("{size} bytes, at most {MAX_BYTES} are read"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Result<u32, String> {
        let number = text.trim().parse();
        number.map_err(|_| "expected a number".to_owned())
    }

    #[test]
    fn the_last_valid_content_stays_and_each_error_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "1").unwrap();
        let followed = Followed::load(&path, number).unwrap();
        let changes = followed.changes();
        let look = |text: Option<&str>| {
            match text {
                Some(text) => fs::write(&path, text).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let looks = [followed.reload(), followed.reload()];
            assert_eq!(
                looks[1],
                ReloadOutcome::Unchanged,
                "{text:?} reported twice"
            );
            (looks[0], *followed.current())
        };

        assert_eq!(look(Some("1")), (ReloadOutcome::Unchanged, 1));
        assert_eq!(look(Some("none")), (ReloadOutcome::Rejected, 1));
        assert_eq!(look(Some("2")), (ReloadOutcome::Accepted, 2));
        assert_eq!(look(None), (ReloadOutcome::Rejected, 2));
        assert_eq!(
            look(Some("2")),
            (ReloadOutcome::Accepted, 2),
            "it is valid again"
        );
        assert!(changes.has_changed().unwrap());
    }

    #[test]
    fn a_file_that_is_invalid_at_the_start_is_an_error_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let missing = Followed::load(&path, number).unwrap_err();
        assert_eq!(missing.path, path);
        fs::write(&path, "x").unwrap();
        let wrong = Followed::load(&path, number).unwrap_err();
        assert!(wrong.to_string().ends_with("file: expected a number"));
    }
}
