//! The work in Kubernetes, without Kubernetes: plans on paper, elections on a clock that is moved by hand, and the
//! whole against an API server of this test's own.

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
