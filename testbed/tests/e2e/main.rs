//! End-to-end tests: the built module in a real Envoy, with real upstreams and callers.
//!
//! Every test starts its own Envoy and upstreams on their own ports and asserts on counts, ratios and scores, never on single
//! times. The support modules: [`turn`] (which test may use the machine), [`stage`] (an Envoy and how a test fails),
//! [`config`] (the plugin's document), [`load`] (callers), [`play`] (scored runs), [`raw`] (servers that break HTTP). All
//! other modules contain cases.
//!
//! `make tools filter` builds what the tests need; a test that misses something fails and says so.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test should stop at the first surprise"
)]

mod config;
mod load;
mod play;
mod raw;
mod stage;
mod turn;

mod adversaries;
mod bodies;
mod crash;
mod dashboards;
mod destinations;
mod drain;
mod exempt;
mod grpc;
mod http3;
mod limit;
mod loading;
mod mesh;
mod metrics;
mod modes;
mod names;
mod native_life;
mod only_native;
mod outage;
mod outcomes;
mod overload;
mod push;
mod reply;
mod snapshots;
mod streams;
