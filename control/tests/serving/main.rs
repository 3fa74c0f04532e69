//! The running service over real sockets: proxies played by clients in this process, REST, and a real Envoy.
//!
//! The support: [`stage`] (a service and how a test waits), [`proxy`] (a client that speaks discovery),
//! [`browser`] (a Chromium). All other modules hold cases. `make tools module` builds what the cases in
//! [`envoy`] need; those in [`page`] run by `make test-page` only.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests: to stop at the first surprise is what is wanted"
)]

mod browser;
mod proxy;
mod stage;

mod dashboards;
mod discovery;
mod envoy;
mod examples;
mod hostile;
mod page;
mod process;
mod rest;
mod sources;
mod tls;
mod traces;
