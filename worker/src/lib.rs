//! One worker of a proxy.
//!
//! What every host of Tidegate needs around [`tidegate_core`]: it turns a request's steps into the engine's verbs, and what
//! the engine decides into calls of the host. It knows no host and decides nothing itself. Layers, from the host inwards:
//!
//! - [`plugin`] and [`stream`]: one plugin's state in a worker, one request's life;
//! - [`upstreams`]: what is kept in the proxy for each upstream; [`coordination`]: this worker among the others;
//! - [`exchange`], [`metrics`], [`gauges`], ...: what they need, each for itself;
//! - [`api`]: what all of them ask of the proxy. A host layer answers with real calls, in tests a scripted fake.
//!
//! A fault of ours never stops a request: it is counted ([`faults`]), logged once, and the request passes.

pub mod api;
pub mod cohorts;
pub mod coordination;
pub mod counters;
mod destinations;
pub mod exchange;
#[cfg(any(test, feature = "testing"))]
pub mod fake;
pub mod faults;
pub mod gauges;
pub mod identity;
mod leader;
pub mod metrics;
pub mod names;
pub mod pairs;
pub mod plugin;
pub mod proxy;
mod recent;
pub mod reconcile;
pub mod request;
mod response;
pub mod stream;
pub mod ticks;
pub mod upstreams;
