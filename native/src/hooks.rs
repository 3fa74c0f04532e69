//! What Envoy calls. All names and signatures are those of its ABI (see `abi`).

#![expect(
    unsafe_code,
    reason = "exports have the names that Envoy looks for, and get pointers"
)]

mod configuration;
mod request;
mod unused;

use core::ffi::c_char;

use crate::abi;
#[cfg(test)]
pub(crate) use {configuration::*, request::*, unused::*};

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
    abi::VERSION.as_ptr()
}
