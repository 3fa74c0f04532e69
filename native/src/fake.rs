//! An Envoy for tests: the callbacks that it would provide, with scripted answers.

#![expect(
    unsafe_code,
    reason = "callbacks have the names that the module links to"
)]

mod newer;

use core::cell::{Cell, RefCell};
use core::ffi::{c_char, c_void};

use crate::abi::{Buffer, EnvoyPtr, Header, attribute_id};

pub(crate) use newer::{GAUGES, IS_VALIDATION, dlsym};

thread_local! {
    /// The status of the response.
    pub(crate) static STATUS: Cell<&'static str> = const { Cell::new("200") };
    /// The cluster of the route; empty for none.
    pub(crate) static CLUSTER: Cell<&'static str> = const { Cell::new("web") };
    /// The address of the upstream host; empty for none.
    pub(crate) static ADDRESS: Cell<&'static str> = const { Cell::new("10.0.0.1:80") };
    /// How many workers a configuration of the thread is told of.
    pub(crate) static WORKERS: Cell<u32> = const { Cell::new(2) };
    /// The worker of the thread's requests.
    pub(crate) static WORKER: Cell<u32> = const { Cell::new(0) };
    /// The configuration of the route of the thread's requests; null for none.
    pub(crate) static ROUTE: Cell<*const c_void> = const { Cell::new(core::ptr::null()) };
    /// The response flags of the thread's requests.
    pub(crate) static FLAGS: Cell<u64> = const { Cell::new(0) };
    /// What Envoy does within a local reply.
    pub(crate) static WITHIN_REPLY: Cell<fn()> = const { Cell::new(|| {}) };
    /// Local replies that were sent.
    pub(crate) static REPLIES: Cell<usize> = const { Cell::new(0) };
    /// Headers that were set or, with an empty value, removed: by map, name and value.
    pub(crate) static HEADERS_SET: RefCell<Vec<(u32, String, String)>> = const { RefCell::new(Vec::new()) };
    /// Lines that the thread has logged.
    pub(crate) static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// The load report of the last local reply that had one.
    pub(crate) static LAST_REPORT: RefCell<String> = const { RefCell::new(String::new()) };
}

fn give(text: &'static str, value: *mut Buffer) -> bool {
    // SAFETY: the module gives a local.
    unsafe { value.write(Buffer::of(text.as_bytes())) };
    !text.is_empty()
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_log(_level: u32, message: Buffer) {
    // SAFETY: the module's own bytes.
    let line = String::from_utf8_lossy(unsafe { message.bytes() }).into_owned();
    println!("{line}");
    LOG.with_borrow_mut(|lines| lines.push(line));
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_get_concurrency() -> u32 {
    WORKERS.get()
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_http_get_header(
    _stream: EnvoyPtr,
    _kind: u32,
    key: Buffer,
    value: *mut Buffer,
    _index: usize,
    _count: *mut usize,
) -> bool {
    // SAFETY: the module's own bytes.
    match unsafe { key.bytes() } {
        b":status" => give(STATUS.get(), value),
        b"grpc-status" => give("0", value),
        b":path" => give("/orders", value),
        _ => false,
    }
}

/// Reports are told apart by kind of map; those of other headers are not kept.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_http_set_header(
    _stream: EnvoyPtr,
    kind: u32,
    key: Buffer,
    value: Buffer,
) -> bool {
    // SAFETY: the module's own bytes.
    let (key, value) = unsafe { (key.bytes(), value.bytes()) };
    let text = String::from_utf8_lossy(value).into_owned();
    let key = String::from_utf8_lossy(key).into_owned();
    HEADERS_SET.with_borrow_mut(|headers| headers.push((kind, key, text)));
    true
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_http_send_response(
    _stream: EnvoyPtr,
    _status: u32,
    headers: *const Header,
    header_count: usize,
    _body: Buffer,
    _details: Buffer,
) {
    // SAFETY: the module's own array.
    let headers = unsafe { core::slice::from_raw_parts(headers, header_count) };
    for header in headers {
        // SAFETY: the module's own bytes.
        let (key, value) = unsafe { (header.key.bytes(), header.value.bytes()) };
        if key == b"endpoint-load-metrics" {
            let text = String::from_utf8_lossy(value).into_owned();
            LAST_REPORT.set(text);
        }
    }
    REPLIES.set(REPLIES.get() + 1);
    WITHIN_REPLY.get()();
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_http_get_cluster_name(
    _stream: EnvoyPtr,
    name: *mut Buffer,
) -> bool {
    give(CLUSTER.get(), name)
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_http_filter_get_worker_index(_stream: EnvoyPtr) -> u32 {
    WORKER.get()
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_http_filter_get_attribute_string(
    _stream: EnvoyPtr,
    attribute: u32,
    value: *mut Buffer,
) -> bool {
    match attribute {
        attribute_id::UPSTREAM_ADDRESS => give(ADDRESS.get(), value),
        _ => give("via_upstream", value),
    }
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_http_filter_get_attribute_int(
    _stream: EnvoyPtr,
    _attribute: u32,
    value: *mut u64,
) -> bool {
    // SAFETY: the module gives a local.
    unsafe { value.write(FLAGS.get()) };
    true
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_get_most_specific_route_config(
    _stream: EnvoyPtr,
) -> *const c_void {
    ROUTE.get()
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_http_filter_config_define_counter(
    _config: EnvoyPtr,
    name: Buffer,
    _labels: *const Buffer,
    _label_count: usize,
    id: *mut usize,
) -> u32 {
    // SAFETY: the module's own bytes, and a local.
    unsafe { id.write(newer::id_of(&String::from_utf8_lossy(name.bytes()))) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_http_filter_config_define_gauge(
    config: EnvoyPtr,
    name: Buffer,
    labels: *const Buffer,
    label_count: usize,
    id: *mut usize,
) -> u32 {
    envoy_dynamic_module_callback_http_filter_config_define_counter(
        config,
        name,
        labels,
        label_count,
        id,
    )
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_callback_http_filter_config_define_histogram(
    config: EnvoyPtr,
    name: Buffer,
    labels: *const Buffer,
    label_count: usize,
    id: *mut usize,
) -> u32 {
    envoy_dynamic_module_callback_http_filter_config_define_counter(
        config,
        name,
        labels,
        label_count,
        id,
    )
}

#[unsafe(no_mangle)]
const extern "C" fn envoy_dynamic_module_callback_http_filter_config_scheduler_new(
    _config: EnvoyPtr,
) -> EnvoyPtr {
    core::ptr::null_mut()
}

#[unsafe(no_mangle)]
const extern "C" fn envoy_dynamic_module_callback_http_filter_config_scheduler_commit(
    _scheduler: EnvoyPtr,
    _event: u64,
) {
}

#[unsafe(no_mangle)]
const extern "C" fn envoy_dynamic_module_callback_http_filter_config_scheduler_delete(
    _scheduler: EnvoyPtr,
) {
}

/// A name or a document for a hook.
pub(crate) fn buffer(text: &str) -> Buffer {
    Buffer {
        ptr: text.as_ptr().cast::<c_char>(),
        len: text.len(),
    }
}
