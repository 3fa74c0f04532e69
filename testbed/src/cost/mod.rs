//! The cost of the filter: instructions per request, memory per worker, size of the module.
//!
//! On a machine that does other work as well, latency and throughput say little about a cost of a few microseconds.
//! Instructions do: the same work always takes the same number of them, within a fraction of a percent. So the measured
//! Envoys do the same work, a request proxied through a second listener of the same process, and differ only in their
//! filters; a closed loop of a few kept-alive connections drives them from another process, and the instructions are counted
//! from outside ([`counter`]).
//!
//! - [`subject`]: which Envoys are compared, with [`empty`], the module that does nothing, for scale;
//! - [`process`], [`http`], [`load`]: start an Envoy, send requests to it, drive it;
//! - [`counter`]: count with `perf`, with `valgrind`, or fall back on CPU time;
//! - [`requests`], [`memory`]: the two experiments;
//! - [`report`]: figures beside their targets, as JSON and as a table.
//!
//! Work that does not depend on the rate of requests (timers, the plugin's tick) is separated by counting at two rates, so
//! that requests are not charged for ticks when a counter slows Envoy down; it is reported separately, per second.

pub mod counter;
pub mod empty;
mod error;
pub mod http;
pub mod interrupt;
pub mod load;
pub mod memory;
pub mod process;
pub mod report;
pub mod requests;
pub mod subject;

pub use error::CostError;
