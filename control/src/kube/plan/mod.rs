//! What to write, decided from what is known.
//!
//! Pure: the same view gives the same plan, on every replica and after every
//! restart, and a cluster in its desired state gives an empty plan. Istio's
//! objects come first; the status of a policy waits until its objects are
//! written, so that it never reports a state between two writes.
//!
//! Edge cases: a policy that becomes invalid keeps its objects, because its last
//! valid version remains in force. Objects of the API that is no longer used
//! are deleted only after the objects that replace them exist. A failed write
//! waits for its retry time, unless the object or its desired state has changed.

mod object_state;
mod planner;

use std::time::Instant;

use super::clock::ClockReading;
use super::istio::{DesiredObject, ObjectKey};
use super::settings::KubeSettings;
use super::status::ConditionChange;
use super::view::ClusterView;
use crate::policy::PolicyName;
use crate::resource::BreakerPolicyStatus;

pub use object_state::REMOVAL;

/// What to write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WritePlan {
    /// Changes of Istio's objects.
    pub writes: Vec<ObjectWrite>,
    /// New statuses of policies.
    pub statuses: Vec<StatusWrite>,
    /// When to retry a failed write, if one is waiting.
    pub retry_at: Option<Instant>,
}

/// A change of one of Istio's objects.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectWrite {
    /// Create or update it.
    Apply(DesiredObject),
    /// Delete it, if it is still the object that was seen.
    Delete {
        /// The object.
        key: ObjectKey,
        /// The uid that was seen.
        uid: String,
    },
}

/// A new status of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusWrite {
    /// The policy.
    pub name: PolicyName,
    /// The uid that was seen.
    pub uid: String,
    /// The complete status.
    pub status: BreakerPolicyStatus,
    /// The changes that become Events.
    pub changes: Vec<ConditionChange>,
}

/// What to write in this state of the cluster.
#[must_use]
pub fn plan(view: &ClusterView, settings: &KubeSettings, now: ClockReading) -> WritePlan {
    let Some(served) = view.served() else {
        return WritePlan::default();
    };
    planner::plan(view, settings, served.chosen(settings.api), now)
}
