//! The running service over real sockets: proxies played by clients in this process, REST, and a real Envoy.
//!
//! The support: [`stage`] (a service and how a test waits), [`proxy`] (a client that speaks discovery). All
//! other modules hold cases. `make tools module` builds what the cases in [`envoy`] need.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests: to stop at the first surprise is what is wanted"
)]

mod proxy;
mod stage;

mod discovery;
mod envoy;
mod hostile;
mod process;
mod rest;
mod sources;
mod tls;
