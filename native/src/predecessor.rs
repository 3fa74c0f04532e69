//! The file of the module that this one replaces in the same process.
//!
//! Envoy loads each file by itself, and none sees another one's symbols. But it keeps a pointer for all of them, by a key: that to the
//! [`Head`] of the file that was configured last. Its function copies learned state of a plugin, in the form of the snapshot
//! file.
//!
//! ```text
//!  old file: Head <--- Envoy, by KEY <--- new file: mark and version known? ---> copies the state of each plugin that it makes
//! ```

#![expect(unsafe_code, reason = "another file's memory and function are foreign")]

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Arc;

use tidegate_core::SavedStateError;

use crate::abi::{Buffer, log, log_level};
use crate::host::Shared;
use crate::learned::{self, Restored};

/// Where Envoy keeps the head.
pub(crate) const KEY: &[u8] = b"tidegate.learned";
const MARK: [u8; 8] = *b"tidegate";
/// A change of [`Head`], or of what its function does, needs another one.
const VERSION: u32 = 1;
/// Ten thousand upstreams need less than two million bytes.
const MAX_BYTES: usize = 16 << 20;
/// State may grow between two calls.
const ATTEMPTS: usize = 3;

/// Copies learned state of the plugin with this name to the pointer, if there is room for so many bytes. Returns its length; 0 if
/// there is none.
pub(crate) type Copy = extern "C" fn(plugin: Buffer, to: *mut u8, room: usize) -> usize;

/// How every version of a head begins.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Beginning {
    mark: [u8; 8],
    version: u32,
}

/// What one file of the module tells another.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    beginning: Beginning,
    copy: Copy,
}

/// Why learned state is not taken over.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum HandoverError {
    #[error("found something else than a module of Tidegate, expected one")]
    Foreign,
    #[error("found version {found} of the handover, expected {VERSION}")]
    Version { found: u32 },
    #[error("found {found} bytes, expected at most {MAX_BYTES} and one length")]
    Length { found: usize },
    #[error(transparent)]
    State(#[from] SavedStateError),
}

static PREDECESSOR: AtomicPtr<Head> = AtomicPtr::new(ptr::null_mut());

impl Head {
    /// That of a file with this function.
    pub(crate) const fn new(copy: Copy) -> Self {
        let beginning = Beginning {
            mark: MARK,
            version: VERSION,
        };
        Self { beginning, copy }
    }

    /// Reads one of any version.
    ///
    /// # Safety
    /// The pointer is that of a head, which lives as long as the process.
    unsafe fn read(head: *const Self) -> Result<Self, HandoverError> {
        // SAFETY: all versions begin so.
        let Beginning { mark, version } = unsafe { head.cast::<Beginning>().read() };
        match (mark, version) {
            // SAFETY: this version ends so.
            (MARK, VERSION) => Ok(unsafe { head.read() }),
            (MARK, found) => Err(HandoverError::Version { found }),
            _ => Err(HandoverError::Foreign),
        }
    }

    /// The state of a plugin; `None` if there is none.
    fn ask(self, plugin: &str) -> Result<Option<Vec<u8>>, HandoverError> {
        let name = Buffer::of(plugin.as_bytes());
        let mut bytes = Vec::new();
        for _ in 0..ATTEMPTS {
            let length = (self.copy)(name, bytes.as_mut_ptr(), bytes.len());
            if length == 0 {
                return Ok(None);
            }
            if length > MAX_BYTES {
                return Err(HandoverError::Length { found: length });
            }
            if length <= bytes.len() {
                bytes.truncate(length);
                return Ok(Some(bytes));
            }
            bytes.resize(length, 0);
        }
        Err(HandoverError::Length { found: bytes.len() })
    }
}

/// Remembers a file that was configured before this one.
///
/// # Safety
/// The pointer is that of a head, which lives as long as the process.
pub(crate) unsafe fn remember(head: *mut Head) {
    PREDECESSOR.store(head, Ordering::Release);
}

/// Takes over the state of a plugin that is about to begin, from the file before this one. Returns whether there was any.
pub(crate) fn take_over(plugin: &str, shared: &Arc<Shared>) -> bool {
    let head = PREDECESSOR.load(Ordering::Acquire);
    if head.is_null() {
        return false;
    }
    // SAFETY: it is a head that was remembered.
    let found = unsafe { Head::read(head) };
    match found.and_then(|head| take_over_from(head, plugin, shared)) {
        Ok(Some(Restored { upstreams, .. })) => {
            log(
                log_level::INFO,
                &format!(
                    "tidegate: filter {plugin:?}: starting from learned state of the module that was loaded before, upstreams={upstreams}"
                ),
            );
            true
        }
        Ok(None) => false,
        Err(error) => {
            log(
                log_level::WARN,
                &format!(
                    "tidegate: filter {plugin:?}: nothing taken over from the module that was loaded before: {error}"
                ),
            );
            false
        }
    }
}

fn take_over_from(
    head: Head,
    plugin: &str,
    shared: &Arc<Shared>,
) -> Result<Option<Restored>, HandoverError> {
    match head.ask(plugin)? {
        Some(bytes) => Ok(Some(learned::restore(&bytes, plugin, shared)?)),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Directive, Directives, SavedState};
    use tidegate_worker::exchange::keys::Keys;

    use super::*;

    /// What a file before this one has of the plugin `web`.
    fn state() -> Vec<u8> {
        let now = learned::clocks(&Arc::default()).unwrap();
        let nothing: [Directive; 0] = [];
        let learned = Directives::new(1, now.monotonic, nothing).encode();
        SavedState::encode("web", now, &learned)
    }

    /// Copies the bytes as a module does.
    fn give(bytes: &[u8], to: *mut u8, room: usize) -> usize {
        if bytes.len() <= room {
            // SAFETY: there is room for them.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
        bytes.len()
    }

    extern "C" fn whole(plugin: Buffer, to: *mut u8, room: usize) -> usize {
        // SAFETY: the name of the plugin.
        match unsafe { plugin.bytes() } {
            b"web" => give(&state(), to, room),
            _ => 0,
        }
    }

    extern "C" fn damaged(_: Buffer, to: *mut u8, room: usize) -> usize {
        let mut bytes = state();
        *bytes.last_mut().unwrap() ^= 1;
        give(&bytes, to, room)
    }

    extern "C" fn growing(_: Buffer, _: *mut u8, room: usize) -> usize {
        room + 1
    }

    extern "C" fn endless(_: Buffer, _: *mut u8, _: usize) -> usize {
        usize::MAX
    }

    fn taken(copy: Copy, plugin: &str) -> Result<bool, HandoverError> {
        let shared = Arc::default();
        let taken = take_over_from(Head::new(copy), plugin, &shared)?;
        let value = shared.values.get(Keys::new(plugin).learned());
        assert_eq!(value.is_some(), taken.is_some());
        Ok(taken.is_some())
    }

    #[test]
    fn the_state_of_a_plugin_is_taken_over_whole_or_not_at_all() {
        assert_eq!(taken(whole, "web"), Ok(true));
        assert_eq!(taken(whole, "other"), Ok(false));
        let damage = Err(HandoverError::State(SavedStateError::Damaged));
        assert_eq!(taken(damaged, "web"), damage);
        let found = ATTEMPTS;
        assert_eq!(taken(growing, "web"), Err(HandoverError::Length { found }));
        let found = usize::MAX;
        assert_eq!(taken(endless, "web"), Err(HandoverError::Length { found }));
    }

    #[test]
    fn a_head_of_another_version_or_another_module_is_refused() {
        let read = |head: &Head| {
            // SAFETY: it is a head.
            unsafe { Head::read(head) }.map(|head| head.beginning.version)
        };
        let head = Head::new(whole);
        assert_eq!(read(&head), Ok(VERSION));
        let mut newer = head;
        newer.beginning.version = 7;
        assert_eq!(read(&newer), Err(HandoverError::Version { found: 7 }));
        let mut other = head;
        other.beginning.mark = *b"someone\0";
        assert_eq!(read(&other), Err(HandoverError::Foreign));
    }
}
