//! Hooks that do nothing here. Envoy refuses a module without them.

use core::ffi::c_void;

use crate::abi::{Buffer, EnvoyPtr};

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
