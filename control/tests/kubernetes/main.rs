//! The service's work in Kubernetes, tested without Kubernetes: plans in a simulated cluster, elections with a
//! simulated clock, and the whole service against a simulated API server.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests: to stop at the first surprise is what is wanted"
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
