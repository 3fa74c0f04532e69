//! Which of several replicas writes.

mod candidate;
mod election;

pub(super) use candidate::Candidate;
pub use election::{Election, LeaseRecord, LeaseWrite, Timing};
