//! Which policies a static `connectionPool` of Istio constrains.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kube::pools::PoolFinding;
use crate::policy::{CheckedPolicy, PolicyName};

/// What is known of static pools; cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum PoolFindings {
    /// The API server has no `DestinationRule`s.
    #[default]
    Off,
    /// The rules could not be listed yet.
    Unknown,
    /// The policies that were compared with the rules.
    Known(Arc<BTreeMap<PolicyName, PoolComparison>>),
}

/// A policy that was compared with the rules.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolComparison {
    /// The policy at the time of the comparison.
    pub policy: Arc<CheckedPolicy>,
    /// The pools that are tighter than it, the worst first.
    pub found: Vec<PoolFinding>,
}

impl PoolFindings {
    /// The result for a policy; `None` if this content of it was not compared yet.
    #[must_use]
    pub fn of(&self, policy: &Arc<CheckedPolicy>) -> Option<&[PoolFinding]> {
        let Self::Known(compared) = self else {
            return None;
        };
        let one = compared.get(policy.name())?;
        (Arc::ptr_eq(&one.policy, policy) || one.policy == *policy).then_some(&one.found)
    }
}
