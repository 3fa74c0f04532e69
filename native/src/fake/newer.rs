//! The callbacks that the module looks up by name.

use core::cell::{Cell, RefCell};
use core::ffi::{CStr, c_char, c_void};
use std::collections::BTreeMap;

use crate::abi::{Buffer, ConfigMetric, EnvoyPtr};

thread_local! {
    /// What Envoy shows of the gauges that the thread has set, by name and values of labels.
    pub(crate) static GAUGES: RefCell<BTreeMap<String, u64>> = const { RefCell::new(BTreeMap::new()) };
    /// Whether the process only validates its configuration.
    pub(crate) static IS_VALIDATION: Cell<bool> = const { Cell::new(false) };
    /// Names of metrics, by their number.
    static NAMES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The number of a metric.
pub(super) fn id_of(name: &str) -> usize {
    NAMES.with_borrow_mut(|names| {
        let known = names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        })
    })
}

/// A function of the process by its name.
///
/// # Safety
/// The name ends with NUL.
pub(crate) unsafe fn dlsym(_handle: *mut c_void, name: *const c_char) -> *mut c_void {
    const SET: ConfigMetric = set_gauge;
    const INCREMENT: ConfigMetric = increment_counter;
    // SAFETY: the caller's.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    match name.strip_prefix(b"envoy_dynamic_module_callback_") {
        Some(b"http_filter_config_set_gauge") => SET as *mut c_void,
        Some(b"http_filter_config_increment_counter") => INCREMENT as *mut c_void,
        Some(b"is_validation_mode") => is_validation_mode as *mut c_void,
        _ => core::ptr::null_mut(),
    }
}

extern "C" fn is_validation_mode() -> bool {
    IS_VALIDATION.get()
}

unsafe extern "C" fn set_gauge(
    _config: EnvoyPtr,
    id: usize,
    values: *const Buffer,
    count: usize,
    value: u64,
) -> u32 {
    // SAFETY: the module's own array.
    let values = unsafe { core::slice::from_raw_parts(values, count) };
    // SAFETY: the module's own bytes.
    let values = values.iter().map(|value| unsafe { value.bytes() });
    let values: Vec<_> = values.map(String::from_utf8_lossy).collect();
    let name = NAMES.with_borrow(|names| names.get(id).cloned());
    let key = format!("{} {}", name.unwrap_or_default(), values.join(" "));
    GAUGES.with_borrow_mut(|gauges| gauges.insert(key, value));
    0
}

const unsafe extern "C" fn increment_counter(
    _config: EnvoyPtr,
    _id: usize,
    _values: *const Buffer,
    _count: usize,
    _value: u64,
) -> u32 {
    0
}
