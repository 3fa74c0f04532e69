//! The functions that cross between Envoy and the module.
//!
//! Declared by hand from `source/extensions/dynamic_modules/abi/abi.h` of Envoy 1.40
//! (<https://github.com/envoyproxy/envoy/blob/v1.40.0/source/extensions/dynamic_modules/abi/abi.h>): the SDK is in no
//! package registry. In C, enums are `u32`, and `bool` is Rust's. The hooks that Envoy calls are in `hooks`.
//!
//! Envoy refuses a module of which it lacks one callback. So callbacks that not all supported releases have are looked up
//! when the module is loaded (see [`NewerCallbacks`]).

#![expect(unsafe_code, reason = "functions of Envoy are foreign functions")]

use core::ffi::{c_char, c_void};
use core::{ptr, slice};
use std::sync::OnceLock;

/// The ABI version that the module was written for; another one makes Envoy log a warning.
pub(crate) const VERSION: &core::ffi::CStr = c"v0.2.0";

/// A stream, a configuration or a scheduler of Envoy's. Only Envoy looks inside.
pub(crate) type EnvoyPtr = *mut c_void;

/// Bytes that belong to one side, as the other one sees them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) ptr: *const c_char,
    pub(crate) len: usize,
}

impl Buffer {
    pub(crate) const EMPTY: Self = Self {
        ptr: ptr::null(),
        len: 0,
    };

    /// Bytes of the module, to be read during a call.
    pub(crate) const fn of(bytes: &[u8]) -> Self {
        Self {
            ptr: bytes.as_ptr().cast(),
            len: bytes.len(),
        }
    }

    /// Bytes of Envoy.
    ///
    /// # Safety
    /// Envoy gave the buffer, and the hook under way in which it is valid outlives `'a`.
    pub(crate) const unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.ptr.is_null() || self.len == 0 {
            return &[];
        }
        // SAFETY: the caller's.
        unsafe { slice::from_raw_parts(self.ptr.cast(), self.len) }
    }
}

/// A header of a local reply.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) key: Buffer,
    pub(crate) value: Buffer,
}

impl Header {
    pub(crate) const EMPTY: Self = Self {
        key: Buffer::EMPTY,
        value: Buffer::EMPTY,
    };
}

/// `envoy_dynamic_module_type_http_header_type`.
pub(crate) mod header_type {
    pub(crate) const REQUEST: u32 = 0;
    pub(crate) const RESPONSE: u32 = 2;
    pub(crate) const RESPONSE_TRAILERS: u32 = 3;
}

/// `envoy_dynamic_module_type_attribute_id`.
pub(crate) mod attribute_id {
    pub(crate) const CODE_DETAILS: u32 = 16;
    pub(crate) const RESPONSE_FLAGS: u32 = 17;
    pub(crate) const URI_SAN_PEER_CERTIFICATE: u32 = 37;
    /// That of the host, not of the connection to it.
    pub(crate) const UPSTREAM_ADDRESS: u32 = 41;
    pub(crate) const ROUTE_NAME: u32 = 61;
}

/// `envoy_dynamic_module_type_log_level`.
pub(crate) mod log_level {
    pub(crate) const INFO: u32 = 2;
    pub(crate) const WARN: u32 = 3;
    pub(crate) const ERROR: u32 = 4;
}

/// What a hook for headers, data or trailers returns.
pub(crate) mod status {
    pub(crate) const CONTINUE: u32 = 0;
    /// Stop here: the module has answered.
    pub(crate) const STOP: u32 = 1;
}

/// The only good result of a call about metrics.
pub(crate) const METRICS_SUCCESS: u32 = 0;

unsafe extern "C" {
    pub(crate) fn envoy_dynamic_module_callback_log(level: u32, message: Buffer);
    pub(crate) fn envoy_dynamic_module_callback_get_concurrency() -> u32;
    pub(crate) fn envoy_dynamic_module_callback_http_get_header(
        stream: EnvoyPtr,
        kind: u32,
        key: Buffer,
        value: *mut Buffer,
        index: usize,
        count: *mut usize,
    ) -> bool;
    /// Replaces all headers of this name by one; a null value removes them.
    pub(crate) fn envoy_dynamic_module_callback_http_set_header(
        stream: EnvoyPtr,
        kind: u32,
        key: Buffer,
        value: Buffer,
    ) -> bool;
    pub(crate) fn envoy_dynamic_module_callback_http_send_response(
        stream: EnvoyPtr,
        status: u32,
        headers: *const Header,
        header_count: usize,
        body: Buffer,
        details: Buffer,
    );
    pub(crate) fn envoy_dynamic_module_callback_http_get_cluster_name(
        stream: EnvoyPtr,
        name: *mut Buffer,
    ) -> bool;
    pub(crate) fn envoy_dynamic_module_callback_http_filter_get_worker_index(
        stream: EnvoyPtr,
    ) -> u32;
    pub(crate) fn envoy_dynamic_module_callback_http_filter_get_attribute_string(
        stream: EnvoyPtr,
        attribute: u32,
        value: *mut Buffer,
    ) -> bool;
    pub(crate) fn envoy_dynamic_module_callback_http_filter_get_attribute_int(
        stream: EnvoyPtr,
        attribute: u32,
        value: *mut u64,
    ) -> bool;
    pub(crate) fn envoy_dynamic_module_callback_get_most_specific_route_config(
        stream: EnvoyPtr,
    ) -> *const c_void;
    pub(crate) fn envoy_dynamic_module_callback_http_filter_config_define_counter(
        config: EnvoyPtr,
        name: Buffer,
        labels: *const Buffer,
        label_count: usize,
        id: *mut usize,
    ) -> u32;
    pub(crate) fn envoy_dynamic_module_callback_http_filter_config_define_gauge(
        config: EnvoyPtr,
        name: Buffer,
        labels: *const Buffer,
        label_count: usize,
        id: *mut usize,
    ) -> u32;
    pub(crate) fn envoy_dynamic_module_callback_http_filter_config_define_histogram(
        config: EnvoyPtr,
        name: Buffer,
        labels: *const Buffer,
        label_count: usize,
        id: *mut usize,
    ) -> u32;
    pub(crate) fn envoy_dynamic_module_callback_http_filter_config_scheduler_new(
        config: EnvoyPtr,
    ) -> EnvoyPtr;
    pub(crate) fn envoy_dynamic_module_callback_http_filter_config_scheduler_commit(
        scheduler: EnvoyPtr,
        event: u64,
    );
    pub(crate) fn envoy_dynamic_module_callback_http_filter_config_scheduler_delete(
        scheduler: EnvoyPtr,
    );
    #[cfg(not(test))]
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Tests have the Envoy of theirs, whose symbols the linker keeps to itself.
#[cfg(test)]
use crate::fake::dlsym;

type IsValidation = unsafe extern "C" fn() -> bool;
type HostCountFn = unsafe extern "C" fn(EnvoyPtr, u32, *mut usize, *mut usize, *mut usize) -> bool;
/// Adds to a counter, sets a gauge, or adds to a histogram, of a configuration: `(config, id, label values, their number, value)`.
pub(crate) type ConfigMetric =
    unsafe extern "C" fn(EnvoyPtr, usize, *const Buffer, usize, u64) -> u32;

/// Keeps a pointer by a key, for the whole process; false for a null pointer.
type RegisterSharedData = unsafe extern "C" fn(Buffer, *mut c_void) -> bool;
/// Gives what is kept by a key; false if nothing is.
type GetSharedData = unsafe extern "C" fn(Buffer, *mut *mut c_void) -> bool;

/// Callbacks that not every supported release has. Without one, what it is for is left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewerCallbacks {
    /// Whether the process only validates its configuration.
    pub(crate) is_validation_mode: Option<IsValidation>,
    /// The endpoints of a cluster, by priority.
    pub(crate) cluster_host_count: Option<HostCountFn>,
    /// Metrics outside of a request, on the main thread.
    pub(crate) increment_counter: Option<ConfigMetric>,
    pub(crate) set_gauge: Option<ConfigMetric>,
    pub(crate) record_histogram: Option<ConfigMetric>,
    /// A pointer for other files of the module.
    pub(crate) register_shared_data: Option<RegisterSharedData>,
    pub(crate) get_shared_data: Option<GetSharedData>,
    /// Whether it has what came with the release that the module was written for. Some older ones have all of the above.
    has_newest: bool,
}

impl NewerCallbacks {
    /// Those of this Envoy.
    pub(crate) fn get() -> &'static Self {
        static FOUND: OnceLock<NewerCallbacks> = OnceLock::new();
        FOUND.get_or_init(|| {
            // SAFETY: the names are those of functions with these signatures, in all releases that have them.
            unsafe {
                Self {
                    is_validation_mode: find(c"envoy_dynamic_module_callback_is_validation_mode")
                        .map(|it| core::mem::transmute::<*mut c_void, IsValidation>(it)),
                    cluster_host_count: find(
                        c"envoy_dynamic_module_callback_http_get_cluster_host_count",
                    )
                    .map(|it| core::mem::transmute::<*mut c_void, HostCountFn>(it)),
                    increment_counter: find(
                        c"envoy_dynamic_module_callback_http_filter_config_increment_counter",
                    )
                    .map(|it| core::mem::transmute::<*mut c_void, ConfigMetric>(it)),
                    record_histogram: find(
                        c"envoy_dynamic_module_callback_http_filter_config_record_histogram_value",
                    )
                    .map(|it| core::mem::transmute::<*mut c_void, ConfigMetric>(it)),
                    register_shared_data: find(
                        c"envoy_dynamic_module_callback_register_shared_data",
                    )
                    .map(|it| core::mem::transmute::<*mut c_void, RegisterSharedData>(it)),
                    get_shared_data: find(c"envoy_dynamic_module_callback_get_shared_data")
                        .map(|it| core::mem::transmute::<*mut c_void, GetSharedData>(it)),
                    has_newest: find(c"envoy_dynamic_module_callback_log_v2").is_some(),
                    set_gauge: find(c"envoy_dynamic_module_callback_http_filter_config_set_gauge")
                        .map(|it| core::mem::transmute::<*mut c_void, ConfigMetric>(it)),
                }
            }
        })
    }

    /// What this Envoy lacks, for its log; `None` if it lacks nothing.
    pub(crate) fn lacks(&self) -> Option<String> {
        let has_metrics = self.increment_counter.is_some() && self.set_gauge.is_some();
        let has_handover = self.get_shared_data.is_some() && self.register_shared_data.is_some();
        let lacking: Vec<&str> = [
            (self.is_validation_mode.is_some(), "the mode of validation"),
            (self.cluster_host_count.is_some(), "numbers of endpoints"),
            (has_metrics, "metrics beside requests, so there are none"),
            (
                has_handover,
                "pointers for other files of the module, so a newer one starts from nothing",
            ),
            (
                self.has_newest,
                "what came with Envoy 1.40, so the module is not tested with it",
            ),
        ]
        .into_iter()
        .filter_map(|(has, what)| (!has).then_some(what))
        .collect();
        (!lacking.is_empty()).then(|| lacking.join(", "))
    }
}

/// A function of the process by its name.
fn find(name: &core::ffi::CStr) -> Option<*mut c_void> {
    // SAFETY: the name ends with NUL; a null handle asks the whole process.
    let found = unsafe { dlsym(ptr::null_mut(), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Writes a line into Envoy's log.
pub(crate) fn log(level: u32, line: &str) {
    // SAFETY: Envoy reads the line during the call.
    unsafe { envoy_dynamic_module_callback_log(level, Buffer::of(line.as_bytes())) }
}
