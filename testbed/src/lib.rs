//! Real Envoys, programmable upstreams and an open-loop client, all started from Rust.
//!
//! The end-to-end tests, the demo and the benchmark use this crate. It shares scenarios, arrivals, records and scores with
//! the simulator, in `tidegate_sim`. Its parts:
//!
//! - real sockets: [`envoy`], [`upstream`], [`client`];
//! - both together: [`variant`] (the contenders), [`run`] (one scenario on one contender), [`mod@bench`] (all on all),
//!   [`demo`] (one story, with and without), [`cost`], [`balance`] (load reports), [`chaos`] (faults, and what must hold after them);
//! - what operators look at: [`dashboards`].

pub mod about;
#[cfg(feature = "programs")]
pub mod balance;
#[cfg(feature = "programs")]
pub mod bench;
#[cfg(feature = "programs")]
pub mod chaos;
pub mod client;
#[cfg(feature = "programs")]
pub mod cost;
pub mod dashboards;
pub mod demo;
pub mod envoy;
mod pace;
#[cfg(test)]
mod poll;
pub mod run;
pub mod upstream;
pub mod variant;
