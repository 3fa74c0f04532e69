//! Tidegate inside Envoy, as a dynamic module: a shared object that Envoy loads.
//!
//! The host layer of [`tidegate_worker`] for Envoy's ABI of dynamic modules. It decides nothing itself. Worker threads share
//! memory here, and Envoy gives an HTTP filter no timer. From Envoy inwards:
//!
//! - `abi`: the functions that cross, declared by hand with their sources;
//! - `hooks`: what Envoy calls, one line each, each behind `guard`, which lets no panic out;
//! - `stream`: one request, in memory from `pool`; `shard`: one worker's state, which its thread and the ticker take in turns without a lock;
//! - `plugin`: all workers of one configured filter; `registry`: all filters of the process;
//! - `ticker`: the one thread that ticks for idle workers, decides, and has metrics published on Envoy's main thread;
//! - `learned`: learned state as bytes; `snapshot`: the file by which it outlives the process; `predecessor` and `successor`: its way
//!   from one file of the module to the next one in the same process;
//! - `host`, `metrics` with their `descriptions`, `shared`: what the worker asks of its host;
//! - `load_reports`, with figures from `load_figures` in a text of `published`, which `report_headers` puts into responses;
//! - `latencies`, which `histograms` tells Envoy;
//! - `upstream_hosts`, with counts in `host_rows` by what `host_verdict` says of a request; `host_names` bounds their names.
//!
//! A fault of the module never stops a request: it is counted, logged once, and the request passes.

mod abi;
#[cfg(test)]
mod any_order;
#[cfg(test)]
mod callback_order;
#[cfg(test)]
mod counted;
#[cfg(any(test, feature = "test-hooks"))]
mod crash;
mod decimal;
mod descriptions;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod fuzz;
mod guard;
mod histograms;
mod hooks;
mod host;
mod host_names;
mod host_rows;
#[cfg(test)]
mod host_tests;
mod host_verdict;
mod latencies;
mod learned;
mod load_figures;
mod load_reports;
#[cfg(test)]
mod memory;
mod metrics;
#[cfg(test)]
#[allow(
    clippy::duplicate_mod,
    reason = "the files that it models, compiled with other atomics"
)]
mod models;
mod notice;
#[cfg(test)]
mod panics;
mod plugin;
mod pool;
mod predecessor;
mod published;
mod registry;
mod report_headers;
#[cfg(test)]
mod report_tests;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod route_tests;
mod shard;
#[cfg(test)]
mod shard_tests;
mod shared;
mod shared_keys;
mod snapshot;
mod stream;
mod successor;
mod sync;
#[cfg(test)]
mod thread_tests;
mod ticker;
mod upstream_hosts;
