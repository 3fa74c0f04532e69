//! The service's work in Kubernetes, tested without Kubernetes: plans in a simulated cluster, elections with a
//! simulated clock, and the whole service against a simulated API server.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first unexpected result"
)]

mod cluster;
mod documents;
mod elections;
mod events;
mod facts;
mod plans;
mod pools;
mod properties;
#[path = "../../../advise/tests/common/mod.rs"]
mod recordings;
mod replica;
mod scripted;
mod server;
