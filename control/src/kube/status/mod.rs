//! What the status of a policy says.

mod condition;
mod constrained;
mod reason;
mod report;
mod served;
mod state;

pub use condition::{ConditionChange, ConditionState, OptionalReport, StatusReport};
pub use reason::Reason;
pub(super) use report::report;
pub(super) use state::{ObjectState, ReconcileState};
