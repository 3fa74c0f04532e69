//! A test makes a hook, or another place with a name, panic: the next one on the same thread, once.

use core::cell::Cell;
#[cfg(feature = "test-hooks")]
use core::ptr;

#[cfg(feature = "test-hooks")]
use crate::abi::{self, Buffer, EnvoyPtr, header_type};

thread_local! {
    static NEXT: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// The next hook with this name on this thread panics.
pub(crate) fn ask(hook: &'static str) {
    NEXT.set(Some(hook));
}

/// Panics in the hook that a test has asked for.
#[expect(clippy::panic, reason = "that is what a test asks for")]
pub(crate) fn panic_if_asked(hook: &str) {
    if NEXT.get() == Some(hook) {
        NEXT.set(None);
        panic!("a test asked for it");
    }
}

/// Takes the wish of a request whose header says so.
#[cfg(feature = "test-hooks")]
#[expect(unsafe_code, reason = "host functions are foreign functions")]
pub(crate) fn look_for_wish(envoy: EnvoyPtr) {
    let mut value = Buffer::EMPTY;
    // SAFETY: the stream is that of the hook under way, and `value` is a local.
    let found = unsafe {
        abi::envoy_dynamic_module_callback_http_get_header(
            envoy,
            header_type::REQUEST,
            Buffer::of(b"x-tidegate-test"),
            &raw mut value,
            0,
            ptr::null_mut(),
        )
    };
    // SAFETY: Envoy gave the buffer in this hook.
    if found && unsafe { value.bytes() } == b"panic" {
        ask("request_headers");
    }
}
