//! A test makes a hook panic with a header.

use core::ptr;

use crate::abi::{self, Buffer, EnvoyPtr, header_type};

/// Panics if the request asks for it.
#[expect(clippy::panic, reason = "that is what a test asks for")]
#[expect(unsafe_code, reason = "host functions are foreign functions")]
pub(crate) fn panic_if_asked(envoy: EnvoyPtr) {
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
    assert!(
        !found || unsafe { value.bytes() } != b"panic",
        "a test asked for it"
    );
}
