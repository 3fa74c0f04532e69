//! The snapshot file: learned state of a plugin, kept for the next start of the process.
//!
//! Each plugin has a file of its own, named by the hash of its name. So no filter loses its file to one that Envoy
//! configures sooner. The file is read before the plugin's first worker is made, and only then.
//!
//! ```text
//!  thread of rounds:  is it time? ---> thread of one write:  bytes ... file beside it ... rename ---> end
//! ```
//!
//! A disk may hang for seconds, and decisions must not wait for it. So each write has a thread, one at a time. A file is
//! replaced as a whole or not at all: a reader finds the old one or the new one. Nothing is synced, because a crash of the whole
//! machine may cost the file: its checksum tells, and the module starts from nothing.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{process, thread};

use tidegate_core::config::SnapshotOptions;
use tidegate_core::{SavedStateError, UpstreamKey};

use crate::abi::{log, log_level};
use crate::guard;
use crate::host::Shared;
use crate::learned::{self, Restored};

/// No snapshot is longer: ten thousand upstreams need less than two million bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The snapshot file of one plugin.
#[derive(Debug)]
pub(crate) struct SnapshotFile {
    plugin: String,
    shared: Arc<Shared>,
    state: Mutex<State>,
    is_writing: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// `None`: nothing is written.
    schedule: Option<Schedule>,
    /// The version of the learned state that the file has.
    version: Option<u32>,
    /// What went wrong with the last write; it is logged once.
    complaint: Option<String>,
}

#[derive(Debug)]
struct Schedule {
    options: SnapshotOptions,
    next: Instant,
}

/// A snapshot that cannot be read.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("found {found:?}, expected a file that Envoy may read", found = .0.to_string())]
    Io(#[from] io::Error),
    #[error("found no regular file, expected a file")]
    NoFile,
    #[error("found {0} bytes, expected at most {MAX_BYTES}")]
    TooLong(u64),
    #[error(transparent)]
    State(#[from] SavedStateError),
}

impl SnapshotFile {
    /// The file of a plugin that is about to begin. It is not read yet.
    pub(crate) fn new(
        plugin: &str,
        shared: &Arc<Shared>,
        options: Option<&SnapshotOptions>,
    ) -> Arc<Self> {
        let file = Self {
            plugin: plugin.to_owned(),
            shared: Arc::clone(shared),
            state: Mutex::default(),
            is_writing: AtomicBool::new(false),
        };
        file.follow(options);
        Arc::new(file)
    }

    /// Follows a configuration, from now on.
    pub(crate) fn follow(&self, options: Option<&SnapshotOptions>) {
        let mut state = self.state();
        if state.schedule.as_ref().map(|it| &it.options) != options {
            *state = State {
                schedule: options.map(|options| Schedule {
                    options: options.clone(),
                    next: Instant::now() + options.interval(),
                }),
                ..State::default()
            };
        }
    }

    /// Begins to write, if it is time.
    pub(crate) fn write_if_due(self: &Arc<Self>) {
        let Some(path) = self.due() else {
            return;
        };
        let (file, to) = (Arc::clone(self), path.clone());
        let write = move || {
            guard::call("snapshot", (), || file.write(&to));
            file.is_writing.store(false, Ordering::Release);
        };
        let thread = thread::Builder::new().name("tidegate-file".to_owned());
        if let Err(error) = thread.spawn(write) {
            self.is_writing.store(false, Ordering::Release);
            self.tell(&path, Some(format!("no thread: {error}")));
        }
    }

    /// The path to write to now, if it is time and no write is under way.
    fn due(&self) -> Option<PathBuf> {
        let mut state = self.state();
        let schedule = state.schedule.as_mut()?;
        let now = Instant::now();
        if now < schedule.next {
            return None;
        }
        schedule.next = now + schedule.options.interval();
        let path = path(&schedule.options, &self.plugin);
        drop(state);
        if self.is_writing.swap(true, Ordering::Acquire) {
            self.tell(&path, Some("a write that does not end".to_owned()));
            return None;
        }
        Some(path)
    }

    /// Writes learned state, unless the file has it already.
    fn write(&self, path: &Path) {
        let version = learned::version(&self.plugin, &self.shared);
        if self.state().version == version {
            return;
        }
        let Some((bytes, version)) = learned::save(&self.plugin, &self.shared) else {
            return;
        };
        // Several processes write in a hot restart, and several files of the module in one process.
        let owner = format!("{}-{:x}.new", process::id(), ptr::from_ref(self).addr());
        let written = replace(path, &path.with_extension(owner), &bytes);
        if written.is_ok() {
            self.state().version = Some(version);
        }
        self.tell(path, written.err().map(|error| error.to_string()));
    }

    /// Reads the file, if the configuration has one, so that workers that are made afterwards start from it. Anything that is wrong
    /// is logged, and they start from nothing.
    pub(crate) fn restore(&self) {
        let options = self.state().schedule.as_ref().map(|it| it.options.clone());
        let Some(options) = options else {
            return;
        };
        let path = path(&options, &self.plugin);
        let restored =
            read(&path).and_then(|bytes| Ok(learned::restore(&bytes, &self.plugin, &self.shared)?));
        match restored {
            Ok(Restored { upstreams, age }) => {
                self.state().version = learned::version(&self.plugin, &self.shared);
                log(
                    log_level::INFO,
                    &format!(
                        "tidegate: snapshot {path:?}: starting from learned state of {} s ago, upstreams={upstreams}",
                        age.as_secs()
                    ),
                );
            }
            Err(error) => tell_why_not(&options, &path, &error),
        }
    }

    /// Logs what is wrong with writes, once until it changes.
    fn tell(&self, path: &Path, complaint: Option<String>) {
        let mut state = self.state();
        if state.complaint == complaint {
            return;
        }
        match &complaint {
            Some(found) => log(
                log_level::WARN,
                &format!(
                    "tidegate: snapshot not written to {path:?}: found {found:?}, expected a directory that Envoy may write to; it is tried again, and requests are not affected"
                ),
            ),
            None => log(
                log_level::INFO,
                &format!("tidegate: snapshot written to {path:?} again"),
            ),
        }
        state.complaint = complaint;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A first start has no file yet, which is no fault.
fn tell_why_not(options: &SnapshotOptions, path: &Path, error: &ReadError) {
    let is_missing =
        matches!(error, ReadError::Io(error) if error.kind() == io::ErrorKind::NotFound);
    let (level, reason) = if !is_missing {
        (log_level::WARN, error.to_string())
    } else if Path::new(options.directory()).is_dir() {
        (log_level::INFO, "found none yet".to_owned())
    } else {
        let reason = "found no such directory, expected one that Envoy may write to";
        (log_level::WARN, reason.to_owned())
    };
    log(
        level,
        &format!("tidegate: snapshot {path:?}: {reason}: starting from nothing"),
    );
}

fn path(options: &SnapshotOptions, plugin: &str) -> PathBuf {
    let hash = UpstreamKey::hash(plugin, None);
    Path::new(options.directory()).join(format!("tidegate-{hash:016x}.snapshot"))
}

fn read(path: &Path) -> Result<Vec<u8>, ReadError> {
    // Without the flag, to open a pipe waits for a writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(ReadError::NoFile);
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MAX_BYTES => Ok(bytes),
        _ => Err(ReadError::TooLong(about.len())),
    }
}

/// Writes a file beside another, and puts it in its place.
fn replace(path: &Path, beside: &Path, bytes: &[u8]) -> io::Result<()> {
    let written = create(beside)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(beside, path));
    if written.is_err() {
        // What went wrong is told already.
        let _ = fs::remove_file(beside);
    }
    written
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

#[cfg(test)]
mod tests;
