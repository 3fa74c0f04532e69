//! The running service over real sockets: clients in this process that act as proxies, REST, and a real Envoy.
//!
//! The support: [`stage`] (a service, and how tests wait), [`proxy`] (a client that speaks discovery), [`browser`] (a
//! Chromium) and [`prometheus`] (a scripted server). All other modules contain cases. `make tools module` builds what
//! the cases in [`envoy`] and [`default_config`] need. The cases in [`page`] run only by `make test-page`, and those in [`native`] only by
//! `make test-native`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first unexpected result"
)]

mod browser;
mod prometheus;
mod proxy;
#[path = "../../../advise/tests/common/mod.rs"]
mod recordings;
mod stage;

mod dashboards;
mod default_config;
mod discovery;
mod envoy;
mod examples;
mod hostile;
mod native;
mod page;
mod process;
mod rest;
mod sources;
mod switch;
mod tls;
mod traces;
mod traffic;
