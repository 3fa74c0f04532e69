//! The condition `Constrained`: a static pool of Istio is tighter than the policy.

use std::fmt::Write as _;

use tidegate_advise::chain::LimitAbovePool;
use tidegate_core::config::RuleIndex;

use super::condition::{ConditionState, OptionalReport};
use super::reason::Reason;
use super::state::ReconcileState;
use crate::kube::pools::PoolFinding;
use crate::kube::view::{ObservedPolicy, PoolFindings};
use crate::policy::PolicyTargets;

/// Most pools that the message names.
const MAX_NAMED: usize = 3;

/// What the condition says of a policy.
pub(super) fn constrained(policy: &ObservedPolicy, state: &ReconcileState) -> OptionalReport {
    let Some(valid) = &policy.valid else {
        return OptionalReport::Unchanged;
    };
    if state.pools == PoolFindings::Off || matches!(valid.targets(), PolicyTargets::Proxies(_)) {
        return OptionalReport::Absent;
    }
    let Some(found) = state.pools.of(valid) else {
        return OptionalReport::Unchanged;
    };
    OptionalReport::Known(match found.first() {
        Some(worst) => {
            let reason = match worst.below {
                LimitAbovePool::Min(_) => Reason::PoolBelowMinimum,
                LimitAbovePool::Max(_) => Reason::PoolBelowMaximum,
            };
            ConditionState::yes(reason, message(found))
        }
        None => ConditionState::no(
            Reason::NotConstrained,
            "no known connectionPool of a DestinationRule is tighter than the policy",
        ),
    })
}

fn message(found: &[PoolFinding]) -> String {
    let named: Vec<String> = found.iter().take(MAX_NAMED).map(sentence).collect();
    let mut message = named.join("; ");
    let more = found.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        // Writing to a String cannot fail.
        let _ = write!(message, "; and {more} more");
    }
    message
}

fn sentence(found: &PoolFinding) -> String {
    let place = match found.place {
        RuleIndex::TopLevel => String::new(),
        place => format!("{place}."),
    };
    format!(
        "{}: {} bounds a proxy to {} requests in flight to {}, below {place}{}",
        found.object, found.field, found.in_flight, found.host, found.below
    )
}
