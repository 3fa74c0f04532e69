//! The calls into Envoy: the only file that knows proxy-wasm's imports, and the only one with unsafe code.
//!
//! Declared by hand rather than taken from the SDK, whose wrappers panic on unexpected answers and pass no
//! response code details. Signatures are those of the proxy-wasm ABI 0.2.1
//! (<https://github.com/proxy-wasm/spec/tree/main/abi-versions/v0.2.1>); the clock is WASI's, because the ABI's own
//! is the wall clock, which jumps.
//!
//! Memory: the host returns bytes in a buffer that it obtained from `proxy_on_memory_allocate`, which is [`allocate`]: it
//! hands out boxed slices of exactly the size asked for; [`take`] owns it again.

#![expect(
    unsafe_code,
    reason = "host functions are foreign functions; no other file calls any"
)]

use core::ptr;
use core::time::Duration;
use std::borrow::Cow;
use std::sync::Arc;

use tidegate_core::Instant;
use tidegate_core::reply::LocalReply;

use tidegate_worker::api::{
    Expect, Headers, Host, HostError, LogLevel, MetricId, MetricKind, SharedValue, WriteResult,
};
use tidegate_worker::pairs;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_log(level: u32, text: *const u8, len: usize) -> u32;
    fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
    fn proxy_get_buffer_bytes(
        buffer: u32,
        start: usize,
        max: usize,
        data: *mut *mut u8,
        len: *mut usize,
    ) -> u32;
    fn proxy_get_header_map_value(
        map: u32,
        name: *const u8,
        name_len: usize,
        data: *mut *mut u8,
        len: *mut usize,
    ) -> u32;
    fn proxy_get_header_map_pairs(map: u32, data: *mut *mut u8, len: *mut usize) -> u32;
    fn proxy_get_property(
        path: *const u8,
        path_len: usize,
        data: *mut *mut u8,
        len: *mut usize,
    ) -> u32;
    fn proxy_get_shared_data(
        key: *const u8,
        key_len: usize,
        data: *mut *mut u8,
        len: *mut usize,
        cas: *mut u32,
    ) -> u32;
    fn proxy_set_shared_data(
        key: *const u8,
        key_len: usize,
        value: *const u8,
        value_len: usize,
        cas: u32,
    ) -> u32;
    fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_len: usize,
        body: *const u8,
        body_len: usize,
        headers: *const u8,
        headers_len: usize,
        grpc_status: i32,
    ) -> u32;
    fn proxy_define_metric(kind: u32, name: *const u8, name_len: usize, id: *mut u32) -> u32;
    fn proxy_increment_metric(id: u32, by: i64) -> u32;
    fn proxy_record_metric(id: u32, value: u64) -> u32;
    fn proxy_get_metric(id: u32, value: *mut u64) -> u32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    fn clock_time_get(clock: u32, precision: u64, time: *mut u64) -> u32;
}

const OK: u32 = 0;
const NOT_FOUND: u32 = 1;
const CAS_MISMATCH: u32 = 8;
/// WASI's wall clock, and the one that never jumps.
const REALTIME: u32 = 0;
const MONOTONIC: u32 = 1;
/// The buffer that holds the plugin's configuration.
const PLUGIN_CONFIGURATION: u32 = 7;

/// Envoy, from inside one of its VMs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EnvoyHost;

/// What a call returned through its out-pointers.
struct Returned {
    data: *mut u8,
    len: usize,
}

impl Returned {
    const NOTHING: Self = Self {
        data: ptr::null_mut(),
        len: 0,
    };
}

/// Memory for what the host returns: a leaked slice of exactly `size` bytes, which [`take`] owns again.
pub(crate) fn allocate(size: usize) -> *mut u8 {
    let memory: Box<[u8]> = vec![0; size].into_boxed_slice();
    Box::into_raw(memory).cast()
}

/// Owns a buffer that the host filled; a value of no bytes comes without one.
fn take(returned: Returned) -> Vec<u8> {
    if returned.data.is_null() {
        return Vec::new();
    }
    // SAFETY: the host got the buffer from `allocate(len)`, which leaks a boxed slice of exactly `len` bytes, all of
    // which the host has written, and it hands each buffer over once.
    unsafe { Vec::from_raw_parts(returned.data, returned.len, returned.len) }
}

const fn check(call: &'static str, status: u32) -> Result<(), HostError> {
    match status {
        OK => Ok(()),
        status => Err(HostError::Status { call, status }),
    }
}

/// `None` for what does not exist and for what is empty.
fn found(
    call: &'static str,
    status: u32,
    returned: Returned,
) -> Result<Option<Vec<u8>>, HostError> {
    match status {
        OK => Ok(Some(take(returned)).filter(|bytes| !bytes.is_empty())),
        NOT_FOUND => Ok(None),
        status => Err(HostError::Status { call, status }),
    }
}

const fn map_number(map: Headers) -> u32 {
    match map {
        Headers::Request => 0,
        Headers::Response => 2,
        Headers::ResponseTrailers => 3,
    }
}

fn clock(id: u32) -> Result<Instant, HostError> {
    let mut nanos = 0;
    // SAFETY: the host writes to an initialized local during the call only.
    let status = unsafe { clock_time_get(id, 0, &raw mut nanos) };
    check("clock_time_get", status).map(|()| Instant::from_nanos(nanos))
}

// SAFETY of the calls below: every pointer comes from a live Rust value of the length passed beside it, the host
// reads or writes it during the call only, and out-pointers point to initialized locals.
impl Host for EnvoyHost {
    fn now(&self) -> Result<Instant, HostError> {
        clock(MONOTONIC)
    }

    fn wall_clock(&self) -> Result<Instant, HostError> {
        clock(REALTIME)
    }

    fn attribute(&self, path: &[u8]) -> Result<Option<Cow<'_, [u8]>>, HostError> {
        let mut out = Returned::NOTHING;
        // SAFETY: see above.
        let status = unsafe {
            proxy_get_property(
                path.as_ptr(),
                path.len(),
                &raw mut out.data,
                &raw mut out.len,
            )
        };
        found("proxy_get_property", status, out).map(|value| value.map(Cow::Owned))
    }

    fn header(&self, map: Headers, name: &str) -> Result<Option<Cow<'_, [u8]>>, HostError> {
        let mut out = Returned::NOTHING;
        // SAFETY: see above.
        let status = unsafe {
            proxy_get_header_map_value(
                map_number(map),
                name.as_ptr(),
                name.len(),
                &raw mut out.data,
                &raw mut out.len,
            )
        };
        found("proxy_get_header_map_value", status, out).map(|value| value.map(Cow::Owned))
    }

    fn header_map(&self, map: Headers) -> Result<Vec<u8>, HostError> {
        let mut out = Returned::NOTHING;
        // SAFETY: see above.
        let status = unsafe {
            proxy_get_header_map_pairs(map_number(map), &raw mut out.data, &raw mut out.len)
        };
        found("proxy_get_header_map_pairs", status, out).map(Option::unwrap_or_default)
    }

    fn send_local_reply(&self, reply: &LocalReply<'_>) -> Result<(), HostError> {
        let retry_after = reply.retry_after_secs.to_string();
        let pushback = reply.pushback_ms.map(|millis| millis.to_string());
        let mut list = vec![("retry-after", retry_after.as_str())];
        if reply.is_final {
            list.push(("x-envoy-ratelimited", "true"));
        }
        if let Some(pushback) = &pushback {
            list.push(("grpc-retry-pushback-ms", pushback));
        }
        list.extend(reply.reason);
        let headers = pairs::encode(&list);
        // SAFETY: see above.
        let status = unsafe {
            proxy_send_local_response(
                u32::from(reply.status),
                reply.details.as_ptr(),
                reply.details.len(),
                reply.body.as_ptr(),
                reply.body.len(),
                headers.as_ptr(),
                headers.len(),
                i32::try_from(reply.grpc_status).unwrap_or(-1),
            )
        };
        check("proxy_send_local_response", status)
    }

    fn define_metric(&self, kind: MetricKind, name: &str) -> Result<MetricId, HostError> {
        let kind = match kind {
            MetricKind::Counter => 0,
            MetricKind::Gauge => 1,
        };
        let mut id = 0;
        // SAFETY: see above.
        let status = unsafe { proxy_define_metric(kind, name.as_ptr(), name.len(), &raw mut id) };
        check("proxy_define_metric", status).map(|()| MetricId(id))
    }

    fn increment_metric(&self, id: MetricId, by: i64) -> Result<(), HostError> {
        // SAFETY: no pointers.
        check("proxy_increment_metric", unsafe {
            proxy_increment_metric(id.0, by)
        })
    }

    fn record_metric(&self, id: MetricId, value: u64) -> Result<(), HostError> {
        // SAFETY: no pointers.
        check("proxy_record_metric", unsafe {
            proxy_record_metric(id.0, value)
        })
    }

    fn metric(&self, id: MetricId) -> Result<u64, HostError> {
        let mut value = 0;
        // SAFETY: see above.
        let status = unsafe { proxy_get_metric(id.0, &raw mut value) };
        check("proxy_get_metric", status).map(|()| value)
    }

    fn shared(&self, key: &str) -> Result<Option<SharedValue>, HostError> {
        let (mut out, mut version) = (Returned::NOTHING, 0);
        // SAFETY: see above.
        let status = unsafe {
            proxy_get_shared_data(
                key.as_ptr(),
                key.len(),
                &raw mut out.data,
                &raw mut out.len,
                &raw mut version,
            )
        };
        match status {
            OK => Ok(Some(SharedValue {
                bytes: Arc::new(take(out)),
                version,
            })),
            NOT_FOUND => Ok(None),
            status => Err(HostError::Status {
                call: "proxy_get_shared_data",
                status,
            }),
        }
    }

    fn set_shared(
        &self,
        key: &str,
        value: &[u8],
        expect: Expect,
    ) -> Result<WriteResult, HostError> {
        let cas = match expect {
            Expect::Anything => 0,
            // A key that is not there takes any version, and one that is there has another than this.
            Expect::Absent => u32::MAX,
            Expect::Version(version) => version,
        };
        // SAFETY: see above.
        let status = unsafe {
            proxy_set_shared_data(key.as_ptr(), key.len(), value.as_ptr(), value.len(), cas)
        };
        match status {
            OK => Ok(WriteResult::Done),
            CAS_MISMATCH => Ok(WriteResult::Beaten),
            status => Err(HostError::Status {
                call: "proxy_set_shared_data",
                status,
            }),
        }
    }

    fn configuration(&self) -> Result<Vec<u8>, HostError> {
        let mut out = Returned::NOTHING;
        // SAFETY: see above.
        let status = unsafe {
            proxy_get_buffer_bytes(
                PLUGIN_CONFIGURATION,
                0,
                usize::MAX,
                &raw mut out.data,
                &raw mut out.len,
            )
        };
        found("proxy_get_buffer_bytes", status, out).map(Option::unwrap_or_default)
    }

    fn set_tick_period(&self, period: Duration) -> Result<(), HostError> {
        let millis = u32::try_from(period.as_millis()).unwrap_or(u32::MAX);
        // SAFETY: no pointers.
        check("proxy_set_tick_period_milliseconds", unsafe {
            proxy_set_tick_period_milliseconds(millis)
        })
    }

    fn log(&self, level: LogLevel, line: &str) -> Result<(), HostError> {
        let level = match level {
            LogLevel::Info => 2,
            LogLevel::Warn => 3,
            LogLevel::Error => 4,
        };
        // SAFETY: see above.
        check("proxy_log", unsafe {
            proxy_log(level, line.as_ptr(), line.len())
        })
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
