//! Hooks of one request, from its headers to its end.

use core::ffi::c_void;
use core::ptr;

use tidegate_core::classify::Length;
use tidegate_worker::stream::{Next, Stream};

use crate::abi::{EnvoyPtr, status};
use crate::registry::FilterConfig;
use crate::stream::NativeStream;
use crate::{guard, report_headers};

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_new(
    config: *const c_void,
    _envoy: EnvoyPtr,
) -> *const c_void {
    // A null pointer would be answered with 500. What is not a stream passes by in every hook.
    let nothing = ptr::dangling::<NativeStream>().cast();
    guard::call("new", nothing, || {
        // SAFETY: Envoy gives what `config_new` returned and was not destroyed.
        match unsafe { config.cast::<FilterConfig>().as_ref() } {
            Some(config) => NativeStream::create(&config.plugin),
            None => nothing,
        }
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_destroy(filter: *const c_void) {
    guard::call("destroy", (), || {
        if is_stream(filter) {
            // SAFETY: Envoy gives back what `new` returned, once.
            unsafe { NativeStream::destroy(filter) };
        }
    });
}

/// Whether `new` made a stream for it.
fn is_stream(filter: *const c_void) -> bool {
    filter != ptr::dangling::<NativeStream>().cast()
}

/// Runs a hook of a request that was admitted.
fn on<T>(
    name: &'static str,
    filter: *const c_void,
    otherwise: T,
    hook: impl FnOnce(&mut Stream<crate::plugin::WorkerAccess>) -> T,
) -> T {
    if !is_stream(filter) {
        return otherwise;
    }
    // SAFETY: Envoy gives what `new` returned and was not destroyed, on the stream's thread.
    guard::call(name, None, || unsafe { NativeStream::on(filter, hook) }).unwrap_or(otherwise)
}

const fn length(is_end: bool) -> Length {
    if is_end {
        Length::HeadersOnly
    } else {
        Length::More
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_request_headers(
    envoy: EnvoyPtr,
    filter: *const c_void,
    end: bool,
) -> u32 {
    if guard::is_off() || !is_stream(filter) {
        return status::CONTINUE;
    }
    #[cfg(feature = "test-hooks")]
    crate::crash::look_for_wish(envoy);
    let next = guard::call("request_headers", None, || {
        // SAFETY: Envoy gives what `new` returned and was not destroyed, on the stream's thread.
        unsafe {
            NativeStream::begin(filter, envoy, |stream| {
                stream.on_request_headers(length(end))
            })
        }
    });
    match next {
        Some(Next::Answered) => status::STOP,
        Some(Next::Continue) | None => status::CONTINUE,
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_request_body(
    _envoy: EnvoyPtr,
    filter: *const c_void,
    end: bool,
) -> u32 {
    if end {
        on("request_body", filter, (), Stream::on_request_end);
    }
    status::CONTINUE
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_request_trailers(
    _envoy: EnvoyPtr,
    filter: *const c_void,
) -> u32 {
    on("request_trailers", filter, (), Stream::on_request_end);
    status::CONTINUE
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_response_headers(
    envoy: EnvoyPtr,
    filter: *const c_void,
    end: bool,
) -> u32 {
    on("response_headers", filter, (), |stream| {
        report_headers::on_response_headers(stream, envoy, length(end));
    });
    status::CONTINUE
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_response_body(
    _envoy: EnvoyPtr,
    filter: *const c_void,
    end: bool,
) -> u32 {
    on("response_body", filter, (), |stream| {
        stream.on_response_body();
        if end {
            stream.on_response_end();
        }
    });
    status::CONTINUE
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_response_trailers(
    envoy: EnvoyPtr,
    filter: *const c_void,
) -> u32 {
    on("response_trailers", filter, (), |stream| {
        report_headers::on_response_trailers(stream, envoy);
    });
    status::CONTINUE
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_stream_complete(
    _envoy: EnvoyPtr,
    filter: *const c_void,
) {
    on("stream_complete", filter, (), Stream::on_end);
}
