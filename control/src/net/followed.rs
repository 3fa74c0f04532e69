//! A file that is read again while the service runs: what was last good in it holds.
//!
//! The file is looked at every few seconds, because links, renames and volumes each tell of a change in
//! another way or not at all. What cannot be used is said once, and the last good state stays in force.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tracing::{error, info};

/// Largest file of this kind that is read, in bytes: some ten thousand names.
const MAX_BYTES: u64 = 1 << 20;

/// What a look at a file came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It says what it said at the last look.
    Same,
    /// What stands there now is in force.
    Taken,
    /// What stands there now cannot be used; what was last good stays in force.
    Refused,
}

/// Why a file cannot be used at the start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct FollowError {
    /// Which file.
    pub path: PathBuf,
    /// Why not.
    pub reason: String,
}

/// The contents of a file, made into a `T`; cheap to clone.
#[derive(Debug)]
pub struct Followed<T> {
    path: Arc<Path>,
    parse: fn(&str) -> Result<T, String>,
    // What stood there at the last look, or why nothing could be read.
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
    /// Reads the file for the first time; `parse` says what is wrong with a text.
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

    /// What is in force.
    #[must_use]
    pub fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.borrow())
    }

    /// Tells whenever something else is in force.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Arc<T>> {
        self.current.subscribe()
    }

    /// Takes over what is new in the file. Blocks while it reads.
    pub fn reload(&self) -> Look {
        let found = read(&self.path);
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if *tried == found {
            return Look::Same;
        }
        let file = self.path.display();
        let look = match found.as_deref().map_err(Clone::clone).and_then(self.parse) {
            Ok(next) => {
                self.current.send_replace(Arc::new(next));
                info!(%file, "reloaded");
                Look::Taken
            }
            Err(reason) => {
                error!(%file, reason, "the file is invalid; its last valid content stays in force");
                Look::Refused
            }
        };
        // Bad ones, too, so that they are complained of once.
        *tried = found;
        look
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
    fn the_last_good_state_stays_and_each_fault_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "1").unwrap();
        let followed = Followed::load(&path, number).unwrap();
        let told = followed.changes();
        let look = |text: Option<&str>| {
            match text {
                Some(text) => fs::write(&path, text).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let looks = [followed.reload(), followed.reload()];
            assert_eq!(looks[1], Look::Same, "{text:?} told twice");
            (looks[0], *followed.current())
        };

        assert_eq!(look(Some("1")), (Look::Same, 1));
        assert_eq!(look(Some("none")), (Look::Refused, 1));
        assert_eq!(look(Some("2")), (Look::Taken, 2));
        assert_eq!(look(None), (Look::Refused, 2));
        assert_eq!(look(Some("2")), (Look::Taken, 2), "it can be used again");
        assert!(told.has_changed().unwrap());
    }

    #[test]
    fn what_cannot_be_used_at_the_start_is_an_error_with_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let missing = Followed::load(&path, number).unwrap_err();
        assert_eq!(missing.path, path);
        fs::write(&path, "x").unwrap();
        let wrong = Followed::load(&path, number).unwrap_err();
        assert!(wrong.to_string().ends_with("file: expected a number"));
    }
}
