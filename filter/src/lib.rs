//! Tidegate inside Envoy, as a WebAssembly module.
//!
//! The host layer of [`tidegate_worker`] for proxy-wasm. It decides nothing itself:
//!
//! - `entry` (only in the module): the module's exports, one line each; [`vm`]: the contexts behind them;
//! - `host` (in the module, and in tests of its own): the calls into Envoy, as [`tidegate_worker::api::Host`].
//!
//! A fault of the filter never stops a request: it is counted ([`tidegate_worker::faults`]), logged once, and the request passes.

#[cfg(test)]
mod fuzz;
pub mod vm;

#[cfg(target_arch = "wasm32")]
mod entry;
#[cfg(any(target_arch = "wasm32", test))]
mod host;
