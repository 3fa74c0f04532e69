//! Hooks by which a configuration of the filter, or of one route, begins and ends.

use core::ffi::c_void;
use core::ptr;
use std::sync::{Arc, Once};

use tidegate_core::config::Config;

use crate::abi::{self, Buffer, EnvoyPtr, NewerCallbacks, log, log_level};
use crate::plugin::NamedConfig;
use crate::registry::{self, FilterConfig, RouteConfig};
use crate::{guard, successor, ticker};

/// Reads a configuration. Each error in it goes to the log, on a line of its own.
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
