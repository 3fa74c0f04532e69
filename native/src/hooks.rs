//! What Envoy calls. All names and signatures are those of its ABI (see `abi`); hooks that a shedder does not need do
//! nothing, but Envoy refuses a module without them.

#![expect(
    unsafe_code,
    reason = "exports have the names that Envoy looks for, and get pointers"
)]

use core::ffi::{c_char, c_void};
use core::ptr;
use std::sync::{Arc, Once};

use tidegate_core::classify::Length;
use tidegate_core::config::Config;
use tidegate_worker::stream::{Next, Stream};

use crate::abi::{self, Buffer, EnvoyPtr, NewerCallbacks, log, log_level, status};
use crate::plugin::NamedConfig;
use crate::registry::{self, FilterConfig, RouteConfig};
use crate::stream::NativeStream;
use crate::{guard, report_headers, successor, ticker};

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
    abi::VERSION.as_ptr()
}

/// Reads a configuration; what is wrong with it goes to the log, line by line.
///
/// # Safety
/// Envoy gave both buffers, for the hook under way.
unsafe fn read(name: Buffer, text: Buffer) -> Option<(String, NamedConfig)> {
    // SAFETY: the caller's.
    let (name, text) = unsafe { (name.bytes(), text.bytes()) };
    match Config::native_from_json(text) {
        Ok((config, options, digest)) => {
            let name = String::from_utf8_lossy(name).into_owned();
            let config = NamedConfig {
                config,
                options,
                digest,
            };
            Some((name, config))
        }
        Err(errors) => {
            for line in errors.to_string().lines() {
                log(
                    log_level::ERROR,
                    &format!("tidegate: configuration rejected: {line}"),
                );
            }
            None
        }
    }
}

/// Says once what cannot be done with this release of Envoy. All else works, and traffic passes.
fn tell_what_envoy_lacks() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        if let Some(lacking) = NewerCallbacks::get().lacks() {
            log(
                log_level::WARN,
                &format!(
                    "tidegate: this Envoy's dynamic modules lack {lacking}; the module was written for ABI {}",
                    abi::VERSION.to_string_lossy()
                ),
            );
        }
    });
}

/// How many workers Envoy has.
fn workers() -> usize {
    // SAFETY: configurations are made on the main thread, where this may be asked.
    let count = unsafe { abi::envoy_dynamic_module_callback_get_concurrency() };
    usize::try_from(count).unwrap_or(1).max(1)
}

/// Whether Envoy only validates its configuration.
fn is_validation() -> bool {
    NewerCallbacks::get()
        .is_validation_mode
        // SAFETY: as in `workers`.
        .is_some_and(|ask| unsafe { ask() })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_config_new(
    envoy: EnvoyPtr,
    name: Buffer,
    config: Buffer,
) -> *const c_void {
    guard::call("config_new", ptr::null(), || {
        // SAFETY: both are Envoy's, for this hook.
        let Some((name, config)) = (unsafe { read(name, config) }) else {
            return ptr::null();
        };
        tell_what_envoy_lacks();
        successor::take_place();
        let filter = registry::configure(&name, config, workers(), envoy);
        if !is_validation() {
            ticker::start();
        }
        Arc::into_raw(filter).cast()
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_config_destroy(config: *const c_void) {
    guard::call("config_destroy", (), || {
        if !config.is_null() {
            // SAFETY: Envoy gives back what `config_new` returned, once.
            let config = unsafe { Arc::from_raw(config.cast::<FilterConfig>()) };
            registry::forget(&config);
        }
    });
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_config_scheduled(
    envoy: EnvoyPtr,
    config: *const c_void,
    _event: u64,
) {
    guard::call("config_scheduled", (), || {
        // SAFETY: Envoy gives what `config_new` returned and was not destroyed.
        if let Some(config) = unsafe { config.cast::<FilterConfig>().as_ref() } {
            registry::publish(config, envoy);
        }
    });
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_per_route_config_new(
    name: Buffer,
    config: Buffer,
) -> *const c_void {
    guard::call("per_route_config_new", ptr::null(), || {
        // SAFETY: both are Envoy's, for this hook.
        let Some((name, config)) = (unsafe { read(name, config) }) else {
            return ptr::null();
        };
        if config.options.snapshot().is_some() {
            log(
                log_level::ERROR,
                "tidegate: configuration rejected: native.snapshot: found an object, expected nothing here: the state of a route ends with its configuration",
            );
            return ptr::null();
        }
        successor::take_place();
        let route = registry::configure_route(&name, config, workers());
        Arc::into_raw(route).cast()
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_per_route_config_destroy(
    config: *const c_void,
) {
    guard::call("per_route_config_destroy", (), || {
        if !config.is_null() {
            // SAFETY: Envoy gives back what `per_route_config_new` returned, once.
            let config = unsafe { Arc::from_raw(config.cast::<RouteConfig>()) };
            registry::forget_route(&config);
        }
    });
}

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
    name: &str,
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

// What follows does nothing. Envoy has no use for a module without it.

/// The local reply is sent as it is: 0.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_local_reply(
    _envoy: EnvoyPtr,
    _filter: *const c_void,
    _code: u32,
    _details: Buffer,
    _reset: bool,
) -> u32 {
    0
}

#[unsafe(no_mangle)]
pub(crate) const extern "C" fn envoy_dynamic_module_on_http_filter_scheduled(
    _envoy: EnvoyPtr,
    _filter: *const c_void,
    _event: u64,
) {
}

#[unsafe(no_mangle)]
pub(crate) const extern "C" fn envoy_dynamic_module_on_http_filter_http_callout_done(
    _envoy: EnvoyPtr,
    _filter: *const c_void,
    _callout: u64,
    _result: u32,
    _headers: *const c_void,
    _header_count: usize,
    _body: *const c_void,
    _body_count: usize,
) {
}

#[unsafe(no_mangle)]
pub(crate) const extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_headers(
    _envoy: EnvoyPtr,
    _filter: *const c_void,
    _stream: u64,
    _headers: *const c_void,
    _header_count: usize,
    _end: bool,
) {
}

#[unsafe(no_mangle)]
pub(crate) const extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_data(
    _envoy: EnvoyPtr,
    _filter: *const c_void,
    _stream: u64,
    _data: *const c_void,
    _count: usize,
    _end: bool,
) {
}

#[unsafe(no_mangle)]
pub(crate) const extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_trailers(
    _envoy: EnvoyPtr,
    _filter: *const c_void,
    _stream: u64,
    _trailers: *const c_void,
    _trailer_count: usize,
) {
}

#[unsafe(no_mangle)]
pub(crate) const extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_complete(
    _envoy: EnvoyPtr,
    _filter: *const c_void,
    _stream: u64,
) {
}

#[unsafe(no_mangle)]
pub(crate) const extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_reset(
    _envoy: EnvoyPtr,
    _filter: *const c_void,
    _stream: u64,
    _reason: u32,
) {
}

#[unsafe(no_mangle)]
pub(crate) const extern "C" fn envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(
    _envoy: EnvoyPtr,
    _filter: *const c_void,
) {
}

#[unsafe(no_mangle)]
pub(crate) const extern "C" fn envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(
    _envoy: EnvoyPtr,
    _filter: *const c_void,
) {
}
