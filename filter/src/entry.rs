//! The module's exports.
//!
//! Envoy enters the VM through the functions below, by number of context; they call [`crate::vm`]. They are the filter's
//! own, because the SDK lacks response code details and panics on statuses that it does not know
//! (`docs/decisions/0005-own-exports.md`). The rules of the ABI that matter here:
//!
//! - `proxy_on_done` and `proxy_on_delete` are not exported, so that they cost nothing: a stream ends with
//!   `proxy_on_log`.
//! - What the proxy returns in bytes lies in memory it got from `proxy_on_memory_allocate`; `host.rs` owns it again.

#![expect(
    unsafe_code,
    reason = "exports have the names that the proxy looks for, and the C library has constructors"
)]

use tidegate_core::classify::Length;

use crate::host::{self, EnvoyHost};
use crate::vm::{SharedPlugin, Vm};
use tidegate_worker::api::{Host, LogLevel};
use tidegate_worker::stream::{Next, Stream};

/// The answer to a callback: continue.
const CONTINUE: u32 = 0;
/// Hold the request: it has been answered.
const PAUSE: u32 = 1;

thread_local! {
    static VM: Vm<EnvoyHost> = Vm::default();
}

fn on_stream<T>(
    id: u32,
    call: impl FnOnce(&mut Stream<SharedPlugin<EnvoyHost>>) -> T,
) -> Option<T> {
    VM.with(|vm| vm.on_stream(id, call))
}

unsafe extern "C" {
    fn __wasm_call_ctors();
}

#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    // SAFETY: the linker makes it, and it must be called once before all else, which is what this function is for.
    unsafe { __wasm_call_ctors() };
    std::panic::set_hook(Box::new(|panic| {
        // The VM is lost either way.
        let _ = EnvoyHost.log(LogLevel::Error, &format!("tidegate: {panic}"));
    }));
}

#[unsafe(no_mangle)]
extern "C" fn proxy_abi_version_0_2_1() {}

/// Memory for what the proxy returns, which `host.rs` takes back.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    host::allocate(size)
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_context_create(id: u32, root: u32) {
    VM.with(|vm| vm.create(id, root));
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_configure(root: u32, _size: usize) -> bool {
    VM.with(|vm| vm.configure(&EnvoyHost, root))
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_tick(root: u32) {
    VM.with(|vm| vm.tick(root));
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_headers(id: u32, _count: u32, end: u32) -> u32 {
    #[cfg(feature = "test-hooks")]
    crash_if_asked();
    match on_stream(id, |stream| stream.on_request_headers(length(end))) {
        Some(Next::Answered) => PAUSE,
        Some(Next::Continue) | None => CONTINUE,
    }
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_body(id: u32, _size: u32, end: u32) -> u32 {
    if end != 0 {
        on_stream(id, Stream::on_request_end);
    }
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_trailers(id: u32, _count: u32) -> u32 {
    on_stream(id, Stream::on_request_end);
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_headers(id: u32, _count: u32, end: u32) -> u32 {
    on_stream(id, |stream| stream.on_response_headers(length(end)));
    CONTINUE
}

const fn length(end: u32) -> Length {
    if end == 0 {
        Length::More
    } else {
        Length::HeadersOnly
    }
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_body(id: u32, _size: u32, end: u32) -> u32 {
    on_stream(id, |stream| {
        stream.on_response_body();
        if end != 0 {
            stream.on_response_end();
        }
    });
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_trailers(id: u32, _count: u32) -> u32 {
    on_stream(id, Stream::on_response_trailers);
    CONTINUE
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_log(id: u32) {
    VM.with(|vm| vm.end(id));
}

/// A test makes the VM trap with a header.
#[cfg(feature = "test-hooks")]
fn crash_if_asked() {
    let asked = EnvoyHost.header(tidegate_worker::api::Headers::Request, "x-tidegate-test");
    if asked.ok().flatten().as_deref() == Some(b"panic") {
        std::process::abort();
    }
}
