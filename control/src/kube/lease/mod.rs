//! Which of several replicas writes.

mod candidate;
mod election;
mod shutoff;

pub(super) use candidate::Candidate;
pub use election::{Election, LeaseRecord, LeaseWrite, Timing};
pub use shutoff::{SHUTOFF, ShutoffLease};
