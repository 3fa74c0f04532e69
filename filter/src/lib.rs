//! Tidegate inside Envoy.
//!
//! The skin around [`tidegate_core`]: it turns proxy-wasm callbacks into the engine's verbs, and what the engine
//! decides into host calls. It decides nothing itself. Layers, from the host inwards:
//!
//! - `entry` (only in the module): its exports, one line each; [`vm`]: the contexts behind them;
//! - [`plugin`] and [`stream`]: one plugin's state in a VM, one request's life;
//! - [`upstreams`]: what is kept in the proxy for each upstream; [`coordination`]: this worker among the others;
//! - [`exchange`], [`metrics`], [`gauges`], ...: what they need, each for itself;
//! - [`api`]: what all of them ask of the proxy; `host` (in the module, and in tests of its own) answers with real calls, a
//!   scripted fake in tests.
//!
//! A fault of the filter never stops a request: it is counted ([`faults`]), logged once, and the request passes.

pub mod api;
pub mod cohorts;
pub mod coordination;
pub mod counters;
mod destinations;
pub mod exchange;
#[cfg(test)]
mod fake;
pub mod faults;
#[cfg(test)]
mod fuzz;
pub mod gauges;
pub mod identity;
mod leader;
pub mod metrics;
pub mod names;
pub mod pairs;
pub mod plugin;
pub mod proxy;
pub mod reconcile;
pub mod request;
pub mod stream;
pub mod ticks;
pub mod upstreams;
pub mod vm;

#[cfg(target_arch = "wasm32")]
mod entry;
#[cfg(any(target_arch = "wasm32", test))]
mod host;
