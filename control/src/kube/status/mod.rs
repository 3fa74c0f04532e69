//! What the status of a policy says.

mod condition;
mod report;
mod state;

pub use condition::{ConditionChange, ConditionState, ReachReport, Reason, StatusReport};
pub(super) use report::report;
pub(super) use state::{ObjectState, ReconcileState};
