//! What this file of the module leaves for one that replaces it in the same process (see [`predecessor`](crate::predecessor)).

#![expect(
    unsafe_code,
    reason = "Envoy keeps a pointer, and another file calls a function"
)]

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr;
use std::sync::Once;

use crate::abi::{Buffer, NewerCallbacks, log, log_level};
use crate::predecessor::{self, Head, KEY};
use crate::{guard, learned, registry};

static HEAD: Head = Head::new(copy);

/// Another file asks for the state of a plugin.
extern "C" fn copy(plugin: Buffer, to: *mut u8, room: usize) -> usize {
    guard::call("handover", 0, || {
        // SAFETY: the other file gives the name for the time of the call.
        let name = String::from_utf8_lossy(unsafe { plugin.bytes() });
        let found = registry::find(&name);
        let saved = found.and_then(|plugin| learned::save(&name, plugin.shared()));
        let Some((bytes, _)) = saved else {
            return 0;
        };
        if bytes.len() <= room {
            // SAFETY: the other file has room for so many bytes there.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
        bytes.len()
    })
}

/// Before a configuration is made: remembers which file was configured before this one, and takes its place.
pub(crate) fn take_place() {
    let callbacks = NewerCallbacks::get();
    let (Some(get), Some(register)) = (callbacks.get_shared_data, callbacks.register_shared_data)
    else {
        return;
    };
    let own = ptr::from_ref(&HEAD).cast_mut();
    let mut found = ptr::null_mut::<c_void>();
    // SAFETY: Envoy reads the key and writes the pointer during the call.
    let is_there = unsafe { get(Buffer::of(KEY), &raw mut found) };
    if is_there && found.cast() == own {
        return;
    }
    if is_there && !found.is_null() {
        // SAFETY: only modules of Tidegate use the key, and they stay in memory.
        unsafe { predecessor::remember(found.cast()) };
    }
    if stays_in_memory() {
        // SAFETY: a static of a file that stays in memory.
        unsafe { register(Buffer::of(KEY), own.cast()) };
    }
}

/// Keeps this file in memory, even if Envoy closes it (`do_not_close: false`): a pointer to it remains. Returns whether it does.
fn stays_in_memory() -> bool {
    static TOLD: Once = Once::new();
    let mut about = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is that of a static, and `about` a local.
    let found = unsafe { libc::dladdr(ptr::from_ref(&HEAD).cast(), about.as_mut_ptr()) };
    // SAFETY: all zeros are a value of it, and more was written if it was found.
    let name = unsafe { about.assume_init() }.dli_fname;
    let stays = found != 0 && !name.is_null() && {
        let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the name is that of a file that is loaded. Nothing is loaded again, and nothing closes the handle.
        !unsafe { libc::dlopen(name, flags) }.is_null()
    };
    if !stays {
        TOLD.call_once(|| {
            log(
                log_level::WARN,
                "tidegate: found no way to keep the module in memory, expected dlopen to find it: a newer file will start from nothing",
            );
        });
    }
    stays
}
